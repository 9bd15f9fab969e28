package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/registry"
)

// ruleNames reports whether the rule matches this tool, without regard to
// commands and paths.
func (d *decision) ruleNames(r *Rule) bool {
	if r.Decision == Allow {
		return d.allowNames(r)
	}
	t := d.tool
	if r.Category != "" && !strings.EqualFold(r.Category, string(t.Category)) && !strings.EqualFold(r.Category, string(d.category())) {
		return false
	}
	if r.Source != "" && !foldMatch(r.Source, t.Source) || r.Server != "" && (!t.IsMCP() || !foldMatch(r.Server, t.Server)) {
		return false
	}
	return r.Tool == "" || d.canonical(r.Tool) == t.Name && t.Source == registry.SourceBuiltin ||
		slices.ContainsFunc(t.Spellings(), func(name string) bool { return foldMatch(r.Tool, name) })
}

func (d *decision) allowNames(r *Rule) bool {
	t := d.tool
	if r.Category != "" && r.Category != string(d.category()) {
		return false
	}
	if r.Source != "" && !registry.MatchName(r.Source, t.Source) || r.Server != "" && (!t.IsMCP() || !registry.MatchName(r.Server, t.Server)) {
		return false
	}
	if r.Tool == "" || r.Server != "" && registry.MatchName(r.Tool, t.ServerTool) {
		return true
	}
	if builtin := d.canonical(r.Tool); builtin != "" {
		// That name does not refer to a server's tool "read_file".
		return t.Source == registry.SourceBuiltin && t.Name == builtin
	}
	return slices.ContainsFunc(d.unambiguousNames(), func(name string) bool { return registry.MatchName(r.Tool, name) })
}

// unambiguousNames returns the names that belong to this tool beyond doubt. "a__b__c"
// could be tool b__c of server a or tool c of server a__b: such a name allows
// nothing; a rule with Server and Tool can.
func (d *decision) unambiguousNames() []string {
	t := d.tool
	if !t.IsMCP() {
		if t.Version != "" {
			return []string{t.Name, t.Name + "@" + t.Version}
		}
		return []string{t.Name}
	}
	var out []string
	if !strings.Contains(t.Name, "__") {
		out = append(out, t.Name)
	}
	clear := !strings.Contains(t.Server, "__") && !strings.Contains(t.ServerTool, "__") &&
		!strings.HasSuffix(t.Server, "_") && !strings.HasPrefix(t.ServerTool, "_")
	if clear {
		out = append(out, t.Server+"__"+t.ServerTool)
		if t.Name == t.Qualified() || strings.HasPrefix(t.Name, t.Qualified()+"_") {
			out = append(out, t.Name)
		}
	}
	return out
}

func (d *decision) canonical(name string) string {
	if d.policy.Canonical == nil {
		return ""
	}
	return d.policy.Canonical(name)
}

func foldMatch(pattern, name string) bool {
	return name != "" && registry.MatchName(strings.ToLower(pattern), strings.ToLower(name))
}

// rulePaths reports whether the rule's path matches: all paths of the call for
// a rule that allows, any for the others.
func (d *decision) rulePaths(r *Rule) bool {
	if r.Path == "" {
		return true
	}
	paths := d.subject.Paths
	if r.Decision == Allow {
		return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !d.pathMatch(r.Path, p, false) })
	}
	return slices.ContainsFunc(paths, func(p string) bool { return d.pathMatch(r.Path, p, true) })
}

// pathMatch compares a glob with a path of the call, both made absolute. With
// fold set it ignores case, since the file system may do so, and a matching
// folder covers what is in it.
func (d *decision) pathMatch(glob, name string, fold bool) bool {
	if !fold && !inside(name) && !path.IsAbs(filepath.ToSlash(name)) {
		return false
	}
	glob, name = d.absolute(glob), d.absolute(name)
	if fold {
		glob, name = strings.ToLower(glob), strings.ToLower(name)
	}
	ok, err := doublestar.Match(glob, name)
	if err != nil {
		return fold // a broken glob denies rather than nothing
	}
	if !ok && fold {
		ok, _ = doublestar.Match(strings.TrimSuffix(glob, "/")+"/**", name)
	}
	return ok
}

func (d *decision) absolute(p string) string {
	p = filepath.ToSlash(p)
	if path.IsAbs(p) || filepath.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join("/", filepath.ToSlash(d.policy.Workspace), p)
}
