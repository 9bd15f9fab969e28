package imports

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Found is an existing file of another program.
type Found struct {
	Program string `json:"program"` // name of the program in the setting imports
	File    string `json:"file"`
	Servers int    `json:"servers"` // number of servers that can be imported
	Left    int    `json:"left"`    // number of servers that cannot be imported
	Project bool   `json:"project"` // it belongs to the project

	Entries []Server `json:"-"` // all of them, in file order

	// Warnings reports why the file cannot be read, and which entries of the program have no server.
	Warnings []registry.Diagnostic `json:"-"`
}

// Find looks for MCP servers in the files of other programs, regardless
// of the settings. It runs nothing and skips files without servers, but not those that
// cannot be read.
func Find(from Importer, root string, environ []string) []Found {
	x := table.NewIndex()
	var out []Found
	var docs document.Foreign
	for _, program := range from.Programs() {
		switched, ofProject := Switches{}, Switches{} // the project, not yet trusted, switches none of the user's on
		first := len(out)
		for _, f := range from.Files(program, root, environ) {
			found := Found{Program: program, File: f.Path, Project: f.Project}
			file, problem := f.Open()
			switch {
			case problem != nil:
				found.Warnings = []registry.Diagnostic{ignored(program, problem.String())}
				out = append(out, found)
				continue
			case file.Path == "":
				continue
			}
			servers, problems := f.servers(&docs, file.Data)
			for _, p := range problems {
				found.Warnings = append(found.Warnings, ignored(program, p.String()))
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
				node, problem := s.entry(x)
				if s.Problem = problem; problem != "" {
					found.Left++
					continue
				}
				found.Servers++
				if on := ofProject.Apply(s.Name, node); found.Project {
					node = on
				}
				s.JSON = switched.Apply(s.Name, node).JSON()
			}
		}
		if unused := append(switched.Unused(program), ofProject.Unused(program)...); len(unused) > 0 {
			out[len(out)-1].Warnings = append(out[len(out)-1].Warnings, unused...)
		}
	}
	return out
}

// Layer is a file of another program, with its servers as a layer of settings.
type Layer struct {
	*layers.Layer
	Servers  int      // number of servers in the file, whether or not they can be imported
	Faulty   []Server // those that cannot be imported
	Switched []Server // entries that only switch servers on or off
}

// Layer converts the servers in the bytes of the file to settings. A server that cannot
// be imported does not affect the others.
func (f *File) Layer(docs *document.Foreign, x *table.Index, scope layers.Scope, program string, data []byte) *Layer {
	servers, problems := f.servers(docs, data)
	out := &Layer{Layer: &layers.Layer{Scope: scope, File: f.Path}, Servers: len(servers)}
	for _, p := range problems {
		out.Unknown = append(out.Unknown, ignored(program, p.String()))
	}
	object := &jsonx.Value{Kind: jsonx.Object}
	for _, s := range servers {
		if s.Enabled != nil {
			out.Switched = append(out.Switched, s)
			continue
		}
		value, problem := s.entry(x)
		if problem != "" {
			out.Faulty = append(out.Faulty, s)
			out.Unknown = append(out.Unknown,
				warning(document.Visible(fmt.Sprintf("%s:%d: server %q of %s is ignored: %s",
					f.Path, s.Pos.Line, s.Name, program, problem))))
			continue
		}
		if object.Get(s.Name) == nil {
			object.Members = append(object.Members, jsonx.Member{Name: s.Name, Pos: s.Pos, Value: value})
		}
	}
	if len(object.Members) > 0 {
		out.Root = &jsonx.Value{Kind: jsonx.Object, Members: []jsonx.Member{{Name: table.ServersKey, Value: object}}}
		origin := layers.Origin{Scope: scope, Name: f.Path}
		out.Settings = []layers.Setting{{Row: x.Row(table.ServersKey),
			Key: table.ServersKey, Value: object, Origin: origin}}
	}
	return out
}

// entry checks a server as if it were in a settings file.
func (s *Server) entry(x *table.Index) (n *jsonx.Value, problem string) {
	if s.Problem != "" {
		return nil, s.Problem
	}
	if s.Name == "" {
		return nil, "it has no name"
	}
	n, problem = layers.ReadEntry(x, table.ServersKey, s.Name, s.JSON)
	if problem != "" {
		return nil, problem
	}
	n.SetPos(s.Pos)
	return n, ""
}

// Switches are a program's entries that only turn servers on or off, by server name. If there are
// several, the first wins: files come in order of precedence.
type Switches map[string]*serverSwitch

type serverSwitch struct {
	on   bool
	at   string // file and line
	used bool
}

// Add adds the switches in a file.
func (s Switches) Add(l *Layer) {
	for _, server := range l.Switched {
		s.add(l.File, server)
	}
}

func (s Switches) add(file string, server Server) {
	if s[server.Name] == nil {
		s[server.Name] = &serverSwitch{on: *server.Enabled, at: fmt.Sprintf("%s:%d", file, server.Pos.Line)}
	}
}

// Apply returns the entry of a server with a switch of another file applied.
func (s Switches) Apply(name string, entry *jsonx.Value) *jsonx.Value {
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

// Unused returns warnings about entries whose server no file has.
func (s Switches) Unused(program string) []registry.Diagnostic {
	var out []registry.Diagnostic
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !s[name].used {
			out = append(out,
				warning(document.Visible(fmt.Sprintf(
					"%s: server %q of %s is ignored: the entry only switches it on or off, and no other file has the server",
					s[name].at, name, program))))
		}
	}
	return out
}

func ignored(program, why string) registry.Diagnostic {
	return warning("the MCP servers of " + program + " are ignored: " + why)
}

func warning(message string) registry.Diagnostic {
	return registry.Warning("import_skipped", "", message, "")
}
