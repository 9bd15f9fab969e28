package settings

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings/consent"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/trust"
)

// readProject reads the project's own settings, and applies them only if the
// exact bytes of everything they can run are trusted. It returns the folder and
// the settings file, "" if there is none.
func (l *loader) readProject() (dir, path string) {
	dir = filepath.Join(l.root, projectFolder)
	path, problem := fileIn(dir)
	if l.opts.Proposed != nil {
		path, problem = l.opts.Proposed.Path, nil
	}
	if problem != nil {
		l.refuse("project_settings_invalid", nil, *problem)
		return dir, ""
	}
	var files []trust.File
	var fromProject *layers.Layer
	if path != "" {
		f, ok := l.readOwnProject(path)
		if !ok {
			return dir, path
		}
		files = append(files, f)
		if !l.isNamed(f.Path) {
			fromProject = layers.Read(l.index, ScopeProject, path, f.Data)
		}
	}
	l.decideTrust(dir, fromProject, files, l.importProject(fromProject))
	return dir, path
}

func (l *loader) readOwnProject(path string) (trust.File, bool) {
	f, err := l.projectFile(path)
	if err == nil {
		f.Name = trust.Name(l.root, path)
		return f, true
	}
	p := document.Unreadable(path, err)
	if _, ok := errors.AsType[*trust.OwnerError](err); ok {
		p.Hint = "make yourself its owner and only writer, or name it with --settings"
	}
	l.refuse("project_settings_refused", []string{path}, p)
	return trust.File{}, false
}

func (l *loader) projectFile(path string) (trust.File, error) {
	if p := l.opts.Proposed; p != nil {
		return trust.Proposed(path, p.Data), nil
	}
	return trust.ReadOwned(path, document.MaxFile)
}

// refuse ignores the project. If its settings were requested explicitly, that
// is an error.
func (l *loader) refuse(code string, files []string, p document.Problem) {
	l.project = &Project{Root: l.root, Files: files, Obstacle: p.String()}
	l.serverFiles[filepath.Join(l.root, projectFolder)] = nil
	if l.opts.TrustProject {
		l.problems = append(l.problems, p)
		return
	}
	hint := p.Hint
	p.Hint = ""
	l.warn(code, "the settings of this project are ignored: "+p.String(), hint)
}

// isNamed reports whether a --settings argument names the file.
func (l *loader) isNamed(real string) bool {
	return slices.Contains(l.real, real)
}

// decideTrust collects what a grant covers and decides whether the project's own settings apply.
// fromProject is nil if the project has no settings except those that --settings names. imports are
// the files of other programs.
func (l *loader) decideTrust(dir string, fromProject *layers.Layer, files, imports []trust.File) {
	p := l.describe(dir, fromProject, files, imports)
	if len(p.Covered) == 0 && p.Obstacle == "" {
		return
	}
	l.project = p
	l.checkGrant(p, fromProject)
	if !p.Trusted && p.Obstacle == "" && len(imports) > 0 {
		l.trustWithoutImports(p, dir, fromProject, files)
	}
	switch {
	case p.Trusted && fromProject != nil:
		l.count(fromProject)
	case !p.Trusted:
		l.serverFiles.add(fromProject)
		l.warnUntrusted(p, fromProject)
	}
}

// describe returns what a grant would cover and allow.
func (l *loader) describe(dir string, fromProject *layers.Layer, files, imports []trust.File) *Project {
	p := &Project{Root: l.root}
	var programs []consent.Program
	read := []*layers.Layer{fromProject}
	for _, servers := range l.imported {
		read = append(read, servers.Layer)
	}
	for _, layer := range read {
		f := l.asked(layer)
		programs = append(programs, consent.Programs(f)...)
		p.Loosens, p.Expands = append(p.Loosens, consent.Loosens(f)...), append(p.Expands, consent.Expands(f)...)
	}
	p.Loosens = append(p.Loosens, l.overPerson(fromProject)...)
	covered, plugins, err := l.cover(dir, fromProject, slices.Concat(files, imports), programs)
	if p.Covered = covered; err != nil {
		p.Obstacle, p.Covered = err.Error(), files
		if l.opts.TrustProject {
			l.problems = append(l.problems, document.Problem{File: dir, Message: "cannot be trusted: " + p.Obstacle})
		}
	}
	for _, own := range merge.Of(l.index, l.layers).Named("plugins.settings") {
		for _, plugin := range plugins {
			if plugin.ID == own.Name {
				p.Expands = append(p.Expands, fmt.Sprintf("%s: plugins.settings.%s of %s", plugin.Path, own.Name, own.Origin))
			}
		}
	}
	p.Hash = trust.Hash(p.Covered)
	for _, f := range p.Covered {
		if f.Sum != "" && f.Path != "" {
			p.Files = append(p.Files, f.Path)
		}
	}
	p.Runs = append(consent.Describe(programs, expandKnown(l.env)),
		consent.DescribePlugins(l.root, plugins, expandKnown(l.env))...)
	return p
}

// userRunners lists servers in the user's own settings that start in the project once it is
// trusted, and may then run files there. Trust does not cover these files, because it must be the
// same for every user.
func userRunners(servers []Server, known func(string) (string, error)) []string {
	var out []string
	for _, s := range servers {
		p := consent.Program{Place: s.Origin.String(), Key: "mcpServers." + s.Name,
			Argv: append([]string{s.Command}, s.Args...)}
		if s.IsOff() || s.Cwd != "" || !s.isOwn() || len(trust.Runners(p.Argv)) == 0 {
			continue
		}
		for _, line := range consent.Describe([]consent.Program{p}, known) {
			out = append(out, line+" (of your own settings; starts in the project once it is trusted)")
		}
	}
	return out
}

// asked returns a layer in the form that package consent examines; an empty file for nil.
func (l *loader) asked(layer *layers.Layer) *consent.File {
	if layer == nil {
		layer = &layers.Layer{}
	}
	return &consent.File{Layer: layer, Project: l.root, Expand: expandKnown(l.env)}
}

// cover collects the files that a grant covers, and the plugins among them.
func (l *loader) cover(dir string, fromProject *layers.Layer, files []trust.File,
	programs []consent.Program) ([]trust.File, []consent.Plugin, error) {
	expanded, asked := expandKnown(l.env), l.asked(fromProject)
	trees := append([]string{filepath.Join(dir, "plugins")}, consent.PluginFolders(asked, l.root, expanded)...)
	plugins := consent.Plugins(asked, l.root, trees)
	for _, p := range plugins {
		programs = append(programs, p.Programs...)
	}
	covered, err := trust.Cover(l.root, files,
		consent.Expand(programs, l.root, expanded, process.BaseEnv(l.opts.Environ)), trees)
	for _, p := range plugins {
		if p.Sum == "" && err == nil {
			covered = append(covered, trust.Executable(l.root, p.Path))
		}
	}
	slices.SortFunc(covered, func(a, b trust.File) int { return strings.Compare(a.Name, b.Name) })
	covered = slices.CompactFunc(covered, func(a, b trust.File) bool { return a.Name == b.Name })
	if path := consent.Changed(plugins, covered); err == nil && path != "" {
		err = fmt.Errorf("%s has just changed; run the command again", path)
	}
	return covered, plugins, err
}

// trustWithoutImports applies a project that is trusted except for files of other programs, because
// the setting imports was added after the grant.
func (l *loader) trustWithoutImports(p *Project, dir string, fromProject *layers.Layer, files []trust.File) {
	covered, _, err := l.cover(dir, fromProject, files, consent.Programs(l.asked(fromProject)))
	if err != nil || len(covered) == 0 || l.opts.Trust == nil {
		return
	}
	status, err := l.opts.Trust.Check(p.Root, covered)
	if err != nil || !status.Trusted {
		return
	}
	p.Trusted, p.Granted, l.withoutImports = true, status.Granted, true
	l.warn("imports_untrusted",
		"MCP servers of other programs in this project are ignored because they are not trusted: "+changedNames(p.Changes),
		"run `"+l.globals.Command("trust status")+"` to see what they would do, and `"+
			l.globals.Command("trust grant")+"` to allow it")
}

// checkGrant checks the flags and the stored grants. A project whose only settings
// file is blank needs no grant.
func (l *loader) checkGrant(p *Project, fromProject *layers.Layer) {
	one := len(p.Runs) == 0 && len(p.Covered) == 1
	p.Trusted = p.Obstacle == "" &&
		(l.opts.TrustProject || one && (l.isNamed(p.Covered[0].Path) || fromProject.IsBlank()))
	if p.Trusted || l.opts.Trust == nil || p.Obstacle != "" {
		return
	}
	status, err := l.opts.Trust.Check(p.Root, p.Covered)
	if err != nil {
		l.warn("trust_unreadable", "projects cannot be trusted: "+err.Error(), "")
		return
	}
	p.Trusted, p.Granted, p.Changes, p.Outside = status.Trusted, status.Granted,
		append(status.Changes, status.Outside...), len(status.Outside) > 0
	if p.Outside {
		l.warn("trust_outside_changed",
			"PATH finds other programs for this project than when it was trusted: "+changedNames(status.Outside),
			"run `"+l.globals.Command("trust status")+"` to see the changes, and `"+
				l.globals.Command("trust grant")+"` to accept them")
	}
}

func (l *loader) warnUntrusted(p *Project, fromProject *layers.Layer) {
	message := "the settings of this project are ignored because they are not trusted: "
	if len(l.globals.Imports) > 0 {
		message = "the servers and settings of this project are ignored because they are not trusted: "
	}
	hint := "`" + l.globals.Command("trust status") + "` shows what they would do, `" +
		l.globals.Command("trust grant") + "` allows it"
	what := filepath.Join(l.root, projectFolder)
	if len(p.Covered) > 0 {
		what = cmp.Or(p.Covered[0].Path, what)
	}
	if fromProject != nil {
		what = fromProject.File
	}
	switch {
	case p.Obstacle != "":
		message, what = "the settings of this project cannot be trusted: ", p.Obstacle
		hint = ""
	case !p.Granted.IsZero():
		message = "the settings of this project are ignored because they have changed since they were trusted: "
		what = changedNames(p.Changes)
		hint += "; while you edit it, --trust-project takes it as it is"
	}
	l.warn(CodeProjectUntrusted, message+what, hint)
	if fromProject == nil {
		return
	}
	for _, problem := range fromProject.Mistakes() {
		l.warn("project_settings_invalid", problem.String(), "")
	}
}

func changedNames(changes []trust.Change) string {
	var out []string
	for i, c := range changes {
		if i == 5 {
			out = append(out, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		out = append(out, fmt.Sprintf("%s (%s)", document.Printable(c.Name), c.Kind))
	}
	return strings.Join(out, ", ")
}

// placeProject records what happened to the project's own file.
func (l *loader) placeProject(dir, path string) {
	p := l.project
	switch {
	case path == "" && p != nil && p.Obstacle != "":
		l.placeFolder(ScopeProject, dir, PlaceRefused, p.Obstacle)
	case path == "":
		l.placeFolder(ScopeProject, dir, PlaceAbsent, "")
	case p == nil || p.Trusted:
		l.place(ScopeProject, path, PlaceRead, "")
	case p.Obstacle != "":
		l.place(ScopeProject, path, PlaceRefused, p.Obstacle)
	case !p.Granted.IsZero():
		l.place(ScopeProject, path, PlaceSkipped, "changed since it was trusted: "+changedNames(p.Changes))
	default:
		l.place(ScopeProject, path, PlaceSkipped, notTrusted)
	}
}
