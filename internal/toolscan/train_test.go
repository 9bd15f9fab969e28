package toolscan_test

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/toolscan"
)

var (
	train = flag.Bool("train", false, "train the model, and write weights.bin")
	folds = flag.Int("folds", 0, "train this often without a part of the texts, and print what is found of it")
)

// example is a definition that the model learns from.
type example struct {
	source    string // file or, for published tools, server
	text      string
	poisoned  bool
	weight    float64
	sentences [][]uint32
	suspects  [][]uint32 // of a poisoned one: those that no harmless example has
}

// textTool returns a tool that has a text in its description, in the name of a param or in an
// enum.
func textTool(section, text string) json.RawMessage {
	tool := map[string]any{"name": "t", "description": text}
	switch section {
	case "names":
		tool = map[string]any{"name": "t", "inputSchema": map[string]any{"properties": map[string]any{text: map[string]any{}}}}
	case "enums":
		tool = map[string]any{"name": "t", "inputSchema": map[string]any{"properties": map[string]any{"p": map[string]any{"enum": []string{text}}}}}
	}
	raw, _ := json.Marshal(tool) // of strings
	return raw
}

// hidden are the kinds of attacks that are not in words.
var hidden = []string{"near", "lookalike", "unicode", "invisible", "distant", "far", "rug-pull", "encoded", "spaced"}

// readExamples reads what the model learns from.
func readExamples(t *testing.T) (out []example) {
	add := func(source, text string, poisoned bool, weight float64, l toolscan.Listing, known toolscan.Known) {
		if sentences := toolscan.Features(l, known); len(sentences) > 0 {
			out = append(out, example{source: source, text: text, poisoned: poisoned, weight: weight, sentences: sentences})
		}
	}
	line := func(source, section, text string, poisoned bool, weight float64) {
		add(source, text, poisoned, weight, toolscan.Listing{Tools: []json.RawMessage{textTool(section, text)}}, toolscan.Known{})
	}
	for _, file := range []string{"corpus/poisoned-en.txt", "corpus/poisoned-other.txt", "corpus/harmless-en.txt", "corpus/harmless-other.txt", "plausible.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		section := ""
		for text := range strings.Lines(string(data)) {
			text = strings.TrimSpace(text)
			if name, ok := strings.CutPrefix(text, "## "); ok {
				section = name
				continue
			}
			line(strings.TrimPrefix(file, "corpus/"), section, text, strings.Contains(file, "poisoned"), 1)
		}
	}
	for i, d := range readDefinitions(t) {
		source := "definitions, harmless"
		if d.Poisoned {
			source = "definitions, poisoned"
		}
		add(source, fmt.Sprint("definitions.jsonl:", i+1), d.Poisoned, 1, toolscan.Listing{Tools: []json.RawMessage{d.Tool}}, toolscan.Known{})
	}
	if !*train && *folds == 0 {
		return out // TestTable has the others
	}
	for _, p := range expandPatterns(t) {
		line("patterns", "", p.text, p.poisoned, 0.5)
	}
	for _, a := range readAttacks(t) {
		if !slices.Contains(hidden, a.Kind) {
			l, known := a.listing()
			add("attacks", fmt.Sprint("attacks.jsonl:", a.line), true, 1, l, known)
		}
	}
	all := readPublished(t)
	for i, s := range all {
		for j, tool := range s.tools {
			add("server "+s.name, s.name+"/"+s.names[j], false, 1, toolscan.Listing{Server: s.name, Tools: []json.RawMessage{tool}}, others(all, i))
		}
	}
	return out
}

// definition is a line of corpus/definitions.jsonl.
type definition struct {
	Author   string
	Poisoned bool
	Tool     json.RawMessage
}

func readDefinitions(t *testing.T) (out []definition) {
	data, err := os.ReadFile("testdata/corpus/definitions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var d definition
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("definitions.jsonl:%d: %v", len(out)+1, err)
		}
		out = append(out, d)
	}
	return out
}

// expansion is a text made from a line of patterns.txt.
type expansion struct {
	text     string
	poisoned bool
}

// expandPatterns returns texts made from the lines of patterns.txt, some for each.
func expandPatterns(t *testing.T) (out []expansion) {
	data, err := os.ReadFile("testdata/corpus/patterns.txt")
	if err != nil {
		t.Fatal(err)
	}
	slots := map[string][]string{}
	rng := rand.New(rand.NewPCG(3, 4))
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "= "); ok {
			name, choices, _ := strings.Cut(rest, "|")
			for choice := range strings.SplitSeq(choices, "|") {
				slots[strings.TrimSpace(name)] = append(slots[strings.TrimSpace(name)], strings.TrimSpace(choice))
			}
		}
	}
	for _, line := range lines {
		for range 30 {
			text := line[2:]
			for line[0] != '=' && strings.Contains(text, "{") {
				before, rest, _ := strings.Cut(text, "{")
				name, after, _ := strings.Cut(rest, "}")
				choices := slots[name]
				if choices == nil {
					t.Fatalf("patterns.txt: %s has an unknown slot %q", line, name)
				}
				text = before + choices[rng.IntN(len(choices))] + after
			}
			if text = strings.TrimSpace(text); line[0] != '=' {
				out = append(out, expansion{strings.ToUpper(text[:1]) + text[1:], line[0] == '+'})
			}
		}
	}
	return out
}

// model is what is trained.
type model struct {
	weights []float32
	bias    float64
}

func (m *model) score(features []uint32) float64 {
	sum := 0.0
	for _, f := range features {
		sum += float64(m.weights[f])
	}
	return sum/math.Sqrt(float64(len(features)+toolscan.Damping)) + m.bias
}

// worst returns the sentence with the highest score.
func worst(sentences [][]uint32, score func([]uint32) float64) (at int, highest float64) {
	highest = math.Inf(-1)
	for i, s := range sentences {
		if v := score(s); v > highest {
			at, highest = i, v
		}
	}
	return at, highest
}

// learn returns the mean of models that differ in the order of the examples.
func learn(list []example) *model {
	harmless := map[string]bool{}
	for _, e := range list {
		for _, s := range e.sentences {
			if !e.poisoned {
				harmless[fmt.Sprint(s)] = true
			}
		}
	}
	for i := range list {
		e := &list[i]
		e.suspects = slices.DeleteFunc(slices.Clone(e.sentences), func(s []uint32) bool { return harmless[fmt.Sprint(s)] })
		if len(e.suspects) == 0 {
			e.suspects = e.sentences
		}
	}
	const models = 4
	mean := &model{weights: make([]float32, 1<<toolscan.FeatureBits)}
	for n := range models {
		m := learnOnce(list, uint64(n))
		mean.bias += m.bias / models
		for i, w := range m.weights {
			mean.weights[i] += w / models
		}
	}
	return mean
}

// learnOnce trains a model by logistic regression (AdaGrad). Of a definition it learns the
// sentence that has the highest score so far: at least one sentence of a poisoned definition, and
// none of a harmless one, is an instruction.
func learnOnce(list []example, seed uint64) *model {
	m := &model{weights: make([]float32, 1<<toolscan.FeatureBits)}
	squares := make([]float32, len(m.weights))
	rng := rand.New(rand.NewPCG(seed, 2))
	step := func(features []uint32, want, weight float64) {
		g := weight * (1/(1+math.Exp(-m.score(features))) - want)
		each := float32(g / math.Sqrt(float64(len(features)+toolscan.Damping)))
		for _, f := range features {
			gradient := each + 2e-6*m.weights[f]
			squares[f] += gradient * gradient
			m.weights[f] -= 0.5 * gradient / float32(math.Sqrt(float64(squares[f])+1e-6))
		}
		m.bias -= 0.02 * g
	}
	for range 8 {
		for _, i := range rng.Perm(len(list)) {
			e := &list[i]
			if e.poisoned {
				at, _ := worst(e.suspects, m.score)
				step(e.suspects[at], 1, e.weight)
				continue
			}
			at, _ := worst(e.sentences, m.score)
			step(e.sentences[at], 0, e.weight)
			step(e.sentences[rng.IntN(len(e.sentences))], 0, e.weight)
		}
	}
	return m
}

// encode returns a model in the form of weights.bin.
func (m *model) encode() []byte {
	scale := float32(0)
	for _, w := range m.weights {
		scale = max(scale, float32(math.Abs(float64(w)))/127)
	}
	out := binary.LittleEndian.AppendUint32(nil, math.Float32bits(scale))
	out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(m.bias)))
	for _, w := range m.weights {
		out = append(out, byte(int8(math.Round(float64(w/scale)))))
	}
	return out
}

// fold returns to which part an example belongs: the tools of a server are in one.
func (e *example) fold(n int) int {
	h := fnv.New32a()
	key := e.text
	if strings.HasPrefix(e.source, "server ") {
		key = e.source
	}
	h.Write([]byte(key))
	return int(h.Sum32()>>3) % n
}

// tally is how many definitions there are, and how many have a finding.
type tally struct{ all, any, high int }

// report logs what is found in examples by source.
func report(t *testing.T, list []example, score func(e *example) float64) map[string]*tally {
	out := map[string]*tally{}
	for i := range list {
		e := &list[i]
		source := e.source
		if strings.HasPrefix(source, "server ") {
			source = "published"
		}
		if out[source] == nil {
			out[source] = &tally{}
		}
		out[source].all++
		v := score(e)
		if v >= toolscan.MediumScore {
			out[source].any++
		}
		if v >= toolscan.HighScore {
			out[source].high++
		}
		if v >= toolscan.MediumScore != e.poisoned && source != "patterns" {
			t.Logf("%s: %.2f %s", e.source, v, e.text)
		}
	}
	for source, c := range out {
		t.Logf("%s: %d of %d found, %d high", source, c.any, c.all, c.high)
	}
	return out
}

// TestModel checks that the model knows what it has learned. With -train it learns anew; with
// -folds it prints what is found of texts that were not learned.
func TestModel(t *testing.T) {
	list := readExamples(t)
	if *folds > 0 {
		scores := map[*example]float64{}
		for n := range *folds {
			m := learn(slices.DeleteFunc(slices.Clone(list), func(e example) bool { return e.source != "patterns" && e.fold(*folds) == n }))
			for i := range list {
				if e := &list[i]; e.fold(*folds) == n {
					_, scores[e] = worst(e.sentences, m.score)
				}
			}
		}
		report(t, list, func(e *example) float64 { return scores[e] })
		return
	}
	if *train {
		if err := os.WriteFile("weights.bin", learn(list).encode(), 0o666); err != nil {
			t.Fatal(err)
		}
		t.Log("weights.bin is written; the program has it when it is built again")
		return
	}
	for source, c := range report(t, list, func(e *example) float64 { _, v := worst(e.sentences, toolscan.Score); return v }) {
		if poisoned := strings.Contains(source, "poisoned"); poisoned && c.any*100 < c.all*95 || !poisoned && c.any*100 > c.all {
			t.Errorf("%s: %d of %d have findings", source, c.any, c.all)
		}
	}
}
