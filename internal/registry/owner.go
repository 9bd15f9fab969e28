package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// CodeNameKept is the code of the diagnostic about a tool that has its server's name before
// its own, because its plain name belongs to another server.
const CodeNameKept = "name_kept"

// codeNameLent is the code of the diagnostic about a tool whose name allows nothing, see
// [Tool.Lent].
const codeNameLent = "name_lent"

// Owner says who may have a name. The zero value is a name that is free.
type Owner struct {
	// Kept is set if only tools of Server may have the name; if Server is "", no
	// server's tool may.
	Kept   bool
	Server string
	// Unsure is set if the name went, or would go, to the first server that answers,
	// because nothing says which one it belongs to.
	Unsure bool
	// Lent says that only the lock file of a project that is not trusted gives the name to
	// Server, and Other that something the person trusts gives it to another server.
	Lent, Other bool
}

// KeptName is a name that is kept for a server.
type KeptName struct {
	Name, Server string
	IsAPI        bool   // whether the server is an API
	Absent       string // why the server is not in the registry; "" if it should be
	Setting      string // origin of the setting that is the reason
}

// GivenName is a name that a registry gave to a tool of a server.
type GivenName struct {
	Name, Server string
	Unsure       bool // a server before it failed and may have the name
	Lent         bool // see [Tool.Lent]
}

// Names decides which server a name belongs to, so that a tool of another server never
// gets it. The names are plain names of servers' tools, and names that begin with
// "server__". It is safe for concurrent use.
type Names interface {
	// Owner returns who may have a name.
	Owner(name string) Owner
	// Kept returns the plain names that are kept, sorted.
	Kept() []KeptName
	// Keep remembers the names that a registry gave. It returns false if one of them
	// has come to belong to another server meanwhile; the registry must then be built
	// again.
	Keep(ctx context.Context, given []GivenName) bool
}

// keptFrom reports whether a name is kept from a server's tool.
func (b *builder) keptFrom(t *Tool, name string) (Owner, bool) {
	if b.opts.Names == nil || !t.OfServer() {
		return Owner{}, false
	}
	o := b.opts.Names.Owner(name)
	return o, o.Kept && o.Server != t.Server
}

// isPlain reports whether a server's tool has its name without the server.
func (t *Tool) isPlain() bool { return t.OfServer() && t.Name == ValidName(t.PlainName()) }

// putPlain registers a tool under a name that is free. For a server's tool it records
// that the name was given.
func (b *builder) putPlain(t *Tool) {
	if b.opts.Names != nil && t.isPlain() {
		o := b.opts.Names.Owner(t.Name)
		t.Contested = ""
		if len(b.failed) > 0 && o.Unsure {
			t.Contested = b.failed[0]
		}
		// Without the lock of a project that is not trusted, would another have the name?
		t.Lent = o.Lent && (o.Other || b.passed[t.Name] || len(b.failed) > 0)
		if t.Lent {
			b.diagnose(SeverityInfo, codeNameLent, t.Source, t.Name,
				fmt.Sprintf("server %q has the name %q by the lock file of this project, which is not trusted: what allows %q by its name does not count",
					t.Server, t.Name, t.Name),
				"in rules, name "+t.Qualified())
		}
		b.given[t.Name] = GivenName{t.Name, t.Server, t.Contested != "", t.Lent}
	}
	b.put(t)
}

// lend marks the tool of the project if only one of two tools with the same name is one.
func lend(t, old *Tool) {
	t.Lent = t.Lent || t.OfProject && !old.OfProject
	old.Lent = old.Lent || old.OfProject && !t.OfProject
}

// hidesLent hides a tool of the project that a list of the tools to keep does not have by a name of
// its own.
func (b *builder) hidesLent(t *Tool) bool {
	if !t.Lent || !t.OfProject {
		return false
	}
	h := b.filtered(t)
	if h == nil {
		return false
	}
	h.Name, h.Version, h.Source = t.Name, t.Version, t.Source
	b.reg.hidden = append(b.reg.hidden, *h)
	return true
}

// yields hides a registered tool as [builder.hidesLent] does, in all versions, so that its name is
// free.
func (b *builder) yields(old *Tool) bool {
	all := slices.Clone(b.versionsOf(old))
	for _, t := range all {
		t.Lent = old.Lent
		if !b.hidesLent(t) {
			return false
		}
	}
	b.reg.tools = slices.DeleteFunc(b.reg.tools, func(t *Tool) bool { return t == old })
	delete(b.reg.names, old.Name)
	delete(b.reg.versions, old.Name)
	delete(b.given, old.Name)
	return true
}

// lendTaken marks a tool of the project that is not a server's if its name belongs to a server,
// which may be absent.
func (b *builder) lendTaken(t *Tool) {
	if b.opts.Names == nil || !t.OfProject || t.OfServer() {
		return
	}
	o := b.opts.Names.Owner(t.Name)
	t.Lent = o.Kept && o.Server != ""
}

// qualifyKept registers a tool under its qualified name, because its plain name is kept
// for another server.
func (b *builder) qualifyKept(t *Tool, o Owner) {
	plain := t.Name
	if t.Lent = t.OfProject; b.hidesLent(t) {
		return
	}
	t.Lent = false
	b.passed[plain] = true
	b.qualify(t, nil, t.Qualified())
	if o.Server != "" && t.Name != plain {
		b.diagnose(SeverityInfo, CodeNameKept, t.Source, t.Name,
			fmt.Sprintf("the name %q belongs to server %q; registered as %q", plain, o.Server, t.Name),
			fmt.Sprintf("in rules, name %s or %s", ValidName(o.Server+"__"+plain), t.Name))
	}
}

// explainKept records, for each kept name that its server's tool does not have, whose it
// is and why the tool is not there.
func (b *builder) explainKept() {
	if b.opts.Names == nil || b.partial {
		return
	}
	reports := map[string]SourceReport{}
	for _, r := range b.reg.reports {
		reports[r.Name] = r
	}
	hidden := map[[2]string]*Hidden{}
	for i := range b.reg.hidden {
		h := &b.reg.hidden[i]
		hidden[[2]string{ValidName(h.Name), h.Source}] = h
	}
	belongs := map[string]string{} // the beginning of the reason, by server
	for _, k := range b.opts.Names.Kept() {
		if t := b.reg.names[k.Name]; t != nil {
			continue // its own, or a local tool that comes first
		}
		source := MCPPrefix + k.Server
		if k.IsAPI {
			source = APIPrefix + k.Server
		}
		if belongs[k.Server] == "" {
			belongs[k.Server] = fmt.Sprintf("it belongs to server %q", k.Server)
		}
		h := Hidden{Name: k.Name, Source: source, Setting: k.Setting, Kept: true, Reason: belongs[k.Server]}
		report, loaded := reports[source]
		was := hidden[[2]string{k.Name, source}]
		if m, ok := b.reg.misfits[k.Name]; ok && was == nil && m.Source == source {
			was = &m
		}
		switch t := b.renamed[k.Name]; {
		case k.Absent != "":
			h.Reason += ", which is " + k.Absent
		case !loaded || t != nil && t.Source == source:
			continue
		case report.Err != nil:
			h.Reason, h.Err = h.Reason+": "+
				strings.TrimPrefix(report.Err.Error(), fmt.Sprintf("server %q: ", k.Server)), report.Err
		case was != nil:
			h.Reason, h.Setting, h.Err = h.Reason+": "+was.Reason, was.Setting, was.Err
			b.reg.kept[k.Name] = h
			continue
		default:
			h.Reason += ", which no longer has it under this name"
		}
		b.reg.kept[k.Name] = h
		b.reg.hidden = append(b.reg.hidden, h)
	}
}

// upTo returns the sources that are needed to find a tool: if the name is kept for a
// server, those up to this server.
func (l *Loader) upTo(sources []Source, name string) []Source {
	if l.opts.Names == nil {
		return sources
	}
	plain, _, _ := cutVersion(name)
	o := l.opts.Names.Owner(plain)
	if !o.Kept || o.Server == "" {
		return sources
	}
	local := 0
	for i, s := range sources {
		server, ok := ServerOf(s.Name())
		switch {
		case ok && server == o.Server:
			return sources[:i+1]
		case !ok:
			local = i + 1
		}
	}
	return sources[:local]
}

// ownEquivalents returns our names for what other agents call name, in lower case: built-in tools
// and their params.
func ownEquivalents(name string) []string {
	switch name {
	case "bash", "shell", "terminal", "execute_command", "run_command", "run_terminal_cmd", "local_shell":
		return []string{"run_shell_command"}
	case "bashoutput", "killbash", "killshell":
		return []string{"process"}
	case "read", "view", "cat", "open_file", "read_text_file":
		return []string{"read_file"}
	case "multiedit", "edit_file", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "search_replace":
		return []string{"edit"}
	case "write", "create_file", "write_to_file":
		return []string{"write_file"}
	case "ls", "list_dir", "list_files":
		return []string{"list_directory"}
	case "ripgrep", "search_files", "codebase_search":
		return []string{"grep"}
	case "file_search", "find_files":
		return []string{"glob"}
	case "webfetch", "fetch_url":
		return []string{"web_fetch"}
	case "replace_all":
		return []string{"expected_replacements"}
	case "run_in_background", "is_background":
		return []string{"background"}
	case "cmd":
		return []string{"command"}
	case "cwd", "workdir", "working_directory":
		return []string{"directory"}
	case "path", "file", "filename", "absolute_path", "target_file", "notebook_path":
		return []string{"file_path"}
	case "file_path", "dir_path", "folder":
		return []string{"path", "directory"}
	case "old_str", "old_text":
		return []string{"old_string"}
	case "new_str", "new_text":
		return []string{"new_string"}
	case "contents", "text", "file_text":
		return []string{"content"}
	case "query", "regex":
		return []string{"pattern"}
	case "file_pattern":
		return []string{"include"}
	case "timeout_ms":
		return []string{"timeout"}
	}
	return nil
}

// Namesake is a built-in tool that has a name in common with a tool that is not this built-in
// one. What settings say about the built-in tool by any of its names reaches both, unless it
// allows something.
type Namesake struct {
	Name     string
	Aliases  []string
	Category Category
}

// has reports whether the built-in tool has a name, ignoring case.
func (n *Namesake) has(name string) bool {
	same := func(own string) bool { return strings.EqualFold(own, name) }
	return same(n.Name) || slices.ContainsFunc(n.Aliases, same)
}

// Bears returns the built-in tool whose name the tool is registered under although it is
// another tool; nil if there is none.
func (d *Definition) Bears() *Namesake {
	for i := range d.Namesakes {
		if d.Namesakes[i].has(d.Name) {
			return &d.Namesakes[i]
		}
	}
	return nil
}

// Called returns every name by which a setting that denies, asks, excludes or runs a hook
// refers to the tool: its spellings, its display name, and the names of the built-in tools that have one
// of its own.
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

// namesakes returns the built-in tools that have a name of a tool. builtin finds one by its
// name or alias, ignoring case; it may be nil.
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

// Strictest returns the category of two that settings treat more strictly by default.
func Strictest(a, b Category) Category {
	order := []Category{CategoryRead, CategoryNetwork, CategoryWrite, CategoryCommand}
	rank := func(c Category) int {
		if i := slices.Index(order, c); i >= 0 {
			return i
		}
		return len(order)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
