package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Load reads, checks and merges the settings of all scopes.
//
// The diagnostics report unknown keys, a project that is not trusted, files that were ignored, and
// sources that cannot be used because of a mistake in their entry (Server.Err, Command.Err). The
// error is a [*document.Error] with all other mistakes in all files, variables and flags that apply.
// Nothing from an untrusted project applies; mistakes in its settings are diagnostics too.
func Load(o Options) (*Settings, []registry.Diagnostic, error) {
	l := newLoader(o)
	l.diags = append(l.diags, unknownVariables(l.index, l.opts.Environ)...)
	if err := l.readAll(); err != nil {
		return nil, l.diags, err
	}
	m := merge.Of(l.index, l.layers)
	l.diags = append(l.diags, m.Tighten()...)
	l.scalars.apply(m)
	view := l.view(m)
	l.imports(m)
	l.problems = append(l.problems, serversOfRun(m, l.scalars, l.globals.MCP, l.opts.Dir)...)
	s := newSettings(m, l.globals, l.root)
	s.View = view
	l.setPrograms(s)
	s.Project, s.importPaths, s.serverFiles = l.project, l.importPaths, l.serverFiles
	s.namedInside = slices.ContainsFunc(l.real,
		func(file string) bool { return trust.Within(file, trust.Real(l.root)) })
	l.diags = append(l.diags, splitCommands(s, l.env)...)
	l.diags = append(l.diags, noteWindows(s.Servers)...)
	if p := s.Project; p != nil && (!p.Trusted || !p.Granted.IsZero()) { // otherwise nothing is trusted with them
		p.Runs = append(p.Runs, userRunners(s.Servers, expandKnown(l.env))...)
	}
	l.workspace(s)
	l.sourceFaults(s)
	l.diags = append(l.diags, m.IgnoredOverrides()...)
	if err := document.NewError(append(l.problems, l.scalars.problems...)); err != nil {
		return nil, l.diags, err
	}
	s.NothingImported = l.nothingImported()
	return s, l.diags, nil
}

// Root finds the project root as [Load] does, without reading any settings.
func Root(o Options) (string, error) {
	l := newLoader(o)
	err := l.findRoot()
	return l.root, err
}

// CodeSourceFailed is the code of a diagnostic about a source whose settings are
// wrong. The registry uses the same code when it loads the source.
const CodeSourceFailed = "source_failed"

// sourceFaults reports sources that cannot be used because of mistakes in their settings.
func (l *loader) sourceFaults(s *Settings) {
	tell := func(code, source string, err error) {
		if err != nil {
			l.diags = append(l.diags, registry.Diagnostic{Severity: registry.SeverityError,
				Code: code, Source: source, Message: err.Error()})
		}
	}
	tell(CodeSourceFailed, registry.SourceCommand, s.DiscoveryCommand.Err)
	tell("call_command_invalid", registry.SourceCommand, s.CallCommand.Err)
	for _, server := range s.Servers {
		if !server.IsOff() {
			tell(CodeSourceFailed, registry.MCPPrefix+server.Name, server.Err)
		}
	}
	for _, api := range s.APIs {
		if !api.Disabled {
			tell(CodeSourceFailed, registry.APIPrefix+api.Name, api.Err)
		}
	}
}

// readAll reads all files in order of precedence.
func (l *loader) readAll() error {
	if err := l.findRoot(); err != nil {
		return err
	}
	l.readFolder(ScopeSystem, l.opts.SystemDir)
	if user := userFolder(l.env); l.opts.NoUser {
		l.placeFolder(ScopeUser, user, PlaceSkipped, "--no-user-settings")
	} else {
		l.readFolder(ScopeUser, user)
	}
	for _, file := range l.opts.Files {
		l.readNamed(file)
	}
	if l.opts.NoProject {
		l.placeFolder(ScopeProject, filepath.Join(l.root, projectFolder), PlaceSkipped, "--no-project-settings")
	} else {
		l.placeProject(l.readProject())
	}
	for _, layer := range l.named {
		l.count(layer)
		l.placeLayer(layer)
	}
	return nil
}

func (l *loader) findRoot() error {
	dir := l.opts.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return document.NewError([]document.Problem{{File: "working directory",
				Message: text.Cause(err).Error(), Hint: "change to a directory that exists"}})
		}
		l.opts.Dir = dir
	}
	if l.opts.Root == "" {
		var note string
		if l.root, note = findRoot(dir, l.env.Home()); note != "" {
			l.warn("root_foreign", note, "pass --root to choose the project root")
		}
		return nil
	}
	l.root = l.absolute(l.opts.Root)
	info, err := os.Stat(l.root)
	switch {
	case err != nil:
		return document.NewError([]document.Problem{{File: l.root,
			Message: "not a project root: " + text.Cause(err).Error()}})
	case !info.IsDir():
		return document.NewError([]document.Problem{{File: l.root, Message: "not a project root: not a directory"}})
	}
	return nil
}

// readFolder reads the settings file of the system's or the user's folder. A file
// that others could have written, replaced or removed is an error, because it may contain
// rules that forbid things.
func (l *loader) readFolder(scope Scope, dir string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if reason := trust.Foreign(real); reason != "" {
			l.refused(scope, document.Unreadable(dir, &trust.OwnerError{Path: dir, Reason: reason}))
			return
		}
	}
	path, problem := fileIn(dir)
	if problem != nil {
		l.refused(scope, *problem)
		return
	}
	if path == "" {
		l.placeFolder(scope, dir, PlaceAbsent, "")
		return
	}
	f, err := trust.ReadOwned(path, document.MaxFile)
	if err != nil {
		l.refused(scope, document.Unreadable(path, err))
		return
	}
	layer := layers.Read(l.index, scope, path, f.Data)
	l.count(layer)
	l.placeLayer(layer)
}

// readNamed reads a --settings file, which overrides the project's own.
func (l *loader) readNamed(name string) {
	if data, ok := l.opts.Piped[name]; ok {
		l.readPiped(name, data)
		return
	}
	path := l.absolute(name)
	f, err := trust.Read(path, document.MaxFile)
	if p := l.opts.Proposed; p != nil && p.Path == path {
		f, err = trust.Proposed(path, p.Data), nil
	}
	if err != nil {
		l.refused(ScopeFile, document.Unreadable(path, err))
		return
	}
	l.named, l.real = append(l.named, layers.Read(l.index, ScopeFile, path, f.Data)), append(l.real, f.Path)
}

func (l *loader) readPiped(name string, data []byte) {
	if name == "-" {
		name = "stdin"
	}
	if len(data) > document.MaxFile {
		l.refused(ScopeFile, document.Unreadable(name, trust.ErrTooLarge))
		return
	}
	doc, problems := document.ParsePiped(name, data)
	l.named = append(l.named, layers.FromDocument(l.index, ScopeFile, name, doc, problems))
}

// workspace sets the tree that file tools may touch.
func (l *loader) workspace(s *Settings) {
	s.Workspace = s.ProjectRoot
	s.NoWorkspace = l.opts.Root == "" && filepath.Dir(l.root) == l.root && markerIn(l.root) == ""
	e, ok := s.merged.Last("workspace.root")
	if !ok || e.Value.Kind != jsonx.String || strings.TrimSpace(e.Value.Text()) == "" {
		return
	}
	path, err := expand.Word(e.Value.Text(), l.env.Lookup)
	if err != nil {
		l.problems = append(l.problems, e.Origin.Problem("workspace.root: "+err.Error(), ""))
		return
	}
	path = expand.From(s.ProjectRoot, path)
	s.Workspace, s.NoWorkspace = filepath.Clean(path), false
}

// Places reports where [Load] looks for settings and what it finds there, lowest
// precedence first, whether or not the files can be read. The error is an
// [*document.Error] for a project root that cannot be used.
func Places(o Options) ([]Place, error) {
	l := newLoader(o)
	if err := l.readAll(); err != nil {
		return nil, err
	}
	l.imports(merge.Of(l.index, l.layers))
	return l.allPlaces, nil
}
