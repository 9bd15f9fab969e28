package settings

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
)

// addSeeds gives a fuzzer of settings files what the other tests know.
func addSeeds(f *testing.F) {
	f.Helper()
	for _, text := range []string{flat, nested, hostile, secretive, "", "- a", "a: &a [*a]", "? [x]\n: y", "{\"a\": /* x", "env: {A: 5}",
		"policy: {rules: [{tool: [], decision: allow}]}", "mcpServers: {a: {oauth: {scopes: x}, env: {A: }}}", "x: !!binary aGk=", "a: 0x10\n---\nb"} {
		f.Add(text)
	}
}

// checkFile holds what is true of every settings file, whatever is in it.
func checkFile(t *testing.T, name, text string) {
	l := read(newIndex(table()), ScopeProject, name, []byte(text))
	lines := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // those of YAML
		lines += strings.Count(text, end)
	}
	for _, p := range l.problems {
		if p.File != name || p.Line < 1 || p.Col < 1 || p.Message == "" {
			t.Errorf("problem without a place: %+v", p)
		}
		if p.Line > lines+1 {
			t.Errorf("problem behind the end: %+v of %d lines", p, lines)
		}
		if strings.ContainsAny(p.Message, "\x1b\r\x00") {
			t.Errorf("control characters in %q", p.Message)
		}
	}
	o := loader{index: newIndex(table()), root: "/p", env: environ{}}
	programs := o.programs(l)
	describe(programs)
	expandPrograms(programs, &Expander{})
	l.loosens()
	l.expands()
	m := merge(o.index, []*layer{l})
	s := m.settings(Globals{}, "/p") // with mistakes too: none may bring it down
	for _, v := range s.Effective() {
		if !json.Valid(v.JSON) {
			t.Errorf("%s: not JSON: %q", v.Key, v.JSON)
		}
	}
	for _, key := range []string{"hooks", "mcpServers", "context"} {
		if raw, _, ok := s.Raw(key); ok && !json.Valid(raw) && len(l.problems) == 0 {
			t.Errorf("%s: not JSON: %q", key, raw)
		}
	}
}

func FuzzYAML(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) { checkFile(t, "s.yaml", text) })
}

func FuzzJSON(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) { checkFile(t, "s.json", text) })
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"$A", "${A:-${B:-$C}}", "$$", "${", "a$b}c{", "${A:-}}", "$A$$A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x := NewExpander("/p", []string{"A=1"})
		got, err := x.Expand(s)
		if err == nil && !strings.Contains(s, "$") && got != s {
			t.Errorf("%q became %q", s, got)
		}
		if err != nil && got != "" {
			t.Errorf("%q: a value beside an error: %q", s, got)
		}
		if escaped, err := x.Expand(strings.ReplaceAll(s, "$", "$$")); err != nil || escaped != s {
			t.Errorf("%q escaped became %q, %v", s, escaped, err)
		}
		Mask(s)
		checkMentions(t, s)
	})
}

// checkMentions makes sure that nothing is read that was not announced, whatever
// is set.
func checkMentions(t *testing.T, s string) {
	announced := mentions(s)
	texts := []string{s}
	if words, err := process.Split(s); err == nil {
		texts = append(texts, words...)
	}
	for _, value := range []string{"", "v", "unset"} {
		x := Expander{Lookup: func(name string) (string, bool) {
			if kind, _ := reference(s); kind == "" && !slices.Contains(announced, name) {
				t.Errorf("%q reads %s, announced %q", s, name, announced)
			}
			return value, value != "unset"
		}}
		for _, text := range texts {
			_, _ = x.Expand(text) // what it reads counts here
		}
	}
}
