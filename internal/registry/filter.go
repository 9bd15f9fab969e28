package registry

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// Entry is an element of a setting that lists tools.
type Entry struct {
	Value   string
	Setting string // file:line, flag or variable
}

// MatchAny returns the first entry whose pattern matches any of the names.
func MatchAny(entries []Entry, names ...string) (Entry, bool) {
	for _, e := range entries {
		if slices.ContainsFunc(names, func(n string) bool { return n != "" && text.MatchName(e.Value, n) }) {
			return e, true
		}
	}
	return Entry{}, false
}

// Spellings returns every name that can refer to the tool: its name, its
// aliases, name@version, the server's own name for it, and server__tool, raw
// and cleaned. For a tool with an override, it also returns its names without
// the override.
func (d *Definition) Spellings() []string {
	out := append([]string{d.Name}, d.Aliases...)
	if d.Version != "" {
		out = append(out, d.Name+"@"+d.Version)
	}
	if d.Given != "" {
		out = append(out, d.Given)
	}
	if d.OfServer() {
		out = append(out, d.PlainName(), d.Server+"__"+d.PlainName(), d.Qualified(), ValidName(d.PlainName()))
	}
	if d.Reshaped != nil {
		out = append(out, d.Reshaped.Upstream.Spellings()...)
	}
	return out
}

// wanted returns every name by which a list of the tools to keep can refer to
// the tool, including names that an override may give it, but not those of a project's.
func (t *Tool) wanted() []string { return append(t.Named().Spellings(), t.mayKeep...) }

// CoreToolsFilter hides the built-in tools that are not listed in the setting
// coreTools, by name or alias, with or without "(...)" after it.
func CoreToolsFilter(entries []Entry, setting string) Filter {
	bare := withoutArgs(entries)
	return func(t *Tool) *Hidden {
		if t.Source != SourceBuiltin {
			return nil
		}
		if _, ok := MatchAny(bare, t.wanted()...); ok {
			return nil
		}
		return &Hidden{Reason: "not listed in coreTools", Setting: setting}
	}
}

// ServerToolsFilter applies includeTools and excludeTools of one server, which
// match the server's own names; exclude takes precedence. included is false if
// includeTools is not set, which includes all tools.
func ServerToolsFilter(server string, included bool, include, exclude []Entry, setting string) Filter {
	bare, excluded := withoutArgs(include), slices.Clone(exclude)
	for i := range excluded {
		excluded[i].Value = NameIn(excluded[i].Value)
	}
	return func(t *Tool) *Hidden {
		if !t.OfServer() || t.Server != server {
			return nil
		}
		if e, ok := MatchAny(excluded, t.ServerTool); ok {
			return &Hidden{Reason: "listed in excludeTools of server " + server, Setting: e.Setting}
		}
		if !included {
			return nil
		}
		if _, ok := MatchAny(bare, t.ServerTool); ok {
			return nil
		}
		return &Hidden{Reason: "not listed in includeTools of server " + server, Setting: setting}
	}
}

// PermissionsFilter hides tools that need a permission which is turned off.
// denied maps the permission to the setting that turns it off.
func PermissionsFilter(denied map[string]string) Filter {
	return func(t *Tool) *Hidden {
		for _, p := range t.Permissions {
			if setting, ok := denied[p]; ok {
				return &Hidden{Reason: "needs the permission " + p + ", but permissions." + p + " is false", Setting: setting}
			}
		}
		return nil
	}
}

// GroupPlugins stands for the tools of all plugins in tools.allow.
const GroupPlugins = "group:plugins"

// Folded returns a name in the form in which lists compare it: trimmed and in
// lower case.
func Folded(name string) string { return strings.ToLower(NameIn(name)) }

// OptionalFilter hides optional tools unless tools.allow lists the tool, its
// plugin's id or [GroupPlugins]. Entries are trimmed and compared without regard to
// case.
func OptionalFilter(allowed []Entry) Filter {
	folded := make([]Entry, len(allowed))
	for i, e := range allowed {
		folded[i] = Entry{Value: Folded(e.Value), Setting: e.Setting}
	}
	return func(t *Tool) *Hidden {
		if !t.Optional {
			return nil
		}
		names := append(t.wanted(), t.Plugin)
		if t.Plugin != "" {
			names = append(names, GroupPlugins)
		}
		for i := range names {
			names[i] = strings.ToLower(names[i])
		}
		if _, ok := MatchAny(folded, names...); ok {
			return nil
		}
		return &Hidden{Reason: "optional, but not listed in tools.allow"}
	}
}

// OnlyFilter hides the tools of all sources that are not listed in the setting
// tools.only by any of their spellings.
func OnlyFilter(entries []Entry, setting string) Filter {
	bare := withoutArgs(entries)
	return func(t *Tool) *Hidden {
		if _, ok := MatchAny(bare, t.wanted()...); ok {
			return nil
		}
		return &Hidden{Reason: "not listed in tools.only", Setting: setting}
	}
}

// ExcludeFilter hides every tool that is listed by any name that it is called, ignoring
// case. An entry with "(...)" is a policy rule and hides nothing.
func ExcludeFilter(entries []Entry) Filter {
	folded := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if !strings.ContainsRune(e.Value, '(') {
			folded = append(folded, Entry{Value: strings.ToLower(NameIn(e.Value)), Setting: e.Setting})
		}
	}
	return func(t *Tool) *Hidden {
		if len(folded) == 0 {
			return nil
		}
		names := t.Called()
		for i, n := range names {
			names[i] = strings.ToLower(n)
		}
		if e, ok := MatchAny(folded, names...); ok {
			return &Hidden{Reason: "listed in excludeTools", Setting: e.Setting}
		}
		return nil
	}
}

// withoutArgs cuts "(...)" from each entry.
func withoutArgs(entries []Entry) []Entry {
	out := make([]Entry, len(entries))
	for i, e := range entries {
		name, _, _ := strings.Cut(e.Value, "(")
		out[i] = Entry{Value: NameIn(name), Setting: e.Setting}
	}
	return out
}
