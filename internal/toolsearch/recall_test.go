package toolsearch

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// listed are the tools of the published servers in testdata.
type listed struct {
	definitions []*registry.Definition
	names       []string // server/tool, as the questions have them
}

func (l *listed) documents() []Document {
	out := make([]Document, len(l.definitions))
	for i, d := range l.definitions {
		out[i] = Of(d, "")
	}
	return out
}

func readListed(tb testing.TB) *listed {
	out := &listed{}
	for _, pattern := range []string{"testdata/listings/*.json", "../../testdata/servers/*.json"} {
		files, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(files) == 0 {
			tb.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			out.add(tb, file)
		}
	}
	return out
}

func (l *listed) add(tb testing.TB, file string) {
	var listing struct {
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &listing)
	}
	if err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	server := strings.TrimSuffix(filepath.Base(file), ".json")
	for _, t := range listing.Tools {
		l.definitions = append(l.definitions, &registry.Definition{Name: t.Name, ServerTool: t.Name, Description: t.Description,
			InputSchema: t.InputSchema, Source: registry.MCPPrefix + server, Server: server})
		l.names = append(l.names, server+"/"+t.Name)
	}
}

// question is a line of testdata/questions.txt.
type question struct {
	text   string
	answer []string // any of these tools is correct
}

// heldBack reports whether the question belongs to the half on which the ranking was not
// tuned.
func (q question) heldBack() bool {
	h := fnv.New32a()
	h.Write([]byte(q.text))
	return h.Sum32()%2 == 1
}

func readQuestions(tb testing.TB, known []string) (tuned, heldBack []question) {
	content, err := os.ReadFile(filepath.FromSlash("testdata/questions.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		text, answer, _ := strings.Cut(strings.TrimSpace(line), " | ")
		q := question{text, strings.Fields(answer)}
		if len(q.answer) == 0 {
			tb.Fatalf("no answer in %q", line)
		}
		for _, name := range q.answer {
			if !slices.Contains(known, name) {
				tb.Fatalf("%s is not a tool of any server (%q)", name, text)
			}
		}
		if q.heldBack() {
			heldBack = append(heldBack, q)
		} else {
			tuned = append(tuned, q)
		}
	}
	return tuned, heldBack
}

// recall is the share of questions with an answer among the first 1, 5 and 10 hits.
type recall struct{ at1, at5, at10 float64 }

func (r recall) String() string {
	return fmt.Sprintf("@1 %.3f  @5 %.3f  @10 %.3f", r.at1, r.at5, r.at10)
}

// measure runs the questions and calls missed for those without an answer among the first
// 5 hits.
func (l *listed) measure(x *Index, questions []question, missed func(q question, rank int, best []string)) recall {
	var out recall
	each := 1 / float64(len(questions))
	for _, q := range questions {
		hits, _ := x.Rank(q.text, len(l.names))
		rank := slices.IndexFunc(hits, func(h Hit) bool { return slices.Contains(q.answer, l.names[h.Document]) })
		if rank == 0 {
			out.at1 += each
		}
		if rank >= 0 && rank < 5 {
			out.at5 += each
		} else if missed != nil {
			var best []string
			for _, h := range hits[:min(5, len(hits))] {
				best = append(best, l.names[h.Document])
			}
			missed(q, rank+1, best)
		}
		if rank >= 0 && rank < 10 {
			out.at10 += each
		}
	}
	return out
}

// TestRecall searches the tools of published servers with questions that a person wrote.
// The ranking was tuned on one half of the questions; the bounds are for the other. With
// -v it shows the figures, and where the tuned half failed.
func TestRecall(t *testing.T) {
	l := readListed(t)
	x := New(l.documents())
	tuned, heldBack := readQuestions(t, l.names)
	onTuned := l.measure(x, tuned, func(q question, rank int, best []string) {
		t.Logf("%4d %q\n\twant %q\n\tgot  %q", rank, q.text, q.answer, best)
	})
	got := l.measure(x, heldBack, nil)
	t.Logf("%d tools; tuned half (%d): %v; held-back half (%d): %v", len(l.names), len(tuned), onTuned, len(heldBack), got)
	if got.at5 < 0.70 || got.at10 < 0.76 {
		t.Errorf("recall on the held-back half: %v; want @5 0.70, @10 0.76", got)
	}
}

// many repeats the listed tools up to n. Each repetition has other words, so that there
// are as many postings as for n tools of different servers.
func many(tb testing.TB, n int) []Document {
	l := readListed(tb)
	documents := l.documents()
	out := make([]Document, n)
	for i := range out {
		out[i] = documents[i%len(documents)]
		if round := i / len(documents); round > 0 {
			out[i].Server = fmt.Sprint(out[i].Server, round)
		}
	}
	return out
}

func BenchmarkIndex10000(b *testing.B) {
	documents := many(b, 10000)
	for b.Loop() {
		New(documents)
	}
}

func BenchmarkRank10000(b *testing.B) {
	x := New(many(b, 10000))
	for b.Loop() {
		x.Rank("add a comment to the issue about the login page in linear", 10)
	}
}

func BenchmarkRank10000WithTypingError(b *testing.B) {
	x := New(many(b, 10000))
	for b.Loop() {
		x.Rank("delte a brach", 10)
	}
}
