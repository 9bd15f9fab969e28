package toolscan

import (
	_ "embed" // for rules.txt
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/lazy"
)

//go:embed rules.txt
var rulesFile string

// defaultGap is how many other words may stand between two terms of a pattern.
const defaultGap = 4

// ruleSet is the content of rules.txt.
type ruleSet struct {
	names  []string          // of the rules, in the order of the file
	advice map[string]string // by rule
	files  []string          // parts of paths that are secret
	text   *patterns         // for sentences
	param  *patterns         // for the names of params
	about  map[string]bool   // words that say that a tool is about models or conversations
	// Terms of text, for sentences about other tools.
	calling, steering, address int
}

// patterns are phrases, with an index of their terms.
type patterns struct {
	all      []pattern
	first    map[int][]int // the patterns that begin with a term
	words    map[string][]meaning
	prefixes map[string][]meaning // by their first two letters
	terms    map[string]int       // numbers of terms, by how they are written
}

// pattern is a phrase: its terms follow each other in one sentence.
type pattern struct {
	rule     string
	severity Severity
	terms    []int
	gaps     []int // how many words may stand before each term
}

// meaning says that a word is a term, if certain words precede it.
type meaning struct {
	term   int
	prefix string   // for words that only begin with this
	before []string // the words of a phrase before the last
}

var phraseRules = lazy.New(readRules)

// Rules returns the names of the rules.
func Rules() []string { return slices.Clone(phraseRules.Get().names) }

func newPatterns() *patterns {
	return &patterns{first: map[int][]int{}, words: map[string][]meaning{},
		prefixes: map[string][]meaning{}, terms: map[string]int{}}
}

// readRules reads rules.txt, which describes its format. Mistakes panic, because the file
// is part of the program.
func readRules() *ruleSet {
	r := &ruleSet{advice: map[string]string{}, text: newPatterns(), param: newPatterns(), about: map[string]bool{}}
	classes := map[string]string{}
	rule := ""
	for line := range strings.Lines(rulesFile) {
		keyword, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch keyword {
		case "", "#":
		case "class":
			name, words, _ := strings.Cut(rest, " = ")
			classes[name] = words
		case "rule":
			rule = rest
			r.names = append(r.names, rule)
		case "advice":
			r.advice[rule] = rest
		case "high", "medium", "low":
			r.text.addPhrase(rule, Severity(keyword), rest, classes)
		case "param":
			severity, phrase, _ := strings.Cut(rest, " ")
			r.param.addPhrase(rule, Severity(severity), phrase, classes)
		default:
			panic(fmt.Sprintf("rules.txt: unknown keyword %q", keyword))
		}
	}
	r.calling, r.steering = r.text.term("$calling", classes), r.text.term("$steering", classes)
	r.address = r.text.term(addressWord, classes)
	r.files = strings.Fields(classes["files"])
	for _, w := range strings.Fields(classes["about-models"]) {
		r.about[w] = true
	}
	return r
}

// isFile reports whether a folded chunk is the path of a secret, or a variable with one.
func (r *ruleSet) isFile(chunk string) bool {
	if strings.HasPrefix(chunk, "$") && strings.ContainsAny(chunk, "_{") {
		return slices.ContainsFunc([]string{"token", "key", "secret", "passw"},
			func(part string) bool { return strings.Contains(chunk, part) })
	}
	if !strings.ContainsAny(chunk, "./~_") || strings.Contains(chunk, "process.env") {
		return false
	}
	return slices.ContainsFunc(r.files, func(part string) bool {
		at := strings.Index(chunk, part)
		if at < 0 {
			return false
		}
		end := at + len(part)
		return (at == 0 || !isNameByte(chunk[at-1]) || part[0] == '/') &&
			(end == len(chunk) || part[len(part)-1] == '/' || !isNameByte(chunk[end]))
	})
}

func isNameByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' }

func (p *patterns) addPhrase(rule string, severity Severity, phrase string, classes map[string]string) {
	out := pattern{rule: rule, severity: severity}
	gap := defaultGap
	for t := range strings.FieldsSeq(phrase) {
		if width, ok := strings.CutPrefix(t, "~"); ok {
			var err error
			if gap, err = strconv.Atoi(width); err != nil {
				panic(fmt.Sprintf("rules.txt: %q: %v", phrase, err))
			}
			continue
		}
		out.terms, out.gaps = append(out.terms, p.term(t, classes)), append(out.gaps, gap)
		gap = defaultGap
	}
	if len(out.terms) == 0 || rule == "" || severity.rank() < 0 {
		panic(fmt.Sprintf("rules.txt: a pattern needs a rule, a severity and terms: %q", phrase))
	}
	p.first[out.terms[0]] = append(p.first[out.terms[0]], len(p.all))
	p.all = append(p.all, out)
}

// term returns the number of a term, which is added if it is new.
func (p *patterns) term(t string, classes map[string]string) int {
	if n, ok := p.terms[t]; ok {
		return n
	}
	n := len(p.terms)
	p.terms[t] = n
	var alternatives []string
	for part := range strings.SplitSeq(t, "|") {
		name, isClass := strings.CutPrefix(part, "$")
		switch words, ok := classes[name]; {
		case isClass && ok:
			alternatives = append(alternatives, strings.Fields(words)...)
		case isClass && !slices.Contains([]string{fileWord, addressWord, homeWord, secretWord, imageWord}, part):
			panic(fmt.Sprintf("rules.txt: unknown class %q", part))
		default:
			alternatives = append(alternatives, part)
		}
	}
	for _, a := range alternatives {
		var list []string
		for part := range strings.SplitSeq(fold(a), "+") {
			list = append(list, symbols(part)...)
		}
		last := list[len(list)-1]
		m := meaning{term: n, before: list[:len(list)-1]}
		if stem, ok := strings.CutSuffix(last, "*"); ok {
			m.prefix = stem
			p.prefixes[stem[:2]] = append(p.prefixes[stem[:2]], m)
		} else {
			p.words[last] = append(p.words[last], m)
		}
	}
	return n
}

// sentence holds the words of a sentence and the terms of each.
type sentence struct {
	words []word
	terms []int
	from  []int // where the terms of each word begin
}

func (p *patterns) findTerms(s *sentence) {
	s.terms, s.from = s.terms[:0], s.from[:0]
	for at := range s.words {
		s.from = append(s.from, len(s.terms))
		w := s.words[at].text
		p.meanings(s, at, p.words[w])
		if len(w) >= 2 {
			p.meanings(s, at, p.prefixes[w[:2]])
		}
	}
	s.from = append(s.from, len(s.terms))
}

// meanings adds the terms in a list that the word at a position stands for.
func (p *patterns) meanings(s *sentence, at int, list []meaning) {
	for _, m := range list {
		if m.prefix != "" && !strings.HasPrefix(s.words[at].text, m.prefix) || len(m.before) > at {
			continue
		}
		ok := true
		for i, b := range m.before {
			ok = ok && s.words[at-len(m.before)+i].text == b
		}
		if ok {
			s.terms = append(s.terms, m.term)
		}
	}
}

func (s *sentence) termsAt(at int) []int { return s.terms[s.from[at]:s.from[at+1]] }

func (s *sentence) isTerm(at, term int) bool { return slices.Contains(s.termsAt(at), term) }

func (s *sentence) has(term int) bool { return slices.Contains(s.terms, term) }

// match calls found with each pattern in a sentence and the range of its words, unless skip
// says that the pattern is of no interest.
func (p *patterns) match(s *sentence, skip func(m *pattern) bool, found func(m *pattern, from, to int)) {
	for at := range s.words {
		for _, term := range s.termsAt(at) {
			for _, n := range p.first[term] {
				m := &p.all[n]
				if skip(m) {
					continue
				}
				if to := m.end(s, at); to >= 0 {
					found(m, at, to)
				}
			}
		}
	}
}

// end returns the position of the last word of the pattern if it begins at a position; -1 if
// it does not. A pattern spans fewer than 64 words.
func (m *pattern) end(s *sentence, at int) int {
	reached := uint64(1) // positions after at of the last term
	for i, term := range m.terms[1:] {
		next := uint64(0)
		for left := reached; left != 0; left &= left - 1 {
			d := bits.TrailingZeros64(left)
			for to := d + 1; to <= d+1+m.gaps[i+1] && to < 64 && at+to < len(s.words); to++ {
				if next&(1<<to) == 0 && s.isTerm(at+to, term) {
					next |= 1 << to
				}
			}
		}
		if reached = next; reached == 0 {
			return -1
		}
	}
	return at + bits.TrailingZeros64(reached)
}
