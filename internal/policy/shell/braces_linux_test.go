//go:build linux

package shell

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// TestBracesExpandAsInBash compares the expansion of words with that of a real
// bash.
func TestBracesExpandAsInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	words := []string{"{a,b}", "a{,b}c", "{,}", "{a}", "{}", "{a", "a,b}", `\{a,b}`, `{a,b\}`, `{a\,b}`, `{a","b}`, "{a,\"b c\"}", `{rm,"-rf"}`, "{{a,b}", "{a,b}}", "{a,{b,c}d}", "{u},x}", "{},x}", "a{},x}",
		"HEAD@{1}..HEAD@{0}", "@{u}..x", "{a..c}", "{c..a..2}", "{1..10..3}", "{01..3}", "{-01..3}", "{-0..2}", "{+1..3}", "{1..3..}", "{1...3}", "{1..2}..{4..5}", `{a..","}`, `{"a"..c}`, "{a..{b,c}}", "{a..cc}", "{1..a}",
		"{3..1..-1}", "{1..3..0}", "{a,b}{c,d}", "{a,b}{c", "{,a}{,b}", "x{'{',}y", "{a,b,}", "{\"\",a}", "a{..}b", "{a,..}", "{a..b,c}", "{a,{b}}", "{{a},b}", "{a{b,c}", "{_..a}"}
	r := rand.New(rand.NewPCG(1, 2))
	tokens := []string{"{", "{", "}", "}", ",", ",", "..", ".", "a", "b", "c", "1", "3", "-", "0", "'x'", "\"y z\"", "','", `\,`, `\{`, `\}`, "''"}
	for range 3000 {
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(tokens[r.IntN(len(tokens))])
		}
		words = append(words, b.String())
	}
	var script strings.Builder
	for _, w := range words {
		script.WriteString("printf '%s\\0' : " + w + "; echo\n")
	}
	cmd := exec.Command(bash, "-f")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	for i, text := range words {
		want := strings.Split(strings.TrimSuffix(lines[i], "\x00"), "\x00")[1:]
		var call *syntax.CallExpr
		for stmt, err := range syntax.NewParser().StmtsSeq(strings.NewReader("x " + text)) {
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			call = stmt.Cmd.(*syntax.CallExpr)
		}
		left := expandable{maxExpanded, maxExpandedBytes}
		reader := reader{braces: &expander{src: "x " + text, room: &left, done: map[*syntax.Word]expansion{}}}
		var got []string
		for _, w := range reader.words(call.Args)[1:] {
			got = append(got, w.text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s expands to %q, in bash to %q", text, got, want)
		}
	}
}
