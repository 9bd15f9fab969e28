package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// unmet returns the first condition of a rule that the call does not meet, or ""
// if it meets all. It leaves the condition command to [facts.ruleCommand].
func (f *facts) unmet(r *Rule) string {
	if c := f.unmetName(r); c != "" {
		return c
	}
	if !f.rulePaths(r) {
		return conditionPath
	}
	if !f.ruleWhen(r) {
		return conditionWhen
	}
	return ""
}

// ruleNames reports whether a rule for this caller applies to the tool, regardless of commands,
// paths and params.
func (f *facts) ruleNames(r *Rule) bool { return f.unmetName(r) == "" }

// unmetName returns the first condition of a rule that this tool does not meet.
func (f *facts) unmetName(r *Rule) string {
	switch {
	case r.Prompt != "":
		return conditionPrompt
	case r.Resource != "":
		return conditionResource
	}
	match, t := r.matcher(), f.tool
	switch {
	case r.Category != "" && !f.ruleCategory(r):
		return conditionCategory
	case !f.ruleAnnotations(r):
		return conditionAnnotations
	case r.Source != "" && !match(r.Source, t.Source):
		return conditionSource
	case r.Server != "" && (!t.OfServer() || !match(r.Server, t.Server)):
		return conditionServer
	case r.isNarrow() && r.Personal && f.tool.Replaces && r.Tool+r.Server+r.Source != "":
		return conditionServer
	case r.Tool == "" || r.Tool == "*" || r.isNarrow() && f.allowsTool(r) || !r.isNarrow() && f.namesTool(r):
		return ""
	}
	return conditionTool
}

func (f *facts) ruleCategory(r *Rule) bool {
	if r.isNarrow() {
		return r.Category == string(f.category)
	}
	if n := f.bears; n != nil && strings.EqualFold(r.Category, string(n.Category)) {
		return true
	}
	return strings.EqualFold(r.Category, string(f.tool.Category)) || strings.EqualFold(r.Category, string(f.category))
}

// namesTool reports whether a rule's glob matches any name of the tool, ignoring case.
func (f *facts) namesTool(r *Rule) bool {
	t := f.tool
	spellings := f.spellings.get(func() (out []string) {
		for _, name := range t.Called() {
			out = append(out, strings.ToLower(name))
		}
		return out
	})
	for _, name := range spellings {
		if beginsFold(name, r.toolPrefix) && foldMatch(r.Tool, name) {
			return true
		}
	}
	return t.Source == registry.SourceBuiltin && f.canonical(r.Tool) == t.OriginalName()
}

func (f *facts) allowsTool(r *Rule) bool {
	t := f.tool.Named()
	if r.Server != "" && text.MatchName(r.Tool, t.PlainName()) {
		return true
	}
	if builtin := f.canonical(r.Tool); builtin != "" {
		// The name of a built-in tool never refers to a server's tool of that name.
		return t.Source == registry.SourceBuiltin && t.Name == builtin
	}
	if f.bears != nil {
		return false // the name means the built-in tool
	}
	return slices.ContainsFunc(f.names.get(f.unambiguousNames),
		func(name string) bool { return strings.HasPrefix(name, r.toolPrefix) && text.MatchName(r.Tool, name) })
}

// unambiguousNames returns the names that can only mean this tool. A rule with Server and
// Tool can allow one whose name is not clear.
func (f *facts) unambiguousNames() []string {
	t := f.tool.Named()
	if !t.OfServer() {
		if f.tool.Lent {
			return []string{}
		}
		if t.Version != "" {
			return []string{t.Name, t.Name + "@" + t.Version}
		}
		return []string{t.Name}
	}
	var out []string
	if !strings.Contains(t.Name, "__") && !f.tool.Lent {
		out = append(out, t.Name)
	}
	if t.IsClear() {
		out = append(out, t.Server+"__"+t.PlainName())
		if t.Name == t.Qualified() || strings.HasPrefix(t.Name, t.Qualified()+"_") {
			out = append(out, t.Name)
		}
	}
	return out
}

func (f *facts) canonical(name string) string {
	if f.policy.Canonical == nil {
		return ""
	}
	return f.policy.Canonical(name)
}

// rulePaths reports whether the rule's path matches: for a rule that loosens all
// paths of the call, for other rules any of them.
func (f *facts) rulePaths(r *Rule) bool {
	if r.Path == "" {
		return true
	}
	if f.isBlindTo(r) {
		return !r.isNarrow()
	}
	return f.onPaths.get(r, func() bool { return f.matchPaths(r) }) // the same for each part of a line
}

func (f *facts) matchPaths(r *Rule) bool {
	w := f.where()
	named := func(p string) bool { return w.match(r, w.name(p)) }
	paths := f.paths.get(func() (out []pathname) {
		for _, p := range f.subject.Paths {
			out = append(out, w.name(p))
		}
		return out
	})
	if r.isNarrow() {
		return len(paths) > 0 && !f.unplaced &&
			!slices.ContainsFunc(paths, func(p pathname) bool { return !w.match(r, p) }) &&
			!slices.ContainsFunc(f.fallbacks, func(p string) bool { return !named(p) })
	}
	return slices.ContainsFunc(paths, func(p pathname) bool { return w.match(r, p) }) ||
		slices.ContainsFunc(f.trees, func(p string) bool { return named(p) || w.mayHold(p, r) })
}

// ruleWhen reports whether the rule's expression is true for the params: in every shape if the rule
// loosens, otherwise in any. If the expression fails, the result is false for a rule that loosens
// and true for other rules. For a tool as a whole, which has no params, it is false.
func (f *facts) ruleWhen(r *Rule) bool {
	if r.When == nil {
		return true
	}
	if f.call == nil {
		return false
	}
	e := f.evaluate(r.When)
	if r.isNarrow() {
		return e.all && e.err == nil
	}
	return e.any || e.err != nil
}

// evaluate evaluates an expression over the params, once for all parts of a
// command line.
func (f *facts) evaluate(when *jq.Expression) evaluated {
	return f.evaluations.get(when, func() evaluated {
		shapes := f.shapes.get(f.inShapes)
		e := evaluated{all: true, err: shapes.err}
		for _, s := range shapes.list {
			ok, err := s.isTrue(f.ctx, when)
			e.all, e.any, e.err = e.all && ok, e.any || ok, cmp.Or(e.err, err)
		}
		return e
	})
}

func (f *facts) inShapes() (out shapes) {
	all := []json.RawMessage{f.call.Params}
	if f.tool.Shapes != nil {
		all, out.err = f.tool.Shapes(*f.call)
	}
	for _, u := range f.subject.URLs { // as the tool reads the param
		for _, params := range all {
			if v, _ := jsonx.Parse(params, jsonx.Options{}); v.Get("url") != nil {
				v.Set("url", jsonx.NewString(u))
				all = append(all, v.JSON())
			}
		}
	}
	for _, params := range all {
		if !slices.ContainsFunc(out.list, func(s *shape) bool { return bytes.Equal(s.params, params) }) {
			out.list = append(out.list, &shape{params: params})
		}
	}
	return out
}

// ruleAnnotations reports whether the tool has the annotations of the rule. For a rule that
// loosens, the server must have sent each of them. For other rules, an absent or non-boolean
// annotation of a server's tool has MCP's default value; other tools must have it.
func (f *facts) ruleAnnotations(r *Rule) bool {
	if len(r.Annotations) == 0 {
		return true
	}
	var sent map[string]any
	_ = json.Unmarshal(f.tool.Annotations, &sent) // annotations that are not an object count as none
	for name, want := range r.Annotations {
		got, ok := sent[name].(bool)
		if !ok && (r.isNarrow() || !f.tool.OfServer()) {
			return false
		}
		if !ok {
			got, _ = absentHint(name)
			if readOnly, _ := sent["readOnlyHint"].(bool); readOnly && name == "destructiveHint" {
				got = false // only tools that change something have it
			}
		}
		if got != want {
			return false
		}
	}
	return true
}

// where returns the folders that paths are relative to.
func (f *facts) where() *places {
	return f.places.get(func() *places {
		workspace := filepath.ToSlash(f.policy.Workspace)
		p := &places{root: filepath.ToSlash(cmp.Or(f.policy.Root, f.policy.Workspace)), workspace: workspace}
		p.realRoot, p.realWorkspace = realPath(p.root), realPath(workspace)
		return p
	})
}
