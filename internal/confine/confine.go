package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/confine/guards"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// The kinds of programs, as named in the settings. Use [Server] for the kind of a
// stdio server.
const (
	Shell      = registry.ProgramShell
	Plugins    = registry.ProgramPlugins
	Discovery  = registry.ProgramDiscovery
	Hooks      = "hooks"
	Processor  = "processor"
	References = "references"
)

// Server returns the kind of a stdio server.
func Server(name string) string { return serverPrefix + name }

const serverPrefix = "servers."

// Options configure a Confiner. Settings, Environ, Env and Warn are required.
type Options struct {
	Settings *settings.Settings
	Environ  []string                     // of toolreg, "K=V"
	Env      func() []string              // of the programs, "K=V"; their PATH is used
	Expand   func(string) (string, error) // expands variables in paths; nil means paths have none
	// Hide returns files and folders of toolreg that programs must not read, and
	// Protect those that they must not change, all absolute. nil means none.
	Hide, Protect func() []string
	// Closed are folders that stay hidden even if settings name them. nil means none.
	Closed func() []string
	// Neutral returns the working folder of programs that must not start in the project. They may
	// read it although Hide includes a folder around it. nil means there is none.
	Neutral func() (string, error)
	// Logs returns a folder for data that must survive if toolreg is killed while a program runs;
	// see [guards.New]. nil means there is none.
	Logs  func() (string, error)
	Warn  func(registry.Diagnostic)
	Log   *slog.Logger           // nil means silent
	Probe func() sandbox.Support // nil means sandbox.Probe
}

// Confiner determines how each kind of program is confined. It probes the system
// and reads the workspace only when needed. It is safe for concurrent use.
type Confiner struct {
	opts    Options
	home    string
	logs    func() string // "" if there is no folder
	tree    func() *guards.Tree
	support func() sandbox.Support

	mu      sync.Mutex
	running int // programs outside of calls after which the workspace must be cleaned
	closed  bool
}

// New returns the Confiner for one run of toolreg.
func New(opts Options) *Confiner {
	c := &Confiner{opts: opts, home: expand.NewEnviron(opts.Environ).Home()}
	if opts.Log == nil {
		c.opts.Log = slog.New(slog.DiscardHandler)
	}
	c.logs = sync.OnceValue(c.openLogs)
	c.tree = sync.OnceValue(func() *guards.Tree { return guards.New(opts.Settings.Workspace, git.User{}, c.logs()) })
	probe := opts.Probe
	if probe == nil {
		probe = sandbox.Probe
	}
	c.support = sync.OnceValue(probe)
	return c
}

// Close releases the workspace, as soon as all programs outside of calls have ended.
func (c *Confiner) Close() error { return c.count(0, true) }

// count counts a program that starts or ends, and releases the workspace when it is no longer
// needed.
func (c *Confiner) count(n int, closing bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running += n
	c.closed = c.closed || closing
	if !c.closed || c.running > 0 {
		return nil
	}
	return c.tree().Close()
}

// Same reports whether the settings of two runs confine programs of a kind in the same way.
func (c *Confiner) Same(name string, other *Confiner) bool {
	a, b := c.kind(name), other.kind(name)
	a.origin, b.origin = "", ""
	return reflect.DeepEqual(a, b)
}

// openLogs returns the folder of Options.Logs; "" if there is none.
func (c *Confiner) openLogs() string {
	if c.opts.Logs == nil {
		return ""
	}
	dir, err := c.opts.Logs()
	if err != nil {
		c.opts.Log.Info("nothing will be cleaned if toolreg is killed", "err", err)
	}
	return dir
}

// Credentials returns a function that says why an absolute path may lead to credentials; see
// [sandbox.Credentials]. It is nil if the workspace contains none. The contents of the folder open,
// unless that is "", may be read.
func (c *Confiner) Credentials(open func() string) func(path string) string {
	found := sandbox.NewCredentials(c.opts.Settings.Workspace, c.home, c.opts.Environ)
	if found == nil {
		return nil
	}
	if folder := open(); folder != "" {
		found.Open(folder)
	}
	return found.Why
}

// missing returns the reason why programs cannot be fully confined; "" if they
// can.
func (c *Confiner) missing() string {
	if sandbox.HoldsHome(c.opts.Settings.Workspace, c.home) {
		return fmt.Sprintf("the workspace %s is or contains your home folder", c.opts.Settings.Workspace)
	}
	return strings.Join(c.support().Missing(), ", ")
}

// Means returns how calls that start a program of a kind can be confined.
func (c *Confiner) Means(name string) policy.Means {
	k := c.kind(name)
	m := policy.Means{
		Auto:    k.mode == table.SandboxAuto,
		Require: k.mode == table.SandboxRequire,
		Origin:  k.origin,
		Off:     k.own && k.mode == table.SandboxOff,
		Missing: c.missing,
	}
	m.Allows = func(online bool) string {
		if m.Off && !m.YoloRequire || c.missing() != "" {
			return ""
		}
		return c.describe(k, online)
	}
	if name == Shell {
		m.Changed = func(argv []string, dir string) []string { return c.changed(c.opts.Env(), argv, dir) }
		m.Accept = func(ctx context.Context, paths []string, at time.Time) error {
			return guards.Accept(ctx, c.logs(), paths, at)
		}
		m.Uncleaned = func() bool { return guards.Uncleaned(c.logs(), c.opts.Settings.Workspace) }
		yolo := c.opts.Settings.Setting("sandbox.yolo")
		m.YoloAuto, m.YoloRequire, m.YoloOrigin = yolo.Value.Text() == table.SandboxAuto && !m.Off,
			yolo.Value.Text() == table.SandboxRequire, yolo.Origin.String()
	}
	return m
}

// Programs returns the Confiner for programs of a kind that run outside of
// calls. If the settings do not confine them, it confines those that start with files which
// a sandboxed program may have changed.
func (c *Confiner) Programs(name string) process.Confiner { return c.programs(c.kind(name)) }

// ProgramsOf is Programs for programs that a setting of this scope names; see [settings.Settings.For].
func (c *Confiner) ProgramsOf(name string, scope settings.Scope) process.Confiner {
	return c.programs(kindIn(c.opts.Settings.For(scope), name))
}

func (c *Confiner) programs(k kind) process.Confiner {
	return func(ctx context.Context, spec *process.Spec) (after func(), err error) {
		p, err := c.profileOf(k, spec)
		if p == nil {
			return func() {}, err
		}
		_ = c.count(1, false)
		guarded, err := c.protect(ctx, k, p)
		if err != nil {
			return nil, errors.Join(err, c.count(-1, false))
		}
		spec.Confine = p
		return func() {
			cleaned, err := guarded.Clean(context.WithoutCancel(ctx), p.Created.Has)
			c.report(k.name, cleaned, err)
			_ = c.count(-1, false) // the workspace was only read
		}, nil
	}
}

// profileOf returns the profile of a program of a kind that runs outside of calls, or nil
// if it is not confined.
func (c *Confiner) profileOf(k kind, spec *process.Spec) (*sandbox.Profile, error) {
	if k.mode != table.SandboxAuto && k.mode != table.SandboxRequire && !c.isTampered(k, spec) {
		return nil, nil
	}
	if missing := c.missing(); missing != "" {
		if k.mode == table.SandboxRequire {
			return nil, &registry.Failure{Kind: registry.ErrDenied, Text: fmt.Sprintf(
				"it must run in the sandbox (sandbox.%s.mode: require, %s), which is not possible: %s",
				k.name, k.origin, missing)}
		}
		c.opts.Log.Info("not confined", "kind", k.name, "missing", missing)
		return nil, nil
	}
	own, script := ownFiles(spec)
	p := c.profile(k, sandbox.Place{Own: own, Script: script, Environ: spec.Env}, false)
	if c.opts.Neutral != nil && spec.Dir != c.opts.Settings.ProjectRoot {
		if dir, err := c.opts.Neutral(); err == nil && dir == spec.Dir && dir != "/" {
			p.Opened = append(p.Opened, dir)
		}
	}
	return &p, nil
}

// isTampered reports whether a program that the settings do not confine starts with files that a
// sandboxed program may have changed, and must therefore be confined. It also warns.
func (c *Confiner) isTampered(k kind, spec *process.Spec) bool {
	workspace := trust.Real(c.opts.Settings.Workspace)
	argv := spec.Argv
	if !trust.Within(trust.Real(spec.Dir), workspace) { // relative words do not lead there
		argv = append(argv[:1:1],
			slices.DeleteFunc(slices.Clone(argv[1:]), func(word string) bool { return !filepath.IsAbs(word) })...)
	}
	changed := c.changed(spec.Env, argv, spec.Dir)
	if len(changed) == 0 {
		return false
	}
	confined := !k.own && c.missing() == ""
	text := "runs in the sandbox"
	if !confined {
		text = "does not run in the sandbox, although this is advisable"
	}
	c.opts.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "sandbox_changed",
		Message: fmt.Sprintf("%s (sandbox.%s) %s: a sandboxed program may have changed %s",
			argv[0], k.name, text, listed(changed)),
		Hint: "check the files; after a change by you, such as with `touch`, they are accepted as they are",
	})
	return confined
}

// Plan says how to confine a program that another process starts.
type Plan struct {
	Profile   sandbox.Profile `json:"profile"`
	Workspace string          `json:"workspace"` // cleaned when the program has ended
	Logs      string          `json:"logs"`      // see [guards.New]
	Private   []string        `json:"private"`   // see [guards.Scope]
}

// Plan returns how [Confiner.Programs] would confine a program of a kind; nil if it is not
// confined.
func (c *Confiner) Plan(name string, spec *process.Spec) (*Plan, error) {
	p, err := c.profileOf(c.kind(name), spec)
	if p == nil {
		return nil, err
	}
	return &Plan{Profile: *p, Workspace: c.opts.Settings.Workspace, Logs: c.logs(), Private: c.private()}, nil
}

// Confine is a process.Confiner for a program that runs as long as its caller.
func (p *Plan) Confine(ctx context.Context, spec *process.Spec) (after func(), err error) {
	tree := guards.New(p.Workspace, git.User{}, p.Logs)
	profile := p.Profile
	guarded, err := protect(ctx, tree, &profile,
		guards.Scope{Folders: profile.Write, Private: p.Private, Lasting: true})
	if err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	spec.Confine = &profile
	return func() {
		_, _ = guarded.Clean(context.WithoutCancel(ctx), profile.Created.Has) // nobody can be told
		_ = tree.Close()
	}, nil
}

// ownFiles returns the paths that a program named in the settings may read as its own:
// its working directory and the files among its arguments. script is the first of these
// files, which is the program or its script.
func ownFiles(spec *process.Spec) (own []string, script string) {
	own = []string{spec.Dir}
	for _, path := range spec.Argv {
		path = expand.From(spec.Dir, path)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		own, script = append(own, path), cmp.Or(script, path)
	}
	return own, script
}

// report warns about files found after a program outside of calls has run.
func (c *Confiner) report(kind string, cleaned guards.Cleaned, err error) {
	warn := func(code, hint, format string, args ...any) {
		c.opts.Warn(registry.Warning(code, "", fmt.Sprintf(format, args...), hint))
	}
	if err != nil {
		warn("sandbox_removed", "", "cleaning the workspace after a sandboxed program (sandbox.%s): %v", kind, err)
	}
	if len(cleaned.Removed) > 0 {
		warn("sandbox_removed",
			"other programs run commands from such files, so sandboxed programs must not create them",
			"deleted after a sandboxed program (sandbox.%s): %s", kind, listed(cleaned.Removed))
	}
	if len(cleaned.Kept) > 0 {
		warn("sandbox_kept", "check them, because other programs run commands from such files",
			"created or replaced while a sandboxed program ran (sandbox.%s), perhaps not by it, and kept: %s",
			kind, listed(cleaned.Kept))
	}
}

// protect is the function protect for a program of a kind. It warns if the protection cannot be
// recorded.
func (c *Confiner) protect(ctx context.Context, k kind, p *sandbox.Profile) (*guards.Guards, error) {
	guarded, err := protect(ctx, c.tree(), p,
		guards.Scope{Folders: p.Write, Private: c.private(), Lasting: strings.HasPrefix(k.name, serverPrefix)})
	if err == nil && guarded.Unrecorded != nil {
		c.opts.Warn(registry.Warning("sandbox_unrecorded", "",
			fmt.Sprintf("a sandboxed program (sandbox.%s) runs without a record: %v", k.name, guarded.Unrecorded),
			"until there is space, what it creates is not removed if toolreg is killed, and commands outside the sandbox that start with files of the workspace need confirmation"))
	}
	return guarded, err
}

// protect adds to a profile what the guards of the workspace and of the scope protect.
func protect(ctx context.Context, tree *guards.Tree, p *sandbox.Profile, scope guards.Scope) (*guards.Guards, error) {
	p.Opened, p.Write = existing(p.Opened), existing(p.Write)
	guarded, err := tree.Guards(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("looking for the files that the sandbox protects: %w", err)
	}
	guarded.Protect(p)
	return guarded, nil
}

// changed returns the files that a command starts with and that a sandboxed program may have
// changed.
func (c *Confiner) changed(env, argv []string, dir string) []string {
	logs, workspace := c.logs(), c.opts.Settings.Workspace
	if logs == "" {
		return nil
	}
	changes := guards.ReadChanges(logs)
	if changes.None(workspace) {
		return nil
	}
	var out []string
	add := func(path string) {
		out = text.AppendNew(out, path)
	}
	files, err := trust.Started(workspace, trust.Program{Argv: argv, Dir: dir})
	if err != nil {
		c.opts.Log.Info("not all files of a command were searched for changes", "err", err)
	}
	program := programOf(env, argv[0], dir)
	if program != "" && changes.Has(program, true) {
		add(program)
	}
	for _, path := range append(files, program) {
		if path != "" && changes.Has(path, false) {
			add(path)
		}
		if venv := environment(path); venv != "" {
			for _, name := range []string{"pyvenv.cfg", "bin/python", "bin/python3"} {
				if file := filepath.Join(venv, name); changes.Has(file, false) {
					add(file)
				}
			}
			if libraries := filepath.Join(venv, "lib"); changes.HasBelow(libraries) {
				add(libraries)
			}
		}
		if folder := packageOf(path); folder != "" && changes.HasBelow(folder) {
			add(folder)
		}
	}
	return out
}

// packageOf returns the folder of the package in node_modules to which a file or the target of a
// link belongs; "" if it belongs to none.
func packageOf(path string) string {
	const packages = "/node_modules/"
	path = trust.Real(path)
	at := strings.LastIndex(path, packages)
	if at < 0 {
		return ""
	}
	at += len(packages)
	name, rest, _ := strings.Cut(path[at:], "/")
	if strings.HasPrefix(name, "@") {
		rest, _, _ = strings.Cut(rest, "/")
		name += "/" + rest
	}
	if name[0] == '.' {
		return ""
	}
	return path[:at] + name
}

// programOf returns the absolute path of a program that a command line names; "" if there is none.
func programOf(env []string, name, dir string) string {
	if strings.Contains(name, "/") {
		return filepath.Clean(expand.From(dir, name)) // it may become executable before it runs
	}
	path, _ := process.Spec{Argv: []string{name}, Dir: dir, Env: env}.Program()
	return path
}

// environment returns the virtual environment of Python that a program is installed in; "" if it
// is in none.
func environment(program string) string {
	venv := filepath.Dir(filepath.Dir(program))
	if program == "" || !exists(filepath.Join(venv, "pyvenv.cfg")) {
		return ""
	}
	return venv
}

// private returns the files and folders of toolreg, which no program may create.
func (c *Confiner) private() (out []string) {
	for _, paths := range []func() []string{c.opts.Hide, c.opts.Protect} {
		if paths != nil {
			out = append(out, paths()...)
		}
	}
	return out
}

// profile returns the profile of a program of a kind. place contains its own files and its environment.
func (c *Confiner) profile(k kind, place sandbox.Place, online bool) sandbox.Profile {
	place.Home = c.home
	if place.Environ == nil {
		place.Environ = c.opts.Env()
	}
	place.Workspace = slices.DeleteFunc(append([]string{c.opts.Settings.Workspace}, c.paths(k.write)...),
		func(path string) bool { return path == "" })
	place.Own = slices.DeleteFunc(place.Own,
		func(path string) bool { return path == "" || path == "/" || sandbox.HoldsHome(path, c.home) })
	if c.opts.Hide != nil {
		place.Hide = c.opts.Hide()
	}
	p := sandbox.Default(place)
	p.Opened, p.Network = c.paths(k.read), k.network
	c.close(slices.Concat(p.Opened, p.Write))
	if c.opts.Protect != nil {
		p.ReadOnly = append(p.ReadOnly, c.opts.Protect()...)
	}
	for _, folder := range p.Write {
		p.Fixed = append(p.Fixed, foldersAround(slices.Concat(p.ReadOnly, p.Hide), folder)...)
	}
	if online && !k.networkSet {
		p.Network = sandbox.Network{Mode: sandbox.NetworkAll}
	}
	return p
}

// foldersAround returns the folders between paths and an enclosing folder: a folder that can be
// renamed can be replaced together with its contents.
func foldersAround(paths []string, folder string) []string {
	var out []string
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != folder && trust.Within(dir, folder) &&
			!slices.Contains(out, dir); dir = filepath.Dir(dir) {
			out = append(out, dir)
		}
	}
	return out
}

// paths returns the absolute paths of a setting. They need not exist: whether a kept server is the
// same must not depend on what it, or toolreg, has created.
func (c *Confiner) paths(entries []string) []string {
	var out []string
	for _, text := range entries {
		path := text
		if c.opts.Expand != nil {
			var err error
			if path, err = c.opts.Expand(text); err != nil {
				continue // the variable is not set, so there is no such path
			}
		}
		path = expand.From(c.opts.Settings.ProjectRoot, expand.Home(path, c.home))
		if !c.isClosed(path) {
			out = append(out, filepath.Clean(path))
		}
	}
	return out
}

// close creates the folders that stay hidden, if they are within visible ones: only existing
// folders can be hidden, and another program may create them while the confined one runs.
func (c *Confiner) close(visible []string) {
	if c.opts.Closed == nil {
		return
	}
	for _, folder := range c.opts.Closed() {
		if !exists(folder) &&
			slices.ContainsFunc(visible, func(path string) bool { return trust.Within(folder, path) }) {
			_ = os.MkdirAll(folder, 0o700) // if it fails, the folder cannot contain anything
		}
	}
}

// isClosed reports whether a path is or leads into a folder that stays hidden.
func (c *Confiner) isClosed(path string) bool {
	if c.opts.Closed == nil {
		return false
	}
	real := trust.Real(path)
	return slices.ContainsFunc(c.opts.Closed(),
		func(folder string) bool { return trust.Within(real, trust.Real(folder)) })
}
