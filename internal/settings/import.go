package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/trust"
)

// maxImport limits the size of another program's file: some keep their history
// in it.
const maxImport = 16 << 20

// Importer finds the MCP servers that other programs are configured with.
type Importer interface {
	// Programs returns the names that the setting imports accepts.
	Programs() []string
	// Program describes one of them; the zero value for an unknown name.
	Program(name string) Program
	// Files returns the files of one program in order of precedence, whether or not
	// they exist.
	Files(program, root string, environ []string) []ImportFile
}

// ImportFile is a file in which another program keeps MCP servers.
type ImportFile struct {
	Path    string // absolute
	Project bool   // part of the project: it applies once the project is trusted
	// Read returns the servers in the bytes of the file, in file order.
	Read func(path string, data []byte) ([]ImportedServer, []document.Problem)
	// With are other files that switch servers of this one, or some of their tools, off, and
	// Switch applies one that exists. They are read whether the project is trusted or not,
	// because they only take away. Switch may be nil.
	With   []string
	Switch func(servers []ImportedServer, with *document.Document)
}

// servers returns the servers in the bytes of the file.
func (f *ImportFile) servers(data []byte) ([]ImportedServer, []document.Problem) {
	servers, problems := f.Read(f.Path, data)
	if f.Switch == nil || len(servers) == 0 {
		return servers, problems
	}
	for _, path := range f.With {
		file, err := trust.ReadOwned(path, maxImport)
		if isMissing(err) || err == nil && len(bytes.TrimSpace(file.Data)) == 0 {
			continue
		}
		var doc *document.Document
		if err == nil {
			doc, _ = document.ParseForeign(path, file.Data)
		}
		if doc != nil {
			f.Switch(servers, doc)
			continue
		}
		for i := range servers {
			servers[i].Problem = cmp.Or(servers[i].Problem, "it may be switched off in "+path+", which cannot be read")
		}
	}
	return servers, problems
}

// ImportedServer is a server of another program.
type ImportedServer struct {
	Name    string
	JSON    json.RawMessage // an entry of mcpServers
	Pos     jsonx.Pos
	Problem string // why it is not imported; "" if it is
	// Enabled is set if the entry does nothing but switch the server of another file of
	// the program on or off. JSON is then nil.
	Enabled *bool
}

// switches are the entries of one program that only switch servers on or off, by name. Of
// several, the first counts: files come in order of precedence.
type switches map[string]*serverSwitch

type serverSwitch struct {
	on   bool
	at   string // file and line
	pos  jsonx.Pos
	used bool
}

func (s switches) add(file string, server ImportedServer) {
	if s[server.Name] == nil {
		s[server.Name] = &serverSwitch{on: *server.Enabled, at: fmt.Sprintf("%s:%d", file, server.Pos.Line), pos: server.Pos}
	}
}

// apply returns the entry of a server as it is switched by another file.
func (s switches) apply(name string, entry *jsonx.Value) *jsonx.Value {
	found := s[name]
	if found == nil {
		return entry
	}
	found.used = true
	entry = &jsonx.Value{Kind: entry.Kind, Pos: entry.Pos, Members: slices.Clone(entry.Members)}
	if entry.Get("disabled") != nil || !found.on {
		entry.Set("disabled", jsonx.NewBool(!found.on))
	}
	return entry
}

// unused returns warnings about entries whose server no file has.
func (s switches) unused(program string) []registry.Diagnostic {
	var out []registry.Diagnostic
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !s[name].used {
			out = append(out,
				importWarning(document.Visible(fmt.Sprintf("%s: server %q of %s is ignored: the entry only switches it on or off, and no other file has the server",
					s[name].at, name, program))))
		}
	}
	return out
}

// importNames returns the programs to import from, in order: those of the
// setting, then those of the flag. The names are checked.
func (l *loader) importNames(m *merged) []string {
	if l.opts.Import == nil {
		return nil
	}
	var out []string
	add := func(name string, p document.Problem) {
		known := l.opts.Import.Programs()
		if !slices.Contains(known, name) {
			p.Message, p.Hint = fmt.Sprintf("imports: unknown program %q", document.Visible(name)), "one of "+strings.Join(known, ", ")
			l.problems = append(l.problems, p)
		} else if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, e := range m.list("imports").Entries {
		add(e.Value, e.Origin.Problem("", ""))
	}
	for _, name := range l.globals.Imports {
		add(name, document.Problem{File: "--import"})
	}
	return out
}

// importProject reads the other programs' files in the project that would apply
// if it were trusted, and returns them so that the grant covers them.
func (l *loader) importProject(fromProject *layer) []trust.File {
	layers := slices.Clone(l.layers)
	if fromProject != nil {
		layers = append(layers, fromProject)
	}
	before := len(l.problems)
	names := l.importNames(merge(l.index, append(layers, l.named...)))
	l.problems = l.problems[:before] // reported later, once it is known what applies
	var files []trust.File
	for _, program := range names {
		for _, f := range l.opts.Import.Files(program, l.root, l.opts.Environ) {
			if !f.Project {
				continue
			}
			file, ok := l.importFile(ScopeProject, program, f)
			if !ok {
				continue
			}
			file.Name = trust.Name(l.root, f.Path)
			if !slices.ContainsFunc(files, func(have trust.File) bool { return have.Name == file.Name }) {
				files = append(files, file)
			}
			layer := l.importLayer(ScopeProject, program, f, file.Data)
			l.serverFiles.add(layer)
			l.imported = append(l.imported, layer)
		}
	}
	return files
}

// imports adds the servers of other programs after those of the settings. A
// taken name is not replaced: own settings come before other programs, and
// earlier programs before later ones.
func (l *loader) imports(m *merged) {
	names := l.importNames(m)
	trusted := l.project != nil && l.project.Trusted && !l.withoutImports
	for _, program := range names {
		l.switches = switches{}
		for _, f := range l.opts.Import.Files(program, l.root, l.opts.Environ) {
			l.importPaths = append(l.importPaths, f.Path)
			if f.Project {
				l.importTrusted(m, program, f, trusted)
				continue
			}
			if l.opts.NoUser {
				l.place(ScopeUser, f.Path, PlaceSkipped, "--no-user-settings")
				continue
			}
			if file, ok := l.importFile(ScopeUser, program, f); ok {
				layer := l.importLayer(ScopeUser, program, f, file.Data)
				l.serverFiles.add(layer)
				l.addImported(m, program, layer)
				l.place(ScopeUser, f.Path, PlaceRead, "imports: "+program)
			}
		}
		l.diags = append(l.diags, l.switches.unused(program)...)
	}
}

// importTrusted adds the servers of a file in the project, if that is trusted.
func (l *loader) importTrusted(m *merged, program string, f ImportFile, trusted bool) {
	i := slices.IndexFunc(l.imported, func(layer *layer) bool { return layer.file == f.Path })
	switch {
	case l.opts.NoProject:
		l.place(ScopeProject, f.Path, PlaceSkipped, "--no-project-settings")
	case i < 0: // absent or refused: already recorded
	case !trusted:
		l.place(ScopeProject, f.Path, PlaceSkipped, notTrusted)
	default:
		l.addImported(m, program, l.imported[i])
		l.place(ScopeProject, f.Path, PlaceRead, "imports: "+program)
	}
}

// importFile reads a file; a missing one is not an error.
func (l *loader) importFile(scope Scope, program string, f ImportFile) (trust.File, bool) {
	limit := int64(maxImport)
	if f.Project {
		limit = document.MaxFile
	}
	file, err := trust.ReadOwned(f.Path, limit)
	if err == nil {
		return file, true
	}
	if isMissing(err) {
		l.place(scope, f.Path, PlaceAbsent, "imports: "+program)
		return trust.File{}, false
	}
	p := document.Unreadable(f.Path, err)
	if errors.Is(err, trust.ErrTooLarge) {
		p.Message = fmt.Sprintf("is larger than %d MiB", limit>>20)
	}
	l.place(scope, f.Path, PlaceRefused, p.Message)
	l.warn("import_refused", "the MCP servers of "+program+" are ignored: "+p.String(), "")
	return trust.File{}, false
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// importLayer converts the servers of a file to settings. A server that cannot
// be imported does not affect the others.
func (l *loader) importLayer(scope Scope, program string, f ImportFile, data []byte) *layer {
	out := &layer{scope: scope, file: f.Path}
	servers, problems := f.servers(data)
	out.servers = len(servers)
	for _, p := range problems {
		out.unknown = append(out.unknown, ignoredImport(program, p.String()))
	}
	object := &jsonx.Value{Kind: jsonx.Object}
	for _, s := range servers {
		if s.Enabled != nil {
			out.switched = append(out.switched, s)
			continue
		}
		value, problem := l.importServer(s)
		if problem != "" {
			out.unknown = append(out.unknown,
				importWarning(document.Visible(fmt.Sprintf("%s:%d: server %q of %s is ignored: %s", f.Path, s.Pos.Line, s.Name, program, problem))))
			continue
		}
		if object.Get(s.Name) == nil {
			object.Members = append(object.Members, jsonx.Member{Name: s.Name, Pos: s.Pos, Value: value})
		}
	}
	if len(object.Members) > 0 {
		out.root = &jsonx.Value{Kind: jsonx.Object, Members: []jsonx.Member{{Name: serversKey, Value: object}}}
		origin := Origin{Scope: scope, Name: f.Path}
		out.entries = []entry{{row: l.index.Row(serversKey), key: serversKey, node: object, origin: origin}}
	}
	return out
}

const serversKey = "mcpServers"

// importServer checks one server as if it were in a settings file.
func (l *loader) importServer(s ImportedServer) (*jsonx.Value, string) {
	if s.Problem != "" {
		return nil, s.Problem
	}
	if s.Name == "" {
		return nil, "it has no name"
	}
	n, problem := checkEntry(l.index, serversKey, s.Name, s.JSON)
	if problem != "" {
		return nil, problem
	}
	n.SetPos(s.Pos)
	return n, ""
}

// CheckServer returns what is wrong with an entry of mcpServers, or "" if nothing
// is.
func CheckServer(name string, entry json.RawMessage) string {
	_, problem := checkEntry(table.NewIndex(), serversKey, name, entry)
	return problem
}

// CheckAPI is CheckServer for an entry of openapi.
func CheckAPI(name string, entry json.RawMessage) string {
	_, problem := checkEntry(table.NewIndex(), apisKey, name, entry)
	return problem
}

// checkEntry checks an entry of mcpServers or openapi.
func checkEntry(x *table.Index, key, name string, entry json.RawMessage) (n *jsonx.Value, problem string) {
	doc, problems := document.Parse("server.json", entry)
	if len(problems) > 0 {
		return nil, "its entry cannot be read"
	}
	r := reader{index: x, layer: &layer{}}
	r.check(x.Row(key), key, &jsonx.Value{Kind: jsonx.Object, Members: []jsonx.Member{{Name: name, Value: doc.Root}}})
	if mistakes := r.layer.mistakes(); len(mistakes) > 0 {
		return nil, mistakes[0].Message
	}
	return doc.Root, ""
}

// FoundImport is an existing file of another program.
type FoundImport struct {
	Program string `json:"program"` // name of the program in the setting imports
	File    string `json:"file"`
	Servers int    `json:"servers"` // number of servers that can be imported
	Left    int    `json:"left"`    // number of servers that cannot be imported
	Project bool   `json:"project"` // it belongs to the project

	Entries []ImportedServer `json:"-"` // all of them, in file order

	// Warnings reports why the file cannot be read, and which entries of the program have no server.
	Warnings []registry.Diagnostic `json:"-"`
}

// FindImports looks for MCP servers in the files of other programs, regardless
// of the settings. It runs nothing and skips files without servers, but not those that
// cannot be read.
func FindImports(from Importer, root string, environ []string) []FoundImport {
	l := loader{index: table.NewIndex()}
	var out []FoundImport
	for _, program := range from.Programs() {
		switched, ofProject := switches{}, switches{} // the project, not yet trusted, switches none of the user's on
		first := len(out)
		for _, f := range from.Files(program, root, environ) {
			found := FoundImport{Program: program, File: f.Path, Project: f.Project}
			file, err := trust.ReadOwned(f.Path, maxImport)
			switch {
			case isMissing(err):
				continue
			case err != nil:
				found.Warnings = []registry.Diagnostic{ignoredImport(program, document.Unreadable(f.Path, err).String())}
				out = append(out, found)
				continue
			}
			servers, problems := f.servers(file.Data)
			for _, p := range problems {
				found.Warnings = append(found.Warnings, ignoredImport(program, p.String()))
			}
			for _, s := range servers {
				switch {
				case s.Enabled == nil:
					found.Entries = append(found.Entries, s)
				case f.Project && *s.Enabled:
					ofProject.add(f.Path, s)
				default:
					switched.add(f.Path, s)
				}
			}
			if len(servers)+len(problems) > 0 {
				out = append(out, found)
			}
		}
		for i := range out[first:] {
			found := &out[first+i]
			for j := range found.Entries {
				s := &found.Entries[j]
				node, problem := l.importServer(*s)
				if s.Problem = problem; problem != "" {
					found.Left++
					continue
				}
				found.Servers++
				if on := ofProject.apply(s.Name, node); found.Project {
					node = on
				}
				s.JSON = switched.apply(s.Name, node).JSON()
			}
		}
		if unused := append(switched.unused(program), ofProject.unused(program)...); len(unused) > 0 {
			out[len(out)-1].Warnings = append(out[len(out)-1].Warnings, unused...)
		}
	}
	return out
}

func ignoredImport(program, why string) registry.Diagnostic {
	return importWarning("the MCP servers of " + program + " are ignored: " + why)
}

func importWarning(message string) registry.Diagnostic {
	return registry.Diagnostic{Severity: registry.SeverityWarning, Code: "import_skipped", Message: message}
}

// addImported adds the servers of a layer whose names are not taken.
func (l *loader) addImported(m *merged, program string, layer *layer) {
	l.importedFrom[layer.file] = program
	l.found[program] += layer.servers
	l.diags = append(l.diags, layer.unknown...)
	for _, server := range layer.switched {
		l.switches.add(layer.file, server)
	}
	taken := append(m.named(serversKey), m.named(apisKey)...)
	for _, e := range layer.entries {
		e.node = &jsonx.Value{Kind: jsonx.Object, Members: slices.Clone(e.node.Members)}
		e.node.Members = slices.DeleteFunc(e.node.Members, func(f jsonx.Member) bool {
			i := slices.IndexFunc(taken, func(n Named) bool { return n.Name == f.Name })
			if i < 0 {
				return false
			}
			l.diags = append(l.diags, registry.Diagnostic{Severity: registry.SeverityInfo, Code: "import_shadowed",
				Message: document.Visible(fmt.Sprintf("%s:%d: server %q is ignored: %s already defines that name",
					layer.file, f.Line, f.Name, taken[i].Origin))})
			return true
		})
		for i := range e.node.Members {
			e.node.Members[i].Value = l.switches.apply(e.node.Members[i].Name, e.node.Members[i].Value)
		}
		m.entries[e.row] = append(m.entries[e.row], e)
	}
}
