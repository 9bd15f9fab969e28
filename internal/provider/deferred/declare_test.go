package deferred

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// fiveHundred returns 500 tools: those of the published servers in
// testdata/servers, and copies with generated names.
func fiveHundred(t *testing.T) ([]registry.Definition, Overview) {
	t.Helper()
	files, err := filepath.Glob("../../../testdata/servers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var defs []registry.Definition
	for round := 0; len(defs) < 500; round++ {
		for _, file := range files {
			server := strings.TrimSuffix(filepath.Base(file), ".json") + strings.Repeat("-more", round)
			for _, tool := range listing(t, file) {
				if len(defs) == 500 {
					break
				}
				defs = append(defs, registry.Definition{Name: registry.ValidName(server + "__" + tool.Name), Description: tool.Description, InputSchema: tool.InputSchema,
					Source: registry.MCPPrefix + server, Server: server, ServerTool: tool.Name})
			}
		}
	}
	return defs, overviewOf(defs)
}

type listed struct {
	Name, Description string
	InputSchema       json.RawMessage
}

func listing(t *testing.T, file string) []listed {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []listed }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list.Tools
}

func overviewOf(defs []registry.Definition) Overview {
	o := Overview{Tools: len(defs)}
	for _, d := range defs {
		if n := len(o.Sources); n == 0 || o.Sources[n-1].Name != d.Source {
			o.Sources = append(o.Sources, Source{Name: d.Source})
		}
		o.Sources[len(o.Sources)-1].Tools++
	}
	return o
}

// The declarations of 500 real tools stay within the budget in every format,
// including the search tools, and are the same in every run.
func TestBudgetOfFiveHundredTools(t *testing.T) {
	defs, overview := fiveHundred(t)
	for _, f := range provider.Formats() {
		for _, o := range []Options{{}, {All: true}, {Client: true}} {
			name := fmt.Sprintf("%s all=%t client=%t", f.Name, o.All, o.Client)
			o.Budget, o.Overview = 10_000, overview
			r := Declare(f, defs, provider.Options{}, o)
			whole, _ := f.Encode(defs, provider.Options{})
			t.Logf("%-40s %6d tokens of %d, %d deferred", name, r.Tokens, f.Tokens(whole.Data), r.Deferred)
			if r.Tokens > o.Budget || r.Deferred == 0 {
				t.Errorf("%s: %d tokens, %d deferred", name, r.Tokens, r.Deferred)
			}
			if !o.All && r.Tokens < o.Budget/2 {
				t.Errorf("%s: %d tokens leave most of the budget unused", name, r.Tokens)
			}
			if !f.Text && !json.Valid(r.Data) {
				t.Errorf("%s: no JSON", name)
			}
			if again := Declare(f, slices.Clone(defs), provider.Options{}, o); !bytes.Equal(r.Data, again.Data) {
				t.Errorf("%s: the output of two runs differs", name)
			}
		}
	}
}

func format(t *testing.T, name string) provider.Format {
	t.Helper()
	f, err := provider.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// few returns tools of three sources, each of about 220 tokens.
func few() []registry.Definition {
	var defs []registry.Definition
	for _, of := range []struct{ source, server, names string }{
		{"builtin", "", "read grep"}, {"plugin:notes", "", "note.add"}, {"mcp:hub", "hub", "issue_list issue_new"},
	} {
		for name := range strings.FieldsSeq(of.names) {
			defs = append(defs, registry.Definition{Name: name, Source: of.source, Server: of.server, Description: strings.Repeat("word ", 160)})
		}
	}
	return defs
}

func names(r Result) (declared, hidden []string) {
	for _, d := range r.Declarations {
		if d.Deferred {
			hidden = append(hidden, d.Name)
		} else {
			declared = append(declared, d.Name)
		}
	}
	return declared, hidden
}

func TestWhatIsKept(t *testing.T) {
	no, yes := false, true
	defs := few()
	keepNew := func(d *registry.Definition) bool { return d.Name == "issue_new" }
	for _, tt := range []struct {
		name     string
		options  Options
		change   func([]registry.Definition)
		declared string // in format gemini, the three tools apart
	}{
		{"all fit", Options{Budget: 10_000}, nil, "read grep note.add issue_list issue_new"},
		{"the first that fit", Options{Budget: 850}, nil, "read grep"},
		{"those always declared come first", Options{Budget: 850, Always: keepNew}, nil, "read issue_new"},
		{"all but those always declared", Options{All: true, Budget: 10_000, Always: keepNew}, nil, "issue_new"},
		{"all are always declared", Options{All: true, Always: func(*registry.Definition) bool { return true }}, nil, "read grep note.add issue_list issue_new"},
		{"deferLoading: false", Options{All: true, Budget: 10_000}, func(d []registry.Definition) { d[3].Provider.DeferLoading = &no }, "issue_list"},
		{"deferLoading: true, though all fit", Options{Budget: 10_000}, func(d []registry.Definition) { d[0].Provider.DeferLoading = &yes }, "grep note.add issue_list issue_new"},
		{"a budget of nothing", Options{}, nil, ""},
	} {
		defs := slices.Clone(defs)
		if tt.change != nil {
			tt.change(defs)
		}
		tt.options.Overview = overviewOf(defs)
		for _, name := range []string{"gemini", "openai-responses"} {
			r := Declare(format(t, name), defs, provider.Options{}, tt.options)
			got, _ := names(r)
			if r.Deferred > 0 && name == "gemini" {
				got = got[:len(got)-3]
			}
			want := strings.ReplaceAll(tt.declared, "note.add", map[string]string{"gemini": "note.add", "openai-responses": "note_add"}[name])
			if name != "gemini" && tt.options.Budget == 850 { // its own search leaves more room
				continue
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s declares %v, want %s", tt.name, name, got, want)
			}
		}
	}
}

// If all tools fit, or there are none, the output is byte for byte the same as
// without deferring.
func TestNothingToDefer(t *testing.T) {
	for _, defs := range [][]registry.Definition{few(), nil} {
		for _, f := range provider.Formats() {
			for _, o := range []Options{{Budget: 10_000}, {All: true, Always: func(*registry.Definition) bool { return true }}} {
				o.Overview = overviewOf(defs)
				plain, _ := f.Encode(defs, provider.Options{Request: true})
				if r := Declare(f, defs, provider.Options{Request: true}, o); !bytes.Equal(r.Data, plain.Data) || r.Deferred != 0 {
					t.Errorf("%s: declared otherwise: %s", f.Name, r.Data)
				}
			}
		}
	}
}

func TestNativeDeferral(t *testing.T) {
	defs := few()
	o := Options{All: true, Overview: overviewOf(defs), Always: func(d *registry.Definition) bool { return d.Name == "grep" }}
	o.Overview.Sources[2].Description = "Issues and code. Second sentence."
	got := shape(t, Declare(format(t, "anthropic"), defs, provider.Options{}, o))
	want := []string{"read deferred", "grep", "note_add deferred", "issue_list deferred", "issue_new deferred", "tool_search_tool_bm25 tool_search_tool_bm25_20251119"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("anthropic (-want +got):\n%s", diff)
	}
	got = shape(t, Declare(format(t, "openai-responses"), defs, provider.Options{}, o))
	want = []string{"builtin namespace [built-in: read] read deferred", "grep function", "plugin_notes namespace [plugin notes: note_add] note_add deferred",
		"hub namespace [Issues and code: issue_list, issue_new] issue_list deferred issue_new deferred", " tool_search"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("openai-responses (-want +got):\n%s", diff)
	}
	o.Client = true
	r := Declare(format(t, "openai-responses"), defs, provider.Options{}, o)
	if diff := cmp.Diff([]string{"grep function", " tool_search client query,limit"}, shape(t, r)); diff != "" {
		t.Errorf("openai-responses, client (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(r.Data), "There are 5 tools: built-in (2), plugin notes (1), MCP servers hub (2).") {
		t.Errorf("the search does not describe the sources: %s", r.Data)
	}
	found := o.Overview.Found(format(t, "openai-responses"), defs[2:4], nil)
	if got := fmt.Sprintf("%s", found); len(found) != 2 || !strings.Contains(got, `"name":"hub"`) || !strings.Contains(got, `"defer_loading":true`) || strings.Contains(got, `"tool_search"`) {
		t.Errorf("found: %s", got)
	}
}

// shape returns a line for each entry in a list of declarations.
func shape(t *testing.T, r Result) (lines []string) {
	t.Helper()
	type entry struct {
		Type, Name, Description, Execution string
		Deferred                           bool `json:"defer_loading"`
		Tools                              []entry
		Parameters                         struct{ Required []string }
	}
	var list []entry
	if err := json.Unmarshal(r.Data, &list); err != nil {
		t.Fatalf("%v: %s", err, r.Data)
	}
	for _, e := range list {
		line := strings.TrimRight(e.Name+" "+e.Type, " ")
		switch {
		case e.Deferred:
			line = e.Name + " deferred"
		case e.Type == "namespace":
			line += " [" + e.Description + "]"
			for _, tool := range e.Tools {
				if tool.Deferred {
					line += " " + tool.Name + " deferred"
				}
			}
		case e.Execution != "":
			line += " " + e.Execution + " query,limit"
		}
		lines = append(lines, line)
	}
	return lines
}

// The three tools get other names if a tool of the registry has or is declared
// under one of their names.
func TestTakenNames(t *testing.T) {
	for _, tt := range []struct{ registered, want string }{
		{"", "search_tools describe_tools call_tool"},
		{"call_tool", "search_tools describe_tools toolreg_call_tool"},
		{"search.tools", "toolreg_search_tools describe_tools call_tool"}, // declared as search_tools
		{"search_tools toolreg_search_tools", "toolreg_toolreg_search_tools describe_tools call_tool"},
	} {
		var got []string
		for _, d := range (Overview{}).Definitions(Taken("anthropic", strings.Fields(tt.registered))) {
			got = append(got, d.Name)
			if Kind(d.Name) == "" {
				t.Errorf("%s is not known", d.Name)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("beside %q: %v", tt.registered, got)
		}
	}
	for _, name := range []string{"", "toolreg_", "search", "search_tools_", "my_search_tools"} {
		if Kind(name) != "" {
			t.Errorf("%q counts as %s", name, Kind(name))
		}
	}
}

func TestAlwaysDeclaredToolsExceedBudget(t *testing.T) {
	defs := few()
	r := Declare(format(t, "openai"), defs, provider.Options{}, Options{Budget: 600, Overview: overviewOf(defs), Always: func(d *registry.Definition) bool { return d.Server == "" }})
	if len(r.Diagnostics) == 0 || r.Diagnostics[len(r.Diagnostics)-1].Code != "search_budget_exceeded" {
		t.Errorf("no diagnostic about %d tokens: %v", r.Tokens, r.Diagnostics)
	}
	if declared, _ := names(r); !slices.Contains(declared, "note_add") {
		t.Errorf("declared %v", declared)
	}
}

func TestAnswer(t *testing.T) {
	long := json.RawMessage(`{"$schema":"x","type":"object","properties":{"p":{"description":"` + strings.Repeat("a", 20_000) + `"}}}`)
	a := Answer{Tools: []Described{
		Describe("a", &registry.Definition{Description: "One. Two."}),
		Describe("b", &registry.Definition{Description: "One. Two.", InputSchema: long}),
		Describe("c", &registry.Definition{Description: "One. Two.", InputSchema: json.RawMessage(`{}`)}),
		Missing("d", []string{"a"}),
	}, Unavailable: []string{"mcp:hub"}}
	a.Shorten("describe_tools")
	text, err := a.Text()
	want := `{"tools":[{"name":"a","description":"One. Two.","params":{"type":"object","properties":{}}},{"name":"b","description":"One."},{"name":"c","description":"One."},` +
		`{"name":"d","error":"there is no such tool; did you mean a?"}],"unavailable":["mcp:hub"],` +
		`"notes":["describe_tools returns the params of the tools that are listed without them.","These sources failed, so their tools cannot be found at the moment: mcp:hub."]}`
	if err != nil || text != want {
		t.Errorf("%v\n%s\n%s", err, text, want)
	}
	if text, _ := (Answer{}).Text(); text != `{"tools":[]}` {
		t.Error(text)
	}
}

// The size of the namespaces of a thousand servers is limited.
func TestManySources(t *testing.T) {
	o := Overview{}
	names := map[string][]string{}
	for i := range 1000 {
		source := fmt.Sprintf("mcp:server-%d", i)
		o.Sources = append(o.Sources, Source{Name: source, Tools: 3})
		names[source] = []string{strings.Repeat("x", 50), "second", strings.Repeat("y", 50)}
	}
	total := 0
	for d := range maps.Values(o.namespaces(names)) {
		total += len(d)
	}
	if total > 1000*(minDescription+20) {
		t.Errorf("%d bytes", total)
	}
	if text := o.searchText(); len(text) > 4_000 || !strings.Contains(text, "and 940 more sources") {
		t.Error(text)
	}
}
