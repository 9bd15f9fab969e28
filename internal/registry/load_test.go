package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed is a source with fixed tools.
type listed struct {
	name  string
	tools []Tool
	diags []Diagnostic
	err   error
	after <-chan struct{} // Discover waits until it is closed; may be nil
	done  chan<- struct{} // closed when Discover returns
	runs  *int
}

func (l *listed) Name() string { return l.name }

func (l *listed) Discover(ctx context.Context) ([]Tool, []Diagnostic, error) {
	if l.runs != nil {
		*l.runs++
	}
	if l.after != nil {
		<-l.after
	}
	if l.done != nil {
		defer close(l.done)
	}
	return l.tools, l.diags, l.err
}

func builtinTool(name string, aliases ...string) Tool {
	return Tool{Definition: Definition{Name: name, DisplayName: name, Source: SourceBuiltin, Aliases: aliases}}
}

func discoveredTool(name string) Tool {
	return Tool{Definition: Definition{Name: name, Source: SourceCommand}}
}

func mcpTool(server, name string) Tool {
	return Tool{Definition: Definition{Name: ValidName(name), Source: MCPPrefix + server, Server: server, ServerTool: name,
		DisplayName: fmt.Sprintf("%s (%s MCP Server)", name, server)}}
}

func pluginTool(plugin, name, version string) Tool {
	return Tool{Definition: Definition{Name: name, Source: PluginPrefix + plugin, Plugin: plugin, Version: version}}
}

func sourcesOf(tools ...Tool) []Source {
	var out []Source
	for _, t := range tools {
		last := len(out) - 1
		if last >= 0 && out[last].Name() == t.Source {
			l := out[last].(*listed)
			l.tools = append(l.tools, t)
			continue
		}
		out = append(out, &listed{name: t.Source, tools: []Tool{t}})
	}
	return out
}

func load(t *testing.T, opts Options, sources ...Source) *Registry {
	t.Helper()
	return NewLoader(opts).Load(t.Context(), sources, false)
}

func namesOf(tools []*Tool) []string {
	out := []string{}
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func codesOf(diags []Diagnostic) []string {
	var out []string
	for _, d := range diags {
		out = append(out, d.Code+" "+d.Tool)
	}
	return out
}

// The recorded steps are registrations in one registry. Here, consecutive steps of
// the same kind become one source, which results in the same order.
func TestRegistrationMatchesRecordedCases(t *testing.T) {
	type vector struct {
		Name  string
		Steps []map[string]json.RawMessage
		Tools []struct {
			Name, DisplayName, Server, ServerTool string
		}
		Sorted   []string
		ByServer map[string][]string
	}
	differs := map[string]string{
		"rediscover-all-drops-discovered-and-mcp":       "each run builds a new registry",
		"rediscover-all-loses-overwritten-builtin":      "each run builds a new registry",
		"rediscover-all-loses-builtin-behind-qualified": "each run builds a new registry",
		"rediscover-unknown-server":                     "each run builds a new registry",
		"after-rediscovery-order-changes":               "each run builds a new registry",
		"mcp-then-builtin-overwrites":                   "built-in tools always come first",
	}
	// Unlike there, qualified names are made valid, and a second conflict overwrites
	// nothing.
	better := map[string]bool{
		"qualified-name-already-taken-by-other-mcp": true,
		"sanitised-names-collide":                   true,
		"qualified-name-not-length-limited":         true,
		"qualified-name-unicode":                    true,
	}
	ran := 0
	for _, v := range readVectors[vector](t, "registry.json") {
		if _, ok := differs[v.Name]; ok {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			tools := toolsOfSteps(t, v.Steps)
			reg := load(t, Options{}, sourcesOf(tools...)...)
			if slices.ContainsFunc(reg.Diagnostics(), func(d Diagnostic) bool { return strings.Contains(d.Message, "taken too") }) {
				t.Fatalf("diagnostics: %v", reg.Diagnostics())
			}
			if _, ok := better[v.Name]; ok {
				for _, tool := range reg.Tools() {
					if !isValidName(tool.Name) {
						t.Errorf("name %q is not valid", tool.Name)
					}
				}
				if reg.Len() != len(tools) {
					t.Errorf("%d tools of %d are left", reg.Len(), len(tools))
				}
				return
			}
			var want []string
			for _, w := range v.Tools {
				want = append(want, w.Name+"|"+w.DisplayName+"|"+w.Server+"|"+w.ServerTool)
			}
			var got []string
			for _, g := range reg.Tools() {
				got = append(got, g.Name+"|"+g.DisplayName+"|"+g.Server+"|"+g.ServerTool)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("tools (-want +got):\n%s", d)
			}
			if d := cmp.Diff(v.Sorted, namesOf(reg.Sorted())); d != "" {
				t.Errorf("sorted (-want +got):\n%s", d)
			}
			for server, names := range v.ByServer {
				if d := cmp.Diff(names, namesOf(reg.ByServer(server))); d != "" {
					t.Errorf("by server %s (-want +got):\n%s", server, d)
				}
			}
		})
		ran++
	}
	if ran < 8 {
		t.Errorf("only %d recorded cases ran", ran)
	}
}

func toolsOfSteps(t *testing.T, steps []map[string]json.RawMessage) []Tool {
	t.Helper()
	text := func(m map[string]json.RawMessage, key string) string {
		var s string
		if raw, ok := m[key]; ok {
			if err := json.Unmarshal(raw, &s); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	var out []Tool
	for _, s := range steps {
		switch {
		case s["builtin"] != nil:
			tool := builtinTool(text(s, "builtin"))
			tool.DisplayName = text(s, "displayName")
			out = append(out, tool)
		case s["discovered"] != nil:
			out = append(out, discoveredTool(text(s, "discovered")))
		case s["mcp"] != nil:
			out = append(out, mcpTool(text(s, "server"), text(s, "mcp")))
		default:
			t.Fatalf("unknown step %v", s)
		}
	}
	return out
}

func TestOrderDoesNotDependOnWhichSourceFinishesFirst(t *testing.T) {
	gate := make(chan struct{})
	slow := &listed{name: "mcp:a", tools: []Tool{mcpTool("a", "t")}, after: gate}
	fast := &listed{name: "mcp:b", tools: []Tool{mcpTool("b", "t")}, done: gate}
	reg := load(t, Options{}, slow, fast)
	if d := cmp.Diff([]string{"t", "b__t"}, namesOf(reg.Tools())); d != "" {
		t.Error(d)
	}
	if got, err := reg.Lookup("a__t"); err != nil || got.Server != "a" {
		t.Errorf("a__t = %v, %v", got, err)
	}
}

func TestSecondNameConflictAddsHash(t *testing.T) {
	tools := []Tool{builtinTool("t"), builtinTool("s__t"), mcpTool("s", "t")}
	reg := load(t, Options{}, sourcesOf(tools...)...)
	names := namesOf(reg.Tools())
	if len(names) != 3 || names[0] != "t" || names[1] != "s__t" || !strings.HasPrefix(names[2], "s__t_") || len(names[2]) != len("s__t_")+6 {
		t.Fatalf("names = %v", names)
	}
	again := load(t, Options{}, sourcesOf(tools...)...)
	if d := cmp.Diff(names, namesOf(again.Tools())); d != "" {
		t.Errorf("a second run differs: %s", d)
	}
	if d := cmp.Diff([]string{"name_qualified " + names[2]}, codesOf(reg.Diagnostics())); d != "" {
		t.Error(d)
	}
}

func TestConflicts(t *testing.T) {
	tests := []struct {
		name      string
		conflicts string
		tools     []Tool
		want      []string
		codes     []string
	}{
		{"discovered overwrites in place", "", []Tool{builtinTool("a"), builtinTool("b"), discoveredTool("a")},
			[]string{"a command", "b builtin"}, []string{"name_overwritten a"}},
		{"discovered rejected", ConflictReject, []Tool{builtinTool("a"), discoveredTool("a")},
			[]string{"a builtin"}, []string{"name_taken a"}},
		{"discovered qualified", ConflictQualify, []Tool{builtinTool("a"), discoveredTool("a")},
			[]string{"a builtin", "command__a command"}, []string{"name_qualified command__a"}},
		{"built-in tools take precedence over plugins", "", []Tool{builtinTool("a"), pluginTool("p", "a", "")},
			[]string{"a builtin"}, []string{"name_taken a"}},
		{"first plugin wins", "", []Tool{pluginTool("p", "a", "9.0.0"), pluginTool("q", "a", "10.0.0")},
			[]string{"a plugin:p"}, []string{"name_taken a"}},
		{"plugin with the name of a built-in tool", "", []Tool{builtinTool("a"), pluginTool("a", "x", ""), pluginTool("a", "y", "")},
			[]string{"a builtin"}, []string{"plugin_blocked "}},
		{"nameless", "", []Tool{{Definition: Definition{Source: SourceCommand}}, discoveredTool("b")},
			[]string{"b command"}, []string{"tool_nameless "}},
		{"a server's tool cannot take an alias of a built-in tool", "", []Tool{builtinTool("read_file", "read"), mcpTool("s", "read")},
			[]string{"read_file builtin", "s__read mcp:s"}, []string{"name_qualified s__read"}},
		{"a discovered tool can take an alias of a built-in tool", "", []Tool{builtinTool("read_file", "read"), discoveredTool("read")},
			[]string{"read_file builtin", "read command"}, []string{"name_overwritten read"}},
		{"or is rejected", ConflictReject, []Tool{builtinTool("read_file", "read"), discoveredTool("read")},
			[]string{"read_file builtin"}, []string{"name_taken read"}},
		{"case twins", "", []Tool{mcpTool("s", "echo"), mcpTool("s", "Echo")},
			[]string{"echo mcp:s", "Echo mcp:s"}, []string{"name_case_twin Echo"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reg := load(t, Options{Conflicts: tt.conflicts}, sourcesOf(tt.tools...)...)
			var got []string
			for _, x := range reg.Tools() {
				got = append(got, x.Name+" "+x.Source)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("tools (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.codes, codesOf(reg.Diagnostics())); d != "" {
				t.Errorf("diagnostics (-want +got):\n%s", d)
			}
		})
	}
}

// closing is a source that has to be closed.
type closing struct {
	listed
	closed int
	err    error
}

func (c *closing) Close() error { c.closed++; return c.err }

func TestCloseClosesEveryDiscoveredSource(t *testing.T) {
	failed := errors.New("it hangs")
	a, b, never := &closing{listed: listed{name: "mcp:a"}}, &closing{listed: listed{name: "mcp:b"}, err: failed}, &closing{listed: listed{name: "mcp:c"}}
	l := NewLoader(Options{})
	l.Load(t.Context(), []Source{a, b, &listed{name: "builtin"}}, false)
	if err := l.Close(); !errors.Is(err, failed) || err.Error() != "closing mcp:b: it hangs" {
		t.Errorf("%v", err)
	}
	if a.closed != 1 || b.closed != 1 || never.closed != 0 {
		t.Errorf("closed %d, %d and %d times", a.closed, b.closed, never.closed)
	}
}

func TestLongNamesAreHashedWithinTheLimit(t *testing.T) {
	name := func(middle string) string { return strings.Repeat("a", 30) + middle + strings.Repeat("b", 40) }
	reg := load(t, Options{}, sourcesOf(mcpTool("s", name("1")), mcpTool("s", name("2")), mcpTool("s", name("3")), mcpTool("s", name("4")))...)
	seen := map[string]bool{}
	for _, tool := range reg.Tools() {
		if len(tool.Name) > maxName || seen[tool.Name] {
			t.Errorf("the name %q has %d characters or comes twice", tool.Name, len(tool.Name))
		}
		seen[tool.Name] = true
	}
	if len(seen) != 4 {
		t.Errorf("names: %v", seen)
	}
}

func TestVersionsOfOneName(t *testing.T) {
	reg := load(t, Options{}, sourcesOf(pluginTool("p", "a", "1.9.0"), pluginTool("p", "a", "1.10.0"),
		pluginTool("p", "a", "1.10.0-rc.1"), pluginTool("p", "b", "2.0.0"))...)
	for name, want := range map[string]string{"a": "1.10.0", "a@1.9.0": "1.9.0", "a@1.10.0-rc.1": "1.10.0-rc.1", "b@2.0.0": "2.0.0"} {
		got, err := reg.Lookup(name)
		if err != nil || got.Version != want {
			t.Errorf("Lookup(%s) = %v, %v, want version %s", name, got, err, want)
		}
	}
	if _, err := reg.Lookup("a@3.0.0"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a@3.0.0: %v", err)
	}
	if n := len(reg.Tools()); n != 2 {
		t.Errorf("%d tools, want 2: older versions are not declared", n)
	}
	var got []string
	for _, v := range reg.Versions("a") {
		got = append(got, v.Version)
	}
	if d := cmp.Diff([]string{"1.10.0", "1.10.0-rc.1", "1.9.0"}, got); d != "" {
		t.Error(d)
	}
}

func TestLookup(t *testing.T) {
	reg := load(t, Options{}, sourcesOf(builtinTool("read_file", "read", "ReadFileTool"), mcpTool("My.Server", "do it!"))...)
	for name, want := range map[string]string{
		"read_file": "read_file", "read": "read_file", "ReadFileTool": "read_file",
		"do_it_": "do_it_", "My.Server__do it!": "do_it_", "My.Server__do_it_": "do_it_",
	} {
		got, err := reg.Lookup(name)
		if err != nil || got.Name != want {
			t.Errorf("Lookup(%q) = %v, %v, want %s", name, got, err, want)
		}
	}
	_, err := reg.Lookup("raed_file")
	var nf *NotFoundError
	if !errors.As(err, &nf) || len(nf.Near) == 0 || nf.Near[0] != "read_file" || nf.Count != 2 {
		t.Errorf("near names: %v", err)
	}
	reg = load(t, Options{}, sourcesOf(mcpTool("s", "aecho"), mcpTool("s", "decho"), mcpTool("s", "echo"))...)
	if _, err := reg.Lookup("ech"); !errors.As(err, &nf) || strings.Join(nf.Near, " ") != "aecho decho echo" {
		t.Errorf("%v, want each tool once", err)
	}
	for name, want := range map[string]string{
		"zzz": "", "*zzz": "", "[": "", "my.server__do it": "My.Server__do_it_", "grep@2.0.0": "grep",
	} {
		reg := load(t, Options{}, sourcesOf(builtinTool("grep"), mcpTool("My.Server", "do it!"))...)
		if _, err := reg.Matching(name); !errors.As(err, &nf) || strings.Join(nf.Near, " ") != want {
			t.Errorf("%s: %v, want near names %q", name, err, want)
		}
	}
}

func TestPartialRegistryUsesQualifiedNames(t *testing.T) {
	l := NewLoader(Options{})
	reg := l.Load(t.Context(), sourcesOf(builtinTool("a"), mcpTool("s", "t")), true)
	if d := cmp.Diff([]string{"a", "s__t"}, namesOf(reg.Tools())); d != "" {
		t.Error(d)
	}
	if len(reg.Diagnostics()) != 0 {
		t.Errorf("diagnostics: %v", reg.Diagnostics())
	}
}

func TestLoaderDiscoversEachSourceOnce(t *testing.T) {
	runs := 0
	a := &listed{name: "builtin", tools: []Tool{builtinTool("a")}, runs: &runs}
	b := &listed{name: "mcp:s", tools: []Tool{mcpTool("s", "a")}}
	l := NewLoader(Options{})
	l.Load(t.Context(), []Source{a}, true)
	reg := l.Load(t.Context(), []Source{a, b}, false)
	if runs != 1 {
		t.Errorf("discovered %d times", runs)
	}
	if d := cmp.Diff([]string{"a", "s__a"}, namesOf(reg.Tools())); d != "" {
		t.Error(d)
	}
}

type panicking struct{}

func (panicking) Name() string { return "mcp:boom" }
func (panicking) Discover(context.Context) ([]Tool, []Diagnostic, error) {
	panic("boom")
}

func TestFailedSourceDoesNotAffectOthers(t *testing.T) {
	bad := &listed{name: "mcp:bad", tools: []Tool{mcpTool("bad", "x")}, err: errors.New("exit status 1")}
	good := &listed{name: "mcp:good", tools: []Tool{mcpTool("good", "y")}}
	reg := load(t, Options{}, bad, panicking{}, good)
	if d := cmp.Diff([]string{"y"}, namesOf(reg.Tools())); d != "" {
		t.Error(d)
	}
	var states []string
	for _, r := range reg.Reports() {
		states = append(states, fmt.Sprintf("%s %s %d", r.Name, r.State, r.Tools))
	}
	if d := cmp.Diff([]string{"mcp:bad failed 0", "mcp:boom failed 0", "mcp:good ok 1"}, states); d != "" {
		t.Error(d)
	}
}

func TestRenewDiscoversAgain(t *testing.T) {
	l := NewLoader(Options{})
	runs := 0
	s := &listed{name: "mcp:s", tools: []Tool{mcpTool("s", "old")}, runs: &runs}
	other := &listed{name: "mcp:o", tools: []Tool{mcpTool("o", "t")}, runs: new(int)}
	if got := l.Given(s); got != nil {
		t.Errorf("given before it was run: %v", got)
	}
	was := l.Load(t.Context(), []Source{s, other}, false)
	s.tools = []Tool{mcpTool("s", "t")}
	l.Renew(t.Context(), s)
	if given := l.Given(s); len(given) != 1 || given[0].Name != "t" {
		t.Errorf("given %v", given)
	}
	now := l.Load(t.Context(), []Source{s, other}, false)
	if d := cmp.Diff([]string{"old", "t"}, namesOf(was.Tools())); d != "" {
		t.Errorf("the first registry changed: %s", d)
	}
	if d := cmp.Diff([]string{"t", "o__t"}, namesOf(now.Tools())); d != "" {
		t.Errorf("the second registry: %s", d)
	}
	if runs != 2 || *other.runs != 1 {
		t.Errorf("%d and %d runs, want 2 and 1", runs, *other.runs)
	}
	s.err = errors.New("gone")
	l.Renew(t.Context(), s)
	if l.Given(s) != nil || l.Load(t.Context(), []Source{s}, false).Reports()[0].State != StateFailed {
		t.Error("the tools of a source that failed the second time are used")
	}
}

func TestTakesParams(t *testing.T) {
	for schema, want := range map[string]bool{
		``: false, `{}`: false, `{"type":"object"}`: false, `{"type":"object","properties":{}}`: false,
		`{"type":"object","properties":{ },"required":[ ]}`: false, `{"additionalProperties":false}`: false,
		`{"additionalProperties":true}`: true, `{"additionalProperties":{}}`: true, `{"properties":{"a":true}}`: true,
		`{"patternProperties":{"^x":{}}}`: true, `{"required":["a"]}`: true, `{"anyOf":[{}]}`: true, `{"$ref":"#/$defs/x"}`: true,
		`true`: true, `not JSON`: true,
	} {
		if got := (&Definition{InputSchema: json.RawMessage(schema)}).TakesParams(); got != want {
			t.Errorf("%s: %t, want %t", schema, got, want)
		}
	}
}

func TestUnknownVersion(t *testing.T) {
	v := func(version string) Tool {
		return Tool{Definition: Definition{Name: "greet", Source: "plugin:p", Version: version}}
	}
	reg := NewLoader(Options{}).Load(t.Context(), []Source{&listed{name: "plugin:p", tools: []Tool{v("1.9.0"), v("1.10.0")}}}, false)
	if got, err := reg.Lookup("greet@latest"); err != nil || got.Version != "1.10.0" {
		t.Errorf("latest is %v, %v", got, err)
	}
	_, err := reg.Lookup("greet@7.0.0")
	if want := `tool "greet" has no version 7.0.0; available: 1.10.0, 1.9.0`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestQuarantine(t *testing.T) {
	why := errors.New("its schema is nested too deep")
	reg := NewLoader(Options{}).Load(t.Context(), []Source{&listed{name: "command", tools: []Tool{
		{Definition: Definition{Name: "bad", Source: "command"}, Standing: Standing{Quarantine: why}}, {Definition: Definition{Name: "good", Source: "command"}}}}}, false)
	if reg.Len() != 1 || len(reg.Hidden()) != 1 {
		t.Fatalf("%d tools, hidden %v", reg.Len(), reg.Hidden())
	}
	_, err := reg.Lookup("bad")
	if !errors.Is(err, why) || !errors.Is(err, ErrNotFound) || err.Error() != `tool "bad" cannot be used: its schema is nested too deep` {
		t.Error(err)
	}
}

func TestLongDescriptionsAreCut(t *testing.T) {
	long := strings.Repeat("é", 100)
	reg := NewLoader(Options{MaxDescription: 25}).Load(t.Context(), []Source{&listed{name: "command", tools: []Tool{
		{Definition: Definition{Name: "a", Source: "command", Description: long}}, {Definition: Definition{Name: "b", Source: "command", Description: long[:24]}}}}}, false)
	for name, want := range map[string]string{"a": strings.Repeat("é", 12) + " [cut at 25 of 200 bytes]", "b": long[:24]} {
		if got, err := reg.Lookup(name); err != nil || got.Description != want {
			t.Errorf("%s: %q, %v", name, got.Description, err)
		}
	}
}

// brokenOff is a source that takes as long as its context the first time.
type brokenOff struct {
	listed
	started chan struct{} // closed by the first run
	ran     atomic.Bool
}

func (b *brokenOff) Discover(ctx context.Context) ([]Tool, []Diagnostic, error) {
	if b.ran.CompareAndSwap(false, true) {
		close(b.started)
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return b.listed.Discover(ctx)
}

// TestBrokenOffSourceRunsAgain checks that a source that was still running when the call that started
// it ended does not count as failed, also for a call that waits for it.
func TestBrokenOffSourceRunsAgain(t *testing.T) {
	slow := &brokenOff{listed: listed{name: "mcp:b", tools: []Tool{mcpTool("b", "y")}}, started: make(chan struct{})}
	sources := append(sourcesOf(mcpTool("a", "x")), slow)
	l := NewLoader(Options{})
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	l.LoadFor(ctx, sources, "x", func(reg *Registry) error { _, err := reg.Lookup("x"); return err })
	<-slow.started
	cancel()
	reg := l.Load(t.Context(), sources, false)
	if _, err := reg.Lookup("y"); err != nil || len(reg.Failed()) > 0 {
		t.Errorf("%v, failed: %v", err, reg.Failed())
	}
}
