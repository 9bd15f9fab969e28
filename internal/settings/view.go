package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/merge"
)

// NothingImportedError reports that --import found no server of a program.
type NothingImportedError struct {
	Program imports.Program
	Looked  []Place // where its servers would be
	grant   string  // the command that trusts the project
}

func (e *NothingImportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no MCP servers of %s were found", e.Program.Title)
	for i, p := range e.Looked {
		sep := "; looked at "
		if i > 0 {
			sep = ", "
		}
		b.WriteString(sep + document.Visible(p.Path))
		switch {
		case p.State == PlaceAbsent:
			b.WriteString(" (absent)")
		case p.State == PlaceRead:
			b.WriteString(" (names none)")
		default:
			b.WriteString(" (" + p.Reason + ")")
		}
	}
	return b.String()
}

// Hint says what to do if a file of the project is left out.
func (e *NothingImportedError) Hint() string {
	if slices.ContainsFunc(e.Looked, func(p Place) bool { return p.Reason == notTrusted }) {
		return e.grant + ", or --trust-project for one run"
	}
	return ""
}

// Command returns a command to type that is about the same files as this run.
func (g *Globals) Command(command string) string {
	words := []string{"toolreg"}
	if g.Root != "" {
		words = append(words, "--root", g.Root)
	}
	for _, p := range g.Imports {
		words = append(words, "--import", p)
	}
	return strings.Join(append(words, command), " ")
}

// notTrusted is why a file of an untrusted project is left out.
const notTrusted = "not trusted; see `toolreg trust status`"

// ownTools are the settings that add tools to a registry, or leave some out. Those that say which
// servers may be connected are not among them: they hold for every program's servers.
func ownTools() []string {
	return []string{
		"toolDiscoveryCommand", "toolCallCommand", "mcpServers", "mcpServerCommand", "openapi", "composites",
		"plugins.paths", "plugins.disabled", "coreTools", "excludeTools", "tools.only", "tools.allow", "overrides",
		"permissions.filesystem", "permissions.network", "permissions.shell", "permissions.database", "scripts", "scripts.declare", "search.always",
	}
}

// view returns the program for which alone the run answers, and removes the tools and filters
// of the settings; nil if the run is about the whole registry. See [Options.View].
func (l *loader) view(m *merge.Merged) *imports.Program {
	if !l.opts.View || l.opts.Import == nil || len(l.globals.Imports) == 0 || len(m.List("imports").Entries) > 0 {
		return nil
	}
	if len(l.globals.Imports) > 1 {
		l.problems = append(l.problems, document.Problem{File: "--import", Message: "shows what one program gets, so it can be given once",
			Hint: "name one program, or add --preset full to see the servers of all beside your own tools"})
		return nil
	}
	if !slices.Contains(l.opts.Import.Programs(), l.globals.Imports[0]) {
		return nil // reported by importNames
	}
	for _, name := range ownTools() {
		m.Remove(name)
	}
	p := l.opts.Import.Program(l.globals.Imports[0])
	return &p
}

// setPrograms records from whose files servers were imported.
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
