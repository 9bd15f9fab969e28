package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/trust"
)

// importNames returns the programs to import from, in order: those of the
// setting, then those of the flag. The names are checked.
func (l *loader) importNames(m *merge.Merged) []string {
	if l.opts.Import == nil {
		return nil
	}
	var out []string
	add := func(name string, p document.Problem) {
		known := l.opts.Import.Programs()
		if !slices.Contains(known, name) {
			p.Message, p.Hint = fmt.Sprintf("imports: unknown program %q", document.Visible(name)),
				"one of "+strings.Join(known, ", ")
			l.problems = append(l.problems, p)
		} else if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, e := range m.List("imports").Entries {
		add(e.Value, e.Origin.Problem("", ""))
	}
	for _, name := range l.globals.Imports {
		add(name, document.Problem{File: "--import"})
	}
	return out
}

// importProject reads the other programs' files in the project that would apply
// if it were trusted, and returns them so that the grant covers them.
func (l *loader) importProject(fromProject *layers.Layer) []trust.File {
	below := slices.Clone(l.layers)
	if fromProject != nil {
		below = append(below, fromProject)
	}
	before := len(l.problems)
	names := l.importNames(merge.Of(l.index, append(below, l.named...)))
	l.problems = l.problems[:before] // reported later, once it is known what applies
	var files []trust.File
	for _, program := range names {
		for _, f := range l.opts.Import.Files(program, l.root, l.opts.Environ) {
			if !f.Project {
				if file, problem := f.Open(); problem == nil && file.Path != "" && !l.opts.NoUser {
					l.mine = append(l.mine, f.Layer(&l.documents, l.index, ScopeUser, program, file.Data).Layer)
				}
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
			servers := f.Layer(&l.documents, l.index, ScopeProject, program, file.Data)
			l.serverFiles.add(servers.Layer)
			l.imported = append(l.imported, servers)
		}
	}
	return files
}

// overPerson describes what the project changes about the person's settings, and about servers in
// the person's files of other programs.
func (l *loader) overPerson(fromProject *layers.Layer) []string {
	out := merge.OverPerson(l.index, slices.Concat(l.mine, l.layers), fromProject, l.opts.Builtin)
	own := merge.Of(l.index, l.mine).Named(table.ServersKey)
	for _, servers := range l.imported {
		out = append(out, merge.OverPerson(l.index, l.mine, servers.Layer, l.opts.Builtin)...)
		for _, s := range servers.Switched {
			i := slices.IndexFunc(own, func(n Named) bool { return n.Name == s.Name })
			if i >= 0 && *s.Enabled {
				out = append(out, fmt.Sprintf("%s:%d: mcpServers.%s turns on the server of %s",
					servers.File, s.Pos.Line, document.Printable(s.Name), own[i].Origin))
			}
		}
	}
	return out
}

// imports adds the servers of other programs after those of the settings. A
// taken name is not replaced: own settings come before other programs, and
// earlier programs before later ones.
func (l *loader) imports(m *merge.Merged) {
	names := l.importNames(m)
	trusted := l.project != nil && l.project.Trusted && !l.withoutImports
	for _, program := range names {
		l.switches, l.faulty = imports.Switches{}, nil
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
				servers := f.Layer(&l.documents, l.index, ScopeUser, program, file.Data)
				l.serverFiles.add(servers.Layer)
				l.addImported(m, program, servers)
				l.place(ScopeUser, f.Path, PlaceRead, "imports: "+program)
			}
		}
		l.diags = append(l.diags, l.switches.Unused(program)...)
	}
}

// importTrusted adds the servers of a file in the project, if that is trusted.
func (l *loader) importTrusted(m *merge.Merged, program string, f imports.File, trusted bool) {
	i := slices.IndexFunc(l.imported, func(servers *imports.Layer) bool { return servers.File == f.Path })
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
func (l *loader) importFile(scope Scope, program string, f imports.File) (trust.File, bool) {
	file, problem := f.Open()
	switch {
	case problem != nil:
		l.place(scope, f.Path, PlaceRefused, problem.Message)
		l.warn("import_refused", "the MCP servers of "+program+" are ignored: "+problem.String(), "")
	case file.Path == "":
		l.place(scope, f.Path, PlaceAbsent, "imports: "+program)
	}
	return file, file.Path != ""
}

// addImported adds the servers of a layer whose names are not taken. The name of a server that
// cannot be imported counts as taken for the program's other files: an entry of that name there is
// not the one that the program uses.
func (l *loader) addImported(m *merge.Merged, program string, from *imports.Layer) {
	l.importedFrom[from.File] = program
	l.found[program] += from.Servers
	l.diags = append(l.diags, from.Unknown...)
	l.switches.Add(from)
	servers, apis := m.Named(table.ServersKey), m.Named(table.APIsKey)
	taken := slices.Concat(servers, apis, l.faulty)
	for _, s := range from.Faulty {
		l.faulty = append(l.faulty, Named{Name: s.Name,
			Origin: Origin{Scope: from.Scope, Name: from.File, Line: int(s.Pos.Line)}})
	}
	for _, e := range from.Settings {
		e.Value = &jsonx.Value{Kind: jsonx.Object, Members: slices.Clone(e.Value.Members)}
		e.Value.Members = slices.DeleteFunc(e.Value.Members, func(f jsonx.Member) bool {
			i := slices.IndexFunc(taken, func(n Named) bool { return n.Name == f.Name })
			if i < 0 {
				return false
			}
			l.diags = append(l.diags, registry.Diagnostic{Severity: registry.SeverityInfo, Code: "import_shadowed",
				Message: document.Visible(fmt.Sprintf("%s:%d: server %q is ignored: %s already defines that name",
					from.File, f.Line, f.Name, taken[i].Origin))})
			if from.Scope == ScopeUser && taken[i].Origin.Scope == ScopeProject && i < len(servers)+len(apis) {
				was := layers.Setting{Row: e.Row, Value: jsonx.NewObject(f), Origin: e.Origin}
				if i >= len(servers) {
					was.Row, was.Value = m.Index.Row(table.APIsKey), jsonx.NewObject(jsonx.NewMember(f.Name, jsonx.NewObject()))
				}
				m.AddFirst(was) // rules that allow the name do not apply to the project's server
			}
			return true
		})
		for i := range e.Value.Members {
			e.Value.Members[i].Value = l.switches.Apply(e.Value.Members[i].Name, e.Value.Members[i].Value)
		}
		m.Add(e)
	}
}

// view returns the program that alone is shown in this run, and removes the tools and filters of
// the settings; nil if the run shows the whole registry. See [Options.View].
func (l *loader) view(m *merge.Merged) *imports.Program {
	if !l.opts.View || l.opts.Import == nil || len(l.globals.Imports) == 0 || len(m.List("imports").Entries) > 0 {
		return nil
	}
	if len(l.globals.Imports) > 1 {
		l.problems = append(l.problems, document.Problem{File: "--import",
			Message: "given more than once, but it shows what one program gets",
			Hint:    "name one program, or add --preset full to see the servers of all beside your own tools"})
		return nil
	}
	if !slices.Contains(l.opts.Import.Programs(), l.globals.Imports[0]) {
		return nil // reported by importNames
	}
	for i := range m.Index.Rows {
		if row := &m.Index.Rows[i]; row.Shapes {
			m.Remove(row)
		}
	}
	p := l.opts.Import.Program(l.globals.Imports[0])
	return &p
}

// setPrograms records which programs' files servers were imported from.
func (l *loader) setPrograms(s *Settings) {
	for i := range s.Servers {
		if name, ok := l.importedFrom[s.Servers[i].Origin.Name]; ok && s.Servers[i].Origin.Scope != ScopeFile {
			p := l.opts.Import.Program(name)
			s.Servers[i].Program = &p
		}
	}
}

// nothingImported returns an error if a program of --import has no server anywhere. A file that
// is not trusted does not count.
func (l *loader) nothingImported() *NothingImportedError {
	for _, name := range l.globals.Imports {
		if l.opts.Import == nil || !slices.Contains(l.opts.Import.Programs(), name) {
			continue
		}
		e := &NothingImportedError{Program: l.opts.Import.Program(name), grant: l.globals.Command("trust grant")}
		for _, f := range l.opts.Import.Files(name, l.root, l.opts.Environ) {
			seen := slices.ContainsFunc(e.Looked, func(at Place) bool { return at.Path == f.Path })
			if i := slices.IndexFunc(l.allPlaces, func(at Place) bool { return at.Path == f.Path }); i >= 0 && !seen {
				e.Looked = append(e.Looked, l.allPlaces[i])
			}
		}
		if l.found[name] == 0 {
			return e
		}
	}
	return nil
}
