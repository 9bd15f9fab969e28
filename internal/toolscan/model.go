package toolscan

import (
	_ "embed" // for lexicon.txt and weights.bin
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/lazy"
)

// The model is linear: a sentence has features, each feature has a weight, and the sum says how
// much the sentence reads like an instruction to a model rather than the description of a tool.
// Features are its words, pairs of words, and the concepts that its words stand for in any
// language, alone, in pairs and in sequences. The weights were trained with the texts in testdata.

const (
	// instruction is the rule for the model's findings.
	instruction = "model-instruction"

	// preference is the rule whose findings are at most medium.
	preference = "tool-preference"
)

const (
	// mediumScore and highScore are the scores from which a sentence is a finding. Among the tools
	// of published servers that were not used for training, 2.9 % reach the first and 0.3 % the
	// second.
	mediumScore, highScore = 0.4, 2.6

	// doubtScore is the score below which a phrase or a name in a sentence is not a finding, unless
	// its severity is high: honest rules for the model name the same things.
	doubtScore = mediumScore - 0.5

	// featureBits is the number of bits of a feature's number, which is a hash.
	featureBits = 17

	// damping keeps sentences of few words from extreme scores.
	damping = 20

	// window is the number of words that are judged together.
	window = 48

	// maxStem is the number of characters at the beginning of a word that are compared, so that
	// inflected forms are the same.
	maxStem = 5

	// nearPair is how many words apart two concepts may be to count as a pair.
	nearPair = 8
)

//go:embed lexicon.txt
var lexiconFile string

// weights has the scale and the bias of the model as 32-bit floats, and a signed byte for each
// feature.
//
//go:embed weights.bin
var weights string

// weightsHeader is the length in bytes of what precedes the weights of the features.
const weightsHeader = 8

// lexicon is the content of lexicon.txt.
type lexicon struct {
	*patterns
	concepts []concept // by term
}

// concept is what a term of the lexicon means.
type concept struct {
	number  int
	foreign bool // the word is of another language than English
}

// englishConcept is the number of the concept whose words are in English sentences only.
const englishConcept = 0

var concepts = lazy.New(readConcepts)

// readConcepts reads lexicon.txt, which describes its format. Mistakes panic, because the
// file is part of the program.
func readConcepts() *lexicon {
	l := &lexicon{patterns: newPatterns()}
	numbers := map[string]int{}
	for line := range strings.Lines(lexiconFile) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) < 3 || fields[1] != "=" && fields[1] != "+" {
			panic(fmt.Sprintf("lexicon.txt: %q", line))
		}
		number, ok := numbers[fields[0]]
		if !ok {
			number = len(numbers)
			numbers[fields[0]] = number
		}
		l.term(strings.Join(fields[2:], "|"), nil)
		l.concepts = append(l.concepts, concept{number, fields[1] == "+"})
	}
	return l
}

// model judges sentences.
type model struct {
	known   *names
	score   func(features []uint32) float64
	numbers []uint32 // of the features of a sentence, reused
}

// judge returns the part of a sentence with the highest score.
func (m *model) judge(words []word, t string) scored {
	out := scored{score: math.Inf(-1)}
	for part := range slices.Chunk(words, window) {
		if score := m.score(m.features(part)); score > out.score {
			out = scored{score, excerpt(t, part[0].start, part[len(part)-1].end)}
		}
	}
	return out
}

// scored is a sentence with its score.
type scored struct {
	score float64
	words string
}

func score(features []uint32) float64 {
	number := func(at int) float64 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(weights[at : at+4]))))
	}
	sum := 0
	for _, f := range features {
		sum += int(int8(weights[weightsHeader+f]))
	}
	return float64(sum)*number(0)/math.Sqrt(float64(len(features)+damping)) + number(4)
}

// features returns the numbers of the features of a sentence, each once.
func (m *model) features(words []word) []uint32 {
	out := m.numbers[:0]
	add := func(parts ...string) {
		h := uint32(2166136261) // FNV-1a
		for _, part := range parts {
			for i := range len(part) {
				h = (h ^ uint32(part[i])) * 16777619
			}
			h = (h ^ 0xff) * 16777619
		}
		out = append(out, (h^h>>15)&(1<<featureBits-1))
	}
	l, said := concepts.Get(), &sentence{words: words}
	l.findTerms(said)
	isEnglish := slices.ContainsFunc(said.terms,
		func(term int) bool { return l.concepts[term].number == englishConcept })

	type place struct{ at, concept int }
	var places []place
	before, last, last2 := "^", "^", "^"
	stems := make([]string, len(words))
	add("first", words[0].text)
	for at := range words {
		stem := m.stem(words[at].text)
		stems[at] = stem
		add("word", stem)
		add("whole", words[at].text)
		add("words", before, stem)
		before = stem
		name := stem
		for _, term := range said.termsAt(at) {
			if c := l.concepts[term]; !c.foreign || !isEnglish {
				name = string(rune('A' + c.number))
				if p := (place{at, c.number}); len(places) == 0 || places[len(places)-1] != p {
					places = append(places, p)
				}
			}
		}
		if len(said.termsAt(at)) == 0 && !strings.HasPrefix(stem, "$") {
			if !isEnglish {
				continue
			}
			name = "_"
		}
		add("sequence", last2, last, name)
		last2, last = last, name
	}
	add("sequence", last2, last, "$")

	if isEnglish {
		for _, p := range places {
			for at := range stems {
				if at != p.at {
					add("cross", string(rune(p.concept)), stems[at])
				}
			}
		}
	}
	var seen uint64
	for i, a := range places {
		seen |= 1 << a.concept
		for _, b := range places[i+1:] {
			if d := b.at - a.at; d > 2*nearPair || d > nearPair && utf8.RuneCountInString(words[a.at].text) > 1 {
				break
			}
			if b.at > a.at {
				add("pair", string(rune(a.concept)), string(rune(b.concept)))
			}
		}
	}
	for i := range 64 {
		if seen&(1<<i) == 0 {
			continue
		}
		add("concept", string(rune(i)))
		for j := range i {
			if seen&(1<<j) != 0 {
				add("both", string(rune(i)), string(rune(j)))
			}
		}
	}
	slices.Sort(out)
	m.numbers = out
	return slices.Compact(out)
}

// stem returns the part of a word that is compared: its beginning, or its kind of identifier.
func (m *model) stem(w string) string {
	switch {
	case m.known.own[w]:
		return "$own"
	case m.known.words[w]:
		return "$tool"
	case strings.Contains(w, "_"):
		return "$identifier"
	case strings.HasPrefix(w, "$"):
		return w
	}
	n := 0
	for i := range w {
		if n++; n > maxStem {
			return w[:i]
		}
	}
	return w
}
