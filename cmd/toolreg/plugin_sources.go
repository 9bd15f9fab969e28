package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// The places of plugins.
const (
	placeProject = "project"
	placeUser    = "user"
	placeSetting = "setting"
)

// foundPlugin is a plugin with what the settings say of it.
type foundPlugin struct {
	*discover.Plugin
	place  string
	off    *registry.Entry // of plugins.disabled; nil = on
	untold bool            // its project is not trusted: nothing of it counts
	source registry.Source // nil: not run
}

// pluginFinder collects the plugins of one run in the order in which they take
// names: the project's, the user's, those of plugins.paths.
type pluginFinder struct {
	app   *app
	set   *settings.Settings
	x     *settings.Expander
	found []foundPlugin
}

// findPlugins finds all plugins, those that do not count too. Nothing of them
// runs.
func (a *app) findPlugins(ctx context.Context, s *settings.Settings, x *settings.Expander) []foundPlugin {
	f := &pluginFinder{app: a, set: s, x: x}
	if p := s.Project; p != nil && !a.globals.NoProject {
		dir := filepath.Join(s.ProjectRoot, ".toolreg", "plugins")
		f.add(ctx, placeProject, discover.PluginPlace{Path: dir, Name: dir}, p)
	}
	if user := settings.UserDir(a.environ); user != "" && !a.globals.NoUser {
		dir := filepath.Join(user, "plugins")
		f.add(ctx, placeUser, discover.PluginPlace{Path: dir, Name: dir}, nil)
	}
	for _, e := range s.PluginPaths.Entries {
		f.setting(ctx, e)
	}
	f.settle()
	return f.found
}

// add adds the plugins of one place; project is set for those that a grant of
// the project covers.
func (f *pluginFinder) add(ctx context.Context, place string, at discover.PluginPlace, project *settings.Project) {
	for _, p := range discover.FindPlugins(ctx, at) {
		found := foundPlugin{Plugin: p, place: place}
		switch {
		case project != nil:
			found.untold = !project.Trusted
			f.checkGrant(p, project)
		case place == placeUser:
			f.checkOwner(p, at.Path)
		}
		f.found = append(f.found, found)
	}
}

// setting adds what an entry of plugins.paths names. Relative paths start at the
// project root; those of the system's and the user's settings beside the file,
// since a project must not be able to put something there.
func (f *pluginFinder) setting(ctx context.Context, e settings.Entry) {
	refuse := func(message, hint string) {
		f.found = append(f.found, foundPlugin{place: placeSetting, Plugin: &discover.Plugin{ID: "unknown", Path: e.Value, Place: e.Origin.String(),
			Problems: []document.Problem{{File: e.Origin.String(), Message: "plugins.paths: " + message, Hint: hint}}}})
	}
	path, err := f.x.Expand(e.Value)
	if err != nil {
		refuse(err.Error(), "")
		return
	}
	local := filepath.IsLocal(e.Value)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, known := lookupEnv(f.app.environ, "HOME"); known {
			path = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		base := f.set.ProjectRoot
		if e.Origin.Scope == settings.ScopeUser || e.Origin.Scope == settings.ScopeSystem {
			base = filepath.Dir(e.Origin.Name)
		}
		path = filepath.Join(base, path)
	}
	at := discover.PluginPlace{Path: path, Name: e.Origin.String(), Required: true}
	if e.Origin.Scope != settings.ScopeProject {
		f.add(ctx, placeSetting, at, nil)
		return
	}
	if !local && within(f.set.ProjectRoot, path) {
		refuse(fmt.Sprintf("%q is inside the project, but not written relative to it, so that trust does not cover it", e.Value), "write it relative to the project root")
		return
	}
	if within(f.set.ProjectRoot, path) {
		f.add(ctx, placeSetting, at, f.set.Project)
		return
	}
	f.add(ctx, placeSetting, at, nil)
}

// within reports whether a path is in a folder, links resolved.
func within(dir, path string) bool {
	rel, err := filepath.Rel(realPath(dir), realPath(path))
	return err == nil && filepath.IsLocal(rel)
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// checkGrant makes sure that the manifest that was read is the one that was
// granted.
func (f *pluginFinder) checkGrant(p *discover.Plugin, project *settings.Project) {
	if p.Sum == "" || !project.Trusted {
		return
	}
	real := realPath(p.Path)
	for _, covered := range project.Covered {
		if covered.Path == real && covered.Sum == p.Sum {
			return
		}
	}
	p.Problems = append(p.Problems, document.Problem{File: p.Path, Message: "it is not as it was when the project was judged", Hint: "run the command again"})
}

// checkOwner refuses what somebody else could have put into the user's folder.
func (f *pluginFinder) checkOwner(p *discover.Plugin, folder string) {
	for _, path := range []string{folder, p.Dir, p.Path} {
		if reason := trust.Foreign(realPath(path)); reason != "" {
			p.Problems = append(p.Problems, document.Problem{File: path, Message: "is not safe to use: " + reason, Hint: "make it yours and writable by you alone"})
			return
		}
	}
}

// settle finds what is switched off, and ids that are taken.
func (f *pluginFinder) settle() {
	off := entries(f.set.PluginsOff)
	first := map[string]string{}
	for i := range f.found {
		p := &f.found[i]
		if e, ok := registry.MatchAny(off, p.ID); ok {
			p.off = &e
		}
		if p.untold || p.off != nil || len(p.Problems) > 0 {
			continue
		}
		if slices.Contains(builtin.Names(), p.ID) {
			p.Problems = []document.Problem{{File: p.Path, Message: fmt.Sprintf("its id %q is the name of a built-in tool; none of its tools is registered", p.ID),
				Hint: "give the plugin another id"}}
			continue
		}
		if path, taken := first[p.ID]; taken {
			p.Problems = []document.Problem{{File: p.Path, Message: fmt.Sprintf("a plugin with the id %q is already there: %s", p.ID, path),
				Hint: "give one of them another id, or remove it"}}
			continue
		}
		first[p.ID] = p.Path
	}
}

// pluginSources makes the sources of the plugins that count.
func (a *app) pluginSources(ctx context.Context, s *settings.Settings, x *settings.Expander, m *memory, env []string, envErr error) []foundPlugin {
	found := a.findPlugins(ctx, s, x)
	if len(found) == 0 {
		return nil
	}
	for i := range found {
		p := &found[i]
		if p.untold || p.off != nil && len(p.Problems) > 0 {
			continue
		}
		if envErr != nil && p.off == nil {
			p.Problems = append(p.Problems, document.Problem{File: p.Path, Message: "it cannot be run: " + envErr.Error()})
		}
		opts := a.pluginOptions(s, x, env, p.ID)
		opts.Disabled = p.off != nil
		tree := ""
		if p.Sum != "" {
			tree = p.Dir
		}
		opts.Outputs = m.ofOutput(registry.PluginPrefix+p.ID, tree)
		p.source = discover.NewPlugin(p.Plugin, opts)
	}
	return found
}

func (a *app) pluginOptions(s *settings.Settings, x *settings.Expander, env []string, id string) discover.PluginOptions {
	return discover.PluginOptions{
		Context: a.context(s, x), ProjectRoot: s.ProjectRoot, Env: env,
		Settings: func(ctx context.Context) (json.RawMessage, error) { return pluginSettings(ctx, s, x, id) },
		Timeout:  s.DiscoveryTimeout, MaxDiscovery: s.Limits.DiscoveryOutput, MaxOutput: s.Limits.Result, MaxTools: s.Limits.Tools,
	}
}

// pluginPaths are what no tool may change of the plugins: their folders, or the
// script or manifest alone where the workspace is in that folder.
func pluginPaths(plugins []foundPlugin, workspace string) []string {
	var out []string
	for _, p := range plugins {
		switch {
		case p.Path == "" || !filepath.IsAbs(p.Path):
		case p.Sum == "" || within(p.Dir, workspace):
			out = append(out, p.Path)
		default:
			out = append(out, p.Dir)
		}
	}
	return out
}
