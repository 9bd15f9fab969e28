package sources

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// The places where plugins are found.
const (
	PlaceProject = "project"
	PlaceUser    = "user"
	PlaceSetting = "setting"
)

// Plugin is a plugin with its state from the settings.
type Plugin struct {
	*discover.Plugin
	Place     string
	Disabled  *registry.Entry // entry of plugins.disabled that matches; nil if none does
	Untrusted bool            // its project is not trusted, so it is ignored

	Source registry.Source // nil if the plugin is not used
}

// SourceName returns the name of its source; "" if it is not used.
func (p *Plugin) SourceName() string {
	if p.Source == nil {
		return ""
	}
	return p.Source.Name()
}

// Plugins are the plugins of a run.
type Plugins struct {
	Found   []Plugin // all, including disabled ones, in the order in which they claim names
	Folders []string // where they were looked for, including folders that do not exist

	// Options returns the options for running the plugin with an id.
	Options func(id string) discover.PluginOptions
}

// newPlugins finds all plugins and creates the sources of those that are used. It runs
// nothing.
func newPlugins(ctx context.Context, o *Options) *Plugins {
	f := &pluginFinder{programs: o.Programs, earlier: o.Earlier}
	f.find(ctx)
	for i := range f.found {
		p := &f.found[i]
		if p.Untrusted || p.Disabled != nil && len(p.Problems) > 0 {
			continue
		}
		if o.Programs.EnvErr != nil && p.Disabled == nil {
			p.Problems = append(p.Problems,
				document.Problem{File: p.Path, Message: "it cannot be run: " + o.Programs.EnvErr.Error()})
		}
		opts := o.plugin(p.ID)
		opts.Disabled = p.Disabled != nil
		tree := ""
		if p.Sum != "" {
			tree = p.Dir
		}
		opts.Outputs = o.Listings.OfOutput(registry.PluginPrefix+p.ID, tree)
		p.Source = discover.NewPlugin(p.Plugin, opts)
	}
	return &Plugins{Found: f.found, Folders: f.searched, Options: o.plugin}
}

// pluginFinder collects the plugins of one run in the order in which they claim names:
// the project's, the user's, those of plugins.paths.
type pluginFinder struct {
	programs *programs.Set
	earlier  []Plugin
	found    []Plugin
	searched []string
}

// find finds the plugins and marks those that cannot be used.
func (f *pluginFinder) find(ctx context.Context) {
	if root := f.programs.Settings.ProjectRoot; root != "" && !f.programs.Settings.Globals.NoProject {
		project := cmp.Or(f.programs.Settings.Project, &settings.Project{}) // without, nothing there can run
		f.addPlugins(ctx, PlaceProject, discover.PluginPlace{Path: filepath.Join(root, ".toolreg", "plugins")}, project)
	}
	if user := settings.UserFolder(f.programs.Environ); user != "" && !f.programs.Settings.Globals.NoUser {
		dir := filepath.Join(user, "plugins")
		f.addPlugins(ctx, PlaceUser, discover.PluginPlace{Path: dir}, nil)
	}
	for _, e := range f.programs.Settings.PluginPaths.Entries {
		f.addSetting(ctx, e)
	}
	f.markUnusable()
}

// addPlugins adds the plugins of one place; project is set if they are covered by a
// grant of the project.
func (f *pluginFinder) addPlugins(ctx context.Context, place string, at discover.PluginPlace,
	project *settings.Project) {
	f.searched = append(f.searched, at.Path)
	if project != nil {
		at.Root = f.programs.Settings.ProjectRoot
	}
	for _, p := range discover.FindPlugins(ctx, at) {
		if project == nil {
			p = f.usable(p)
		}
		found := Plugin{Plugin: p, Place: place}
		switch {
		case project != nil:
			found.Untrusted = !project.Trusted
			f.checkGrant(p, project)
		case place == PlaceUser:
			f.checkOwner(p, at.Path)
		}
		f.found = append(f.found, found)
	}
}

// usable returns the plugin, or the version that the earlier session read if the plugin now has
// mistakes.
func (f *pluginFinder) usable(p *discover.Plugin) *discover.Plugin {
	i := slices.IndexFunc(f.earlier, func(before Plugin) bool {
		return before.Path == p.Path && before.Source != nil && len(before.Problems) == 0
	})
	if i < 0 || len(p.Problems) == 0 {
		return p
	}
	f.programs.Warn(registry.Diagnostic{Severity: registry.SeverityError, Code: "reload_failed",
		Message: "the changed plugin is not used: " + (&document.Error{Problems: p.Problems}).Error()})
	kept := *f.earlier[i].Plugin
	return &kept
}

// addSetting adds the plugins of an entry of plugins.paths.
func (f *pluginFinder) addSetting(ctx context.Context, e settings.Entry) {
	path, err := f.programs.Settings.PluginFolder(e, f.programs.Expander.Word)
	if err != nil {
		f.refuse(e, err.Error(), "")
		return
	}
	at := discover.PluginPlace{Path: path, Required: true, Hint: "it is listed in plugins.paths"}
	inside := e.Origin.Scope == settings.ScopeProject && isWithin(f.programs.Settings.ProjectRoot, path)
	switch {
	case inside && !filepath.IsLocal(e.Value):
		f.refuse(e,
			fmt.Sprintf("%q is inside the project but is not a relative path, so project trust does not cover it",
				e.Value),
			"write it relative to the project root")
	case inside:
		f.addPlugins(ctx, PlaceSetting, at, f.programs.Settings.Project)
	default:
		f.addPlugins(ctx, PlaceSetting, at, nil)
	}
}

func (f *pluginFinder) refuse(e settings.Entry, message, hint string) {
	f.found = append(f.found,
		Plugin{Place: PlaceSetting, Plugin: &discover.Plugin{ID: "unknown", Path: e.Value,
			Problems: []document.Problem{{File: e.Origin.String(), Message: "plugins.paths: " + message, Hint: hint}}}})
}

// isWithin reports whether a path is in a folder after resolving links.
func isWithin(dir, path string) bool { return trust.Within(trust.Real(path), trust.Real(dir)) }

// checkGrant checks that the manifest, or the script, is the one that trust was granted to.
func (f *pluginFinder) checkGrant(p *discover.Plugin, project *settings.Project) {
	if !project.Trusted || p.Sum == "" && len(p.Problems) > 0 {
		return
	}
	real, script := trust.Real(p.Path), trust.Executable(project.Root, p.Path).Name
	for _, covered := range project.Covered {
		if p.Sum == "" && covered.Name == script || p.Sum != "" && covered.Path == real && covered.Sum == p.Sum {
			return
		}
	}
	p.Problems = append(p.Problems,
		document.Problem{File: p.Path, Message: "it has changed since the project was checked",
			Hint: "run the command again"})
}

// checkOwner rejects plugins that another user could have put into the user's folder.
func (f *pluginFinder) checkOwner(p *discover.Plugin, folder string) {
	for _, path := range []string{folder, p.Dir, p.Path} {
		if reason := trust.Foreign(trust.Real(path)); reason != "" {
			p.Problems = append(p.Problems,
				document.Problem{File: path, Message: "is not safe to use: " + reason,
					Hint: "make yourself its owner and only writer"})
			return
		}
	}
}

// markUnusable marks plugins that are disabled and those whose id is reserved or taken.
func (f *pluginFinder) markUnusable() {
	off := f.programs.Settings.PluginsOff.Sourced()
	first := map[string]string{}
	for i := range f.found {
		p := &f.found[i]
		if e, ok := registry.MatchAny(off, p.ID); ok {
			p.Disabled = &e
		}
		if p.Untrusted || p.Disabled != nil || len(p.Problems) > 0 {
			continue
		}
		if reserved, ok := ReservedPluginID(p.Plugin); ok {
			p.Problems = []document.Problem{reserved}
			continue
		}
		if path, taken := first[p.ID]; taken {
			p.Problems = []document.Problem{TakenPluginID(p.Plugin, path)}
			continue
		}
		first[p.ID] = p.Path
	}
}

// ReservedPluginID reports whether the id of a plugin is the name of a built-in tool, and returns
// that problem.
func ReservedPluginID(p *discover.Plugin) (document.Problem, bool) {
	tool := builtin.Named(p.ID)
	return document.Problem{File: p.Path,
		Message: fmt.Sprintf("its id %q is a name of the built-in tool %s; none of its tools are registered",
			p.ID, tool),
		Hint: "give the plugin another id"}, tool != ""
}

// TakenPluginID returns the problem of a plugin with the id of an earlier plugin, which
// is at path.
func TakenPluginID(p *discover.Plugin, path string) document.Problem {
	return document.Problem{File: p.Path,
		Message: fmt.Sprintf("a plugin with the id %q already exists: %s", p.ID, path),
		Hint:    "give one of them another id, or remove it"}
}

// protectedFiles returns the paths of plugins that no tool may change: their folders, or only the
// script or manifest if the workspace is inside that folder.
func protectedFiles(plugins []Plugin, workspace string) []string {
	var out []string
	for _, p := range plugins {
		switch {
		case p.Path == "" || !filepath.IsAbs(p.Path):
		case p.Sum == "" || isWithin(p.Dir, workspace):
			out = append(out, p.Path)
		default:
			out = append(out, p.Dir)
		}
	}
	return out
}
