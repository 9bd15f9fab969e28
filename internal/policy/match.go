package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// The conditions of a rule, by their keys in the settings.
const (
	conditionTool        = "tool"
	conditionSource      = "source"
	conditionServer      = "server"
	conditionCategory    = "category"
	conditionAnnotations = "annotations"
	conditionClient      = "client"
	conditionGroup       = "group"
	conditionProfile     = "profile"
	conditionPrompt      = "prompt"
	conditionResource    = "resource"
	conditionCommand     = "command"
	conditionPath        = "path"
	conditionWhen        = "when"
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

// ruleNames reports whether a rule that is about the caller applies to this tool, regardless of
// commands, paths and params.
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

// matcher returns the function that matches the rule's globs.
func (r *Rule) matcher() func(pattern, name string) bool {
	if r.isNarrow() {
		return exactMatch
	}
	return foldMatch
}

// exactMatch is [text.MatchName], but faster for names that do not begin like the pattern. No
// pattern matches the empty name.
func exactMatch(pattern, name string) bool {
	return name != "" && strings.HasPrefix(name, literalPrefix(pattern)) && text.MatchName(pattern, name)
}

// isForSome reports whether the rule is about certain callers.
func (r *Rule) isForSome() bool { return r.Client != "" || r.Group != "" }

// unmetCaller returns the first condition that the caller does not meet; nil is the person at the
// command line. With any, the caller may have any name and groups.
func (r *Rule) unmetCaller(who *caller.Caller, any bool) string {
	if who == nil {
		who = &caller.Caller{}
	}
	match := r.matcher()
	switch {
	case r.Profile != "" && r.Profile != who.Profile:
		return conditionProfile
	case any || !r.isForSome():
		return ""
	case r.Client != "" && !match(r.Client, who.Name):
		return conditionClient
	case r.Group != "" && !r.matchesGroup(who.Groups):
		return conditionGroup
	}
	return ""
}

func (r *Rule) matchesGroup(groups []string) bool {
	_, prefix := r.prefixes()
	return slices.ContainsFunc(groups, func(group string) bool {
		return beginsFold(group, prefix) && r.matcher()(r.Group, group)
	})
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
	prefix, _ := r.prefixes()
	for _, name := range spellings {
		if beginsFold(name, prefix) && foldMatch(r.Tool, name) {
			return true
		}
	}
	return t.Source == registry.SourceBuiltin && f.canonical(r.Tool) == t.OriginalName()
}

// beginsFold reports whether a name begins with an ASCII prefix, ignoring case. It returns true
// if the name may do so when it is in lower case.
func beginsFold(name, prefix string) bool {
	for i := range len(prefix) {
		if i >= len(name) {
			return false
		}
		switch c, differ := name[i], name[i]^prefix[i]; {
		case differ == 0:
		case c >= 0x80: // some letters become ASCII ones
			return true
		case differ != 'a'-'A', c|differ < 'a', c|differ > 'z':
			return false
		}
	}
	return true
}

// literalPrefix returns the ASCII text before the first wildcard of a glob. A name
// without this prefix cannot match, which speeds up long lists of rules. A slash
// also ends the prefix, because [text.MatchName] replaces slashes.
func literalPrefix(glob string) string {
	for i := range len(glob) {
		if c := glob[i]; c == '*' || c == '?' || c == '[' || c == '{' || c == '\\' || c == '/' || c >= 0x80 {
			return glob[:i]
		}
	}
	return glob
}

// allowsTool reports whether a rule that loosens names the tool unambiguously.
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
	prefix, _ := r.prefixes()
	return slices.ContainsFunc(f.names.get(f.unambiguousNames),
		func(name string) bool { return strings.HasPrefix(name, prefix) && text.MatchName(r.Tool, name) })
}

// unambiguousNames returns the names that can only mean this tool. "a__b__c" could
// be tool b__c of server a or tool c of server a__b, so it allows neither; a rule
// with Server and Tool can.
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
	plain := t.PlainName()
	clear := !strings.Contains(t.Server, "__") && !strings.Contains(plain, "__") &&
		!strings.HasSuffix(t.Server, "_") && !strings.HasPrefix(plain, "_")
	if clear {
		out = append(out, t.Server+"__"+plain)
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

// foldMatch is [text.MatchNameFold], but faster for names that do not begin like the pattern. No
// pattern matches the empty name.
func foldMatch(pattern, name string) bool {
	return name != "" && beginsFold(name, literalPrefix(pattern)) && text.MatchNameFold(pattern, name)
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
	paths := f.paths.get(func() (out []pathname) {
		for _, p := range f.subject.Paths {
			out = append(out, f.pathname(p))
		}
		return out
	})
	if r.isNarrow() {
		return len(paths) > 0 && !slices.ContainsFunc(paths, func(p pathname) bool { return !f.pathMatch(r, p) })
	}
	return slices.ContainsFunc(paths, func(p pathname) bool { return f.pathMatch(r, p) })
}

// ruleWhen reports whether the rule's expression is true for the params: for a rule that loosens
// in each shape of theirs, for other rules in any. If the expression fails, the result is false
// for a rule that loosens and true for other rules. For a tool as a whole, which has no params, the
// result is false.
func (f *facts) ruleWhen(r *Rule) bool {
	if r.When == nil {
		return true
	}
	if f.whole {
		return false
	}
	e := f.evaluate(r.When)
	if r.isNarrow() {
		return e.all && e.err == nil
	}
	return e.any || e.err != nil
}

// evaluated is the result of an expression for the params of the call: whether it is true in all
// and in any of their shapes.
type evaluated struct {
	all, any bool
	err      error
}

// shape has the params of the call in one shape; see [registry.Tool.Shapes].
type shape struct {
	params  json.RawMessage
	decoded any // nil if it was not needed yet
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

// shapes are the params in the different shapes of the tool, or why they are not known.
type shapes struct {
	list []*shape
	err  error
}

func (f *facts) inShapes() (out shapes) {
	all := []json.RawMessage{f.call.Params}
	if f.tool.Shapes != nil {
		all, out.err = f.tool.Shapes(f.call)
	}
	for _, params := range all {
		if !slices.ContainsFunc(out.list, func(s *shape) bool { return bytes.Equal(s.params, params) }) {
			out.list = append(out.list, &shape{params: params})
		}
	}
	return out
}

func (s *shape) isTrue(ctx context.Context, when *jq.Expression) (ok bool, err error) {
	if s.decoded == nil {
		if s.decoded, err = jq.Decode(s.params); err != nil {
			return false, err
		}
	}
	if ok, err = when.IsTrue(ctx, s.decoded); err != nil {
		s.decoded = nil // an expression that was stopped may still be reading it
	}
	return ok, err
}
