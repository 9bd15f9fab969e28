package registry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// Entry is an element of a setting that lists tools.
type Entry struct {
	Value   string
	Setting string // file:line, flag or variable
	// OfProject is set if the settings of a project have the entry.
	OfProject bool
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

// discoveredPrefix is the prefix that Gemini CLI gives to the names of discovered tools, also in
// its settings and policies. The call command never sees it.
const discoveredPrefix = "discovered_tool_"

// qualifiedPrefix is the prefix of a discovered tool whose own name is taken.
const qualifiedPrefix = SourceCommand + "__"

// Spellings returns every name that can refer to the tool: its name, its
// aliases, name@version, the server's own name for it, and server__tool, raw
// and cleaned; for a discovered tool also the name that Gemini CLI gives it. For a tool with an
// override, it also returns its names without the override.
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
	if d.Source == SourceCommand {
		out = append(out, discoveredPrefix+cmp.Or(d.Given, strings.TrimPrefix(d.Name, qualifiedPrefix)))
	}
	if d.Reshaped != nil {
		out = append(out, d.Reshaped.Upstream.Spellings()...)
	}
	return out
}

// keepNames returns every name by which a list of tools to keep can refer to the tool. This
// includes names that an override may give it, but not those from a project's override.
func (t *Tool) keepNames() []string { return append(t.Named().Spellings(), t.mayKeep...) }

// unshared returns those of the wanted names that mean this tool alone, and no tool that had the
// name before the project gave it to this one.
func (t *Tool) unshared() []string {
	switch {
	case !t.OfProject || !t.Lent && (t.OfServer() && t.isPlain() || !t.OfServer() && t.Bears() == nil):
		return t.keepNames()
	case t.OfServer():
		return slices.DeleteFunc(t.keepNames(), func(name string) bool {
			return (name != t.Name || t.isPlain()) && !slices.Contains(t.mayKeep, name) &&
				!strings.HasPrefix(name, t.Server+"__") && !strings.HasPrefix(name, ValidName(t.Server+"__"))
		})
	case t.IsRenamed() && !t.Reshaped.NameOfProject:
		return []string{t.Name}
	}
	return t.mayKeep
}

// isListed reports whether a list of tools to keep names the tool, by a name of its own or by one
// of others. Entries of the project may use names that it has taken, and "*" is not a name. reads
// normalizes names like the entries.
func (t *Tool) isListed(entries []Entry, reads func(string) string, others ...string) bool {
	form := func(names []string) []string {
		out := slices.Concat(names, others)
		for i, n := range out {
			out[i] = reads(n)
		}
		return out
	}
	all, own := form(t.keepNames()), form(t.unshared())
	return slices.ContainsFunc(entries, func(e Entry) bool {
		names := own
		if e.OfProject || e.Value == "*" {
			names = all
		}
		_, ok := MatchAny([]Entry{e}, names...)
		return ok
	})
}

// CoreToolsFilter hides the built-in tools that are not listed in the setting
// coreTools, by name or alias, with or without "(...)" after it.
func CoreToolsFilter(entries []Entry, setting string) Filter {
	bare := withoutArgs(entries)
	return func(t *Tool) *Hidden {
		if t.Source != SourceBuiltin || t.isListed(bare, NameIn) {
			return nil
		}
		return &Hidden{Reason: "not listed in coreTools", Setting: setting}
	}
}

// ServerToolsFilter applies includeTools and excludeTools of one server, which
// match the server's own names; exclude takes precedence. included is false if
// includeTools is not set, which includes all tools.
func ServerToolsFilter(server string, included bool, include, exclude []Entry, setting string) Filter {
	bare, excluded := withoutArgs(include), inForm(exclude, NameIn)
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
				return &Hidden{
					Reason: "needs the permission " + p + ", but permissions." + p + " is false", Setting: setting,
				}
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
	folded := inForm(allowed, Folded)
	return func(t *Tool) *Hidden {
		if !t.Optional {
			return nil
		}
		var plugin []string
		if t.Plugin != "" {
			plugin = []string{t.Plugin, GroupPlugins}
		}
		if t.isListed(folded, Folded, plugin...) {
			return nil
		}
		return &Hidden{Reason: "optional, but not listed in tools.allow" + t.byItsOwn()}
	}
}

// byItsOwn explains why a tool is not listed although one of its names is.
func (t *Tool) byItsOwn() string {
	if slices.Equal(t.keepNames(), t.unshared()) {
		return ""
	}
	return " by a name of its own: the project gave it the name of another tool"
}

// OnlyFilter hides the tools of all sources that are not listed in the setting
// tools.only by any of their spellings.
func OnlyFilter(entries []Entry, setting string) Filter {
	bare := withoutArgs(entries)
	return func(t *Tool) *Hidden {
		if t.isListed(bare, NameIn) {
			return nil
		}
		return &Hidden{Reason: "not listed in tools.only" + t.byItsOwn(), Setting: setting}
	}
}

// ExcludeFilter hides every tool that is listed under any name that [Definition.Called] returns,
// ignoring case. An entry with "(...)" is a policy rule and hides nothing.
func ExcludeFilter(entries []Entry) Filter {
	folded := slices.DeleteFunc(inForm(entries, Folded), func(e Entry) bool { return strings.ContainsRune(e.Value, '(') })
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
	return inForm(entries, func(value string) string {
		name, _, _ := strings.Cut(value, "(")
		return NameIn(name)
	})
}

// inForm returns entries with their values in another form.
func inForm(entries []Entry, form func(string) string) []Entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].Value = form(out[i].Value)
	}
	return out
}

// Called returns every name by which settings that deny, ask, exclude or run hooks refer to the
// tool: its spellings, its display name, and the names of its namesakes.
func (d *Definition) Called() []string {
	out := d.Spellings()
	if d.DisplayName != "" {
		out = append(out, d.DisplayName)
	}
	for i := range d.Namesakes {
		out = append(append(out, d.Namesakes[i].Name), d.Namesakes[i].Aliases...)
	}
	return out
}

// namesakes returns the built-in tools that share a name with a tool. builtin finds one by its name
// or alias, ignoring case; it may be nil.
func namesakes(d *Definition, builtin func(name string) *Namesake) []Namesake {
	if builtin == nil {
		return nil
	}
	var out []Namesake
	for _, name := range append(d.Spellings(), ValidName(d.Name)) {
		n := builtin(name)
		if n == nil || d.Source == SourceBuiltin && n.Name == d.OriginalName() ||
			slices.ContainsFunc(out, func(o Namesake) bool { return o.Name == n.Name }) {
			continue
		}
		out = append(out, *n)
	}
	return out
}
