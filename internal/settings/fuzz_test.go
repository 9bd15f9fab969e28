package settings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings/consent"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// addSeeds adds the settings files of the other tests to the corpus.
func addSeeds(f *testing.F) {
	f.Helper()
	for _, text := range []string{flat, nested, hostile, secretive, "", "- a", "a: &a [*a]", "? [x]\n: y", "{\"a\": /* x", "env: {A: 5}",
		"policy: {rules: [{tool: [], decision: allow}]}", "mcpServers: {a: {oauth: {scopes: x}, env: {A: }}}", "x: !!binary aGk=", "a: 0x10\n---\nb"} {
		f.Add(text)
	}
}

// checkFile checks what must be true of every settings file, valid or not.
func checkFile(t *testing.T, name, text string) {
	x := table.NewIndex()
	l := layers.Read(x, ScopeProject, name, []byte(text))
	lines := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // line breaks of YAML
		lines += strings.Count(text, end)
	}
	for _, p := range l.Problems {
		if p.File != name || p.Line < 1 || p.Col < 1 || p.Message == "" {
			t.Errorf("problem without a position: %+v", p)
		}
		if p.Line > lines+1 {
			t.Errorf("problem after the last line: %+v of %d lines", p, lines)
		}
		if strings.ContainsAny(p.Message, "\x1b\r\x00") {
			t.Errorf("control characters in %q", p.Message)
		}
	}
	asked := (&loader{}).asked(l)
	programs := consent.Programs(asked)
	consent.Describe(programs, func(s string) (string, error) { return expand.Text(s, nil) })
	consent.Expand(programs, "/p", func(s string) (string, error) { return expand.Text(s, nil) }, nil)
	consent.Loosens(asked)
	consent.Expands(asked)
	m := merge.Of(x, []*layers.Layer{l})
	s := newSettings(m, Globals{}, "/p") // must not panic, even if the file has mistakes
	for _, v := range s.Merged().Effective() {
		if !json.Valid(v.JSON) {
			t.Errorf("%s: not JSON: %q", v.Key, v.JSON)
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
