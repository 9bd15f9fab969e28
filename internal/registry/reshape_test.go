package registry

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// change is the effect of an override in a test.
type change struct {
	name   string
	hidden bool
	broken bool
}

type changes map[string]change

func (c changes) Has(name string) bool { _, ok := c[name]; return ok }

func (c changes) IsOwn(name string) bool { return c.Has(name) }

func (c changes) NewName(name string) string { return c[name].name }

func (c changes) IsProjects(string) bool { return false }

func (c changes) Reshape(_ context.Context, t *Tool, names []string) Tool {
	out, does := *t, c[names[0]]
	out.Reshaped = &Reshaped{Upstream: t.Definition, Name: does.name, Hidden: does.hidden, Origin: "s.yaml:1"}
	if does.name != "" {
		out.Name, out.Aliases = does.name, nil
	}
	if does.broken || len(names) > 1 {
		out.Quarantine = errors.New("broken: " + strings.Join(names, ", "))
	}
	return out
}

func TestReshapedNames(t *testing.T) {
	builtins := []Tool{builtinTool("read", "cat"), builtinTool("grep")}
	tests := []struct {
		name      string
		tools     []Tool
		overrides changes
		opts      Options
		want      []string // registered
		found     map[string]string
		missing   []string
		codes     []string
	}{
		{name: "a rename", tools: append(builtins, mcpTool("s", "echo")), overrides: changes{"echo": {name: "say"}, "read": {name: "view"}},
			want: []string{"view", "grep", "say"}, found: map[string]string{"s__say": "say"}, missing: []string{"echo", "s__echo", "read", "cat"}},
		{name: "by the qualified name", tools: []Tool{mcpTool("s", "echo"), mcpTool("t", "echo")}, overrides: changes{"t__echo": {name: "say"}},
			want: []string{"echo", "say"}, found: map[string]string{"s__echo": "echo", "t__say": "say"}, missing: []string{"t__echo"}, codes: []string{"name_qualified t__echo"}},
		{name: "a plain name means its owner", tools: []Tool{mcpTool("s", "echo"), mcpTool("t", "echo")}, overrides: changes{"echo": {name: "say"}},
			want: []string{"say", "t__echo"}, missing: []string{"echo", "s__echo"}, codes: []string{"name_qualified t__echo"}},
		{name: "a swap", tools: []Tool{mcpTool("s", "a"), mcpTool("s", "b")}, overrides: changes{"a": {name: "b"}, "b": {name: "a"}},
			want: []string{"b", "a"}, found: map[string]string{"s__a": "a", "s__b": "b"}},
		{name: "a chain", tools: []Tool{mcpTool("s", "a"), mcpTool("s", "b")}, overrides: changes{"a": {name: "b"}, "b": {name: "c"}},
			want: []string{"b", "c"}, missing: []string{"a"}},
		{name: "a taken name of a server's tool", tools: append(builtins, mcpTool("s", "echo")), overrides: changes{"echo": {name: "grep"}},
			want: []string{"read", "grep", "s__grep"}, missing: []string{"echo"}, codes: []string{"name_qualified s__grep"}},
		{name: "an alias", tools: append(builtins, mcpTool("s", "echo")), overrides: changes{"echo": {name: "cat"}}, want: []string{"read", "grep", "s__cat"}, codes: []string{"name_qualified s__cat"}},
		{name: "a taken name of a plugin's tool", tools: append(builtins, pluginTool("p", "find", "")), overrides: changes{"find": {name: "grep"}},
			want: []string{"read", "grep"}, codes: []string{"name_taken grep"}},
		{name: "a taken name of a discovered tool", tools: append(builtins, discoveredTool("find")), overrides: changes{"find": {name: "grep"}},
			want: []string{"read", "grep"}, codes: []string{"name_overwritten grep"}},
		{name: "of the same source", tools: []Tool{pluginTool("p", "a", "1.0.0"), pluginTool("p", "b", "2.0.0")}, overrides: changes{"a": {name: "b"}},
			want: []string{"b"}, found: map[string]string{"b@1.0.0": "b"}, missing: []string{"b@2.0.0"}, codes: []string{"name_taken b"}},
		{name: "every version", tools: []Tool{pluginTool("p", "a", "1.0.0"), pluginTool("p", "a", "2.0.0")}, overrides: changes{"a": {name: "b"}},
			want: []string{"b"}, found: map[string]string{"b@1.0.0": "b", "b@latest": "b"}, missing: []string{"a", "a@1.0.0"}},
		{name: "an override applies to the tool that overwrote another", tools: append(builtins, discoveredTool("grep")), overrides: changes{"grep": {name: "search"}},
			want: []string{"read", "search"}, missing: []string{"grep"}, codes: []string{"name_overwritten grep"}},
		{name: "a freed name stays free", tools: append(builtins, mcpTool("s", "grep")), overrides: changes{"grep": {name: "search"}},
			want: []string{"read", "search", "s__grep"}, missing: []string{"grep"}, codes: []string{"name_qualified s__grep"}},
		{name: "hidden", tools: append(builtins, mcpTool("s", "echo")), overrides: changes{"echo": {hidden: true}, "grep": {hidden: true, name: "search"}},
			want: []string{"read"}, missing: []string{"echo", "s__echo", "grep", "search"}},
		{name: "a hidden tool keeps its name", tools: []Tool{mcpTool("s", "a"), mcpTool("s", "b")}, overrides: changes{"a": {hidden: true}, "b": {name: "a"}},
			want: []string{"s__a"}, missing: []string{"a"}, codes: []string{"name_qualified s__a"}},
		{name: "broken", tools: append(builtins, mcpTool("s", "echo")), overrides: changes{"echo": {name: "say", broken: true}, "read": {}},
			want: []string{"read", "grep"}, missing: []string{"echo", "say"}, codes: []string{"override_misfit echo"}},
		{name: "two names", tools: []Tool{mcpTool("s", "echo")}, overrides: changes{"echo": {}, "s__echo": {}}, missing: []string{"echo"}, want: []string{}, codes: []string{"override_misfit echo"}},
		{name: "name and alias", tools: builtins, overrides: changes{"cat": {name: "dog"}}, want: []string{"dog", "grep"}},
		{name: "an alias that is another tool's name", tools: append(builtins, discoveredTool("cat")), overrides: changes{"cat": {name: "dog"}},
			want: []string{"read", "grep", "dog"}, found: map[string]string{"cat": "read"}, codes: []string{"name_overwritten cat"}},
		{name: "tools.only lists the new name", tools: append(builtins, mcpTool("s", "echo"), mcpTool("t", "echo")), overrides: changes{"echo": {name: "say"}},
			opts: Options{Filters: []Filter{OnlyFilter([]Entry{{Value: "say"}}, "x")}}, want: []string{"say"}, missing: []string{"t__echo"}, codes: []string{"name_qualified t__echo"}},
		{name: "excluded by the old name", tools: []Tool{mcpTool("s", "echo")}, overrides: changes{"echo": {name: "say"}},
			opts: Options{Filters: []Filter{ExcludeFilter([]Entry{{Value: "echo"}})}}, want: []string{}, missing: []string{"say"}},
		{name: "excluded by the new name", tools: []Tool{mcpTool("s", "echo"), mcpTool("t", "echo")}, overrides: changes{"echo": {name: "say"}},
			opts: Options{Filters: []Filter{ExcludeFilter([]Entry{{Value: "SAY"}})}}, want: []string{"t__echo"}, missing: []string{"say", "echo"}, codes: []string{"name_qualified t__echo"}},
		{name: "long name", tools: []Tool{mcpTool("s", "echo")}, overrides: changes{"echo": {name: strings.Repeat("n", 63)}}, want: []string{strings.Repeat("n", 63)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Overrides = tt.overrides
			reg := load(t, tt.opts, sourcesOf(tt.tools...)...)
			if diff := cmp.Diff(tt.want, namesOf(reg.Tools())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for name, want := range tt.found {
				if got, err := reg.Lookup(name); err != nil || got.Name != want {
					t.Errorf("%s finds %v, %v, want %s", name, got, err, want)
				}
			}
			for _, name := range tt.missing {
				if got, err := reg.Lookup(name); err == nil {
					t.Errorf("%s finds %s", name, got.Name)
				}
			}
			if diff := cmp.Diff(tt.codes, codesOf(reg.Diagnostics())); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyStepsFindHiddenTools checks that only steps of composites can call a tool
// that an override hides.
func TestOnlyStepsFindHiddenTools(t *testing.T) {
	reg := load(t, Options{Overrides: changes{"echo": {hidden: true}, "add": {name: "plus", hidden: true}}}, sourcesOf(mcpTool("s", "echo"), mcpTool("s", "add"), mcpTool("s", "other"))...)
	for name, ok := range map[string]bool{"echo": true, "s__echo": true, "plus": true, "s__plus": true, "other": true, "s__other": true, "add": false, "s__add": false} {
		if _, err := reg.LookupStep(name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	want := []Hidden{{Name: "echo", Source: "mcp:s", Reason: "an override hides it", Setting: "s.yaml:1"}, {Name: "plus", Source: "mcp:s", Reason: "an override hides it", Setting: "s.yaml:1"}}
	if diff := cmp.Diff(want, reg.Hidden()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := reg.Lookup("echo")
	if err == nil || !strings.Contains(err.Error(), "an override hides it") {
		t.Error(err)
	}
}

// TestOldNameIsExplained checks that an error about the old name of a tool has the
// new one and the setting.
func TestOldNameIsExplained(t *testing.T) {
	reg := load(t, Options{Overrides: changes{"s__echo": {name: "say"}, "bad": {name: "worse", broken: true}}, Filters: []Filter{ExcludeFilter(entries("t__echo"))}},
		sourcesOf(mcpTool("s", "echo"), mcpTool("s", "bad"), mcpTool("t", "echo"))...)
	for name, want := range map[string]string{"echo": `an override renames it to "say"`, "s__echo": `an override renames it to "say"`, "bad": "broken", "worse": "broken"} {
		_, err := reg.Lookup(name)
		missing, ok := errors.AsType[*NotFoundError](err)
		if !ok || missing.Hidden == nil || !strings.Contains(missing.Hidden.Reason, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPartialRegistryNeverIgnoresOverrides checks that a partial registry omits a
// tool if only the whole registry can tell whether an override applies to it.
func TestPartialRegistryNeverIgnoresOverrides(t *testing.T) {
	tests := []struct {
		overrides changes
		want      []string
	}{
		{changes{"echo": {name: "say"}}, []string{"grep", "s__other"}},
		{changes{"s__echo": {name: "say"}}, []string{"grep", "s__say", "s__other"}},
		{changes{"grep": {name: "search"}}, []string{"search", "s__echo", "s__other", "s__grep"}},
	}
	for _, tt := range tests {
		tools := []Tool{builtinTool("grep"), mcpTool("s", "echo"), mcpTool("s", "other")}
		if tt.overrides.Has("grep") {
			tools = append(tools, mcpTool("s", "grep"))
		}
		reg := NewLoader(Options{Overrides: tt.overrides}).Load(t.Context(), sourcesOf(tools...), true)
		if diff := cmp.Diff(tt.want, namesOf(reg.Tools())); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.overrides, diff)
		}
	}
}

// TestLoadForFindsRenamedTool checks that LoadFor waits for the source of a tool
// that an override renames.
func TestLoadForFindsRenamedTool(t *testing.T) {
	sources := sourcesOf(mcpTool("s", "echo"), mcpTool("t", "other"))
	l := NewLoader(Options{Overrides: changes{"echo": {name: "say"}}})
	defer l.Close()
	reg := l.LoadFor(t.Context(), sources, "say", func(reg *Registry) error { _, err := reg.Lookup("say"); return err })
	if _, err := reg.Lookup("say"); err != nil || len(reg.Reports()) != 1 {
		t.Errorf("%v, %d sources", err, len(reg.Reports()))
	}
}

// TestFingerprintCoversOverride checks that a fingerprint depends on the override
// and the source's definition, but not on the name of the settings file.
func TestFingerprintCoversOverride(t *testing.T) {
	shaped := func(description, override, shown, origin string) string {
		tool := mcpTool("s", "echo")
		tool.Description = "new"
		upstream := tool.Definition
		upstream.Description = description
		tool.Reshaped = &Reshaped{Upstream: upstream, Override: []byte(override), Shown: []byte(shown), Origin: origin}
		return tool.Fingerprint()
	}
	base := shaped("d", `{"a":1,"b":2}`, `{}`, "s.yaml:1")
	if base != shaped("d", `{"b":2,"a":1}`, `{}`, "t.yaml:9") {
		t.Error("the fingerprint depends on the spelling or the file of the override")
	}
	for _, other := range []string{shaped("e", `{"a":1,"b":2}`, `{}`, "s.yaml:1"), shaped("d", `{"a":1}`, `{}`, "s.yaml:1")} {
		if other == base {
			t.Error("a change of the override does not change the fingerprint")
		}
	}
}
