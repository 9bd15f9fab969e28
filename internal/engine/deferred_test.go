package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// Tools that are always declared come before the three tools that give access to the
// others.
func TestReachingIncludesAlwaysDeclaredTools(t *testing.T) {
	w := newWorld(t, "search: {always: [x]}\ncoreTools: []\n", "a:x,z", "b:y")
	s := w.session(Options{})
	reg, err := s.Tools.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Offers.Reaching(t.Context(), reg, func(d *registry.Definition) bool { return d.Name == "y" })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Tool.Name)
	}
	if got := strings.Join(names, " "); got != "x y search_tools describe_tools call_tool" {
		t.Errorf("%q", got)
	}
}

// A call of call_tool becomes a call of the tool that it names, which must not be
// call_tool.
func TestResolveCallTool(t *testing.T) {
	w := newWorld(t, "", "a:x")
	s := w.session(Options{})
	f, err := s.Tools.Find(t.Context(), "call_tool", Query{Call: true, Reach: true})
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]struct{ tool, params, fails string }{
		`{"name":"x","params":{"text":"hi"}}`:                   {tool: "x", params: `{"text":"hi"}`},
		`{"name":"search_tools","params":{"query":"x"}}`:        {tool: "search_tools", params: `{"query":"x"}`},
		`{"name":"call_tool","params":{"name":"x"}}`:            {fails: "/name: call_tool cannot call itself"},
		`{"name":"x","params":"{\"text\":\"hi\"}"}`:             {tool: "x", params: `{"text":"hi"}`},
		`{"name":"x","params":"hi"}`:                            {fails: "/params: expected object"},
		`{"params":{}}`:                                         {fails: "name"},
		`{"name":"nothing","params":{}}`:                        {fails: `no tool named "nothing"`},
		`{"name":"x","params":{"text":"hi"},"name":"read_file"`: {fails: ""},
	} {
		found, name, params, err := s.Calls.Resolve(t.Context(), f, "call_tool", json.RawMessage(raw))
		if want.tool == "" {
			if err == nil || !strings.Contains(err.Error(), want.fails) {
				t.Errorf("%s: %v, want %q", raw, err, want.fails)
			}
			continue
		}
		if err != nil || found.Tool.Name != want.tool || name != want.tool || string(params) != want.params {
			t.Errorf("%s: %s %s, %v", raw, name, params, err)
		}
		if got := f.Inner(json.RawMessage(raw)); got != want.tool {
			t.Errorf("%s calls %q", raw, got)
		}
		if got := found.Inner(json.RawMessage(raw)); got != "" {
			t.Errorf("%s, a call of %s, calls %q", raw, found.Tool.Name, got)
		}
	}
	for _, other := range []string{"x", "search_tools"} {
		f, err := s.Tools.Find(t.Context(), other, Query{Call: true, Reach: true})
		if err != nil {
			t.Fatal(err)
		}
		if found, name, _, err := s.Calls.Resolve(t.Context(), f, other, json.RawMessage(`{"name":"read_file","params":{}}`)); err != nil || found.Tool != f.Tool || name != other {
			t.Errorf("a call of %s: %s, %v", other, name, err)
		}
	}
	if _, err := s.Tools.Find(t.Context(), "call_tool", Query{Call: true}); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("without Reach: %v", err)
	}
}
