package confine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolreg/toolreg/internal/confine/guards"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// call runs a function as the tool of a confined call.
func call(t *testing.T, c *Confiner, run func(*process.Confinement) (registry.Result, error)) (registry.Result, error) {
	t.Helper()
	tool := registry.Tool{Behavior: registry.Behavior{Program: Shell, Run: func(ctx context.Context, _ registry.Call) (registry.Result, error) {
		return run(process.ConfinementOf(ctx))
	}}}
	return c.Call(tool, policy.Confinement{On: true}).Run(t.Context(), registry.Call{})
}

func write(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, mode); err != nil {
		t.Fatal(err)
	}
}

// A result says what the sandbox denied and which files need a look, to the model and to the
// user, and nothing more.
func TestCallNotesWhatItFinds(t *testing.T) {
	const kept, denied = "Created or replaced during the call", "The sandbox denied: writing "
	for _, tt := range []struct {
		name, text, display string
		plant               bool
		want, wantDisplay   []string
	}{
		{"nothing", "done", "", false, nil, nil},
		{"a file that other programs use", "done", "", true, []string{kept, "sub/.bashrc"}, nil},
		{"a program that has succeeded", "touch: cannot touch '~/.rustup': Read-only file system", "", false, nil, nil},
		{"a denied access", "touch: cannot touch '~/.rustup': Read-only file system", "", false, []string{denied}, nil},
		{"both, also for the user", "touch: cannot touch '~/.rustup': Read-only file system", "shown", true, []string{denied, kept}, []string{"shown\n[The sandbox", "[" + kept}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, home, workspace := place(t, "sandbox: {mode: auto}\n", full)
			write(t, home+"/.rustup", 0o600)
			r, err := call(t, c, func(*process.Confinement) (registry.Result, error) {
				if tt.plant {
					write(t, filepath.Join(workspace, "sub/.bashrc"), 0o600)
				}
				r := registry.TextResult(tt.text)
				r.Display.Text, r.IsError = tt.display, tt.want != nil
				return r, nil
			})
			if err != nil || !r.Confined {
				t.Errorf("%v, confined: %t", err, r.Confined)
			}
			for _, want := range tt.want {
				if !strings.Contains(r.Text(), want) {
					t.Errorf("%q lacks %q", r.Text(), want)
				}
			}
			if tt.want == nil && r.Text() != tt.text || tt.display == "" && r.Display.Text != "" {
				t.Errorf("got %q, shown %q", r.Text(), r.Display.Text)
			}
			for _, want := range tt.wantDisplay {
				if !strings.Contains(r.Display.Text, want) {
					t.Errorf("%q lacks %q", r.Display.Text, want)
				}
			}
		})
	}
}

// A result says that temporary files are gone if the command names such a folder.
func TestCommandsThatNameTemporaryFolders(t *testing.T) {
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full)
	for command, want := range map[string]bool{
		"echo x > /tmp/out": true, "ls /tmp": true, "cp a /var/tmp/": true, "cat </dev/shm/x": true, "x --out=/tmp/y": true, "cat '/tmp/z'": true,
		"ls src/tmp": false, "ls /tmpfs": false, "echo tmp": false, "cat ./tmp/x": false, "ls " + workspace + "/x": false,
	} {
		if got := c.mentionsTemporary([]byte(`{"command":"` + command + `"}`)); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
	for _, program := range []string{Shell, Plugins} {
		tool := registry.Tool{Behavior: registry.Behavior{Program: program, Run: func(context.Context, registry.Call) (registry.Result, error) { return registry.TextResult("done"), nil }}}
		r, err := c.Call(tool, policy.Confinement{On: true}).Run(t.Context(), registry.Call{Params: []byte(`{"command":"ls /tmp"}`)})
		if err != nil || strings.Contains(r.Text(), "are deleted by now") != (program == Shell) {
			t.Errorf("%s: %q, %v", program, r.Text(), err)
		}
	}
}

// The workspace is not cleaned as long as a program runs on in the background.
func TestCallInBackgroundIsNotCleaned(t *testing.T) {
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full)
	r, err := call(t, c, func(confinement *process.Confinement) (registry.Result, error) {
		confinement.Background = true
		write(t, filepath.Join(workspace, "sub/.bashrc"), 0o600)
		return registry.TextResult("started"), nil
	})
	if err != nil || !r.Confined || r.Text() != "started" {
		t.Errorf("%q, confined: %t, %v", r.Text(), r.Confined, err)
	}
}

// An error names the setting that may help, or what could not be cleaned.
func TestCallErrors(t *testing.T) {
	logs := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) { o.Logs = func() (string, error) { return logs, nil } })
	_, err := call(t, c, func(*process.Confinement) (registry.Result, error) {
		return registry.Result{}, &process.StartError{Program: "x", Err: errors.New("no such file")}
	})
	if err == nil || !strings.Contains(err.Error(), "sandbox.shell.read") {
		t.Errorf("starting: %v", err)
	}
	_, err = call(t, c, func(*process.Confinement) (registry.Result, error) {
		write(t, filepath.Join(workspace, "bin/x"), 0o700) // to be noted in the logs
		if err := os.RemoveAll(logs); err != nil {
			t.Fatal(err)
		}
		write(t, logs, 0o600)
		return registry.TextResult("done"), nil
	})
	if err == nil || !strings.Contains(err.Error(), "cleaning the workspace after the call") {
		t.Errorf("cleaning: %v", err)
	}
	if err := errors.Join(os.Remove(logs), os.Mkdir(logs, 0o700), os.WriteFile(filepath.Join(logs, "x.log"), []byte("damaged\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err = call(t, c, func(*process.Confinement) (registry.Result, error) {
		t.Error("ran although the sandbox could not be prepared")
		return registry.Result{}, nil
	})
	if err == nil || strings.Contains(err.Error(), "after the call") {
		t.Errorf("preparing: %v", err)
	}
}

// nextTick waits until the clock of file systems has advanced, at most 10 ms behind.
func nextTick(t *testing.T) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	write(t, probe, 0o600)
	first, err := os.Stat(probe)
	for now := first; err == nil && now.ModTime().Sub(first.ModTime()) < 20*time.Millisecond; now, err = os.Stat(probe) {
		write(t, probe, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a command starts with and a confined call may have changed is found: the program, the
// scripts that it names, the files that tell a runner what to do, and the libraries of a virtual
// environment. Data and modules are not.
func TestChangedFilesAreFound(t *testing.T) {
	logs := t.TempDir()
	var path string
	var logged strings.Builder
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&logged, nil))
		o.Logs = func() (string, error) { return logs, nil }
		o.Env = func() []string { return []string{"PATH=" + path} }
	})
	path = strings.Join([]string{"bin", filepath.Join(workspace, "first"), filepath.Join(workspace, "bin"), "/usr/bin", "/bin"}, ":")
	for _, name := range []string{"bin/old", "first/folder/x", "old.py", "venv/bin/python", "venv/pyvenv.cfg", "venv/lib/old.py", "old/venv/pyvenv.cfg", "old/venv/bin/python", "old/venv/lib/x", "other/bin/tool", "other/pyvenv.cfg", "plain/bin/tool"} {
		write(t, filepath.Join(workspace, name), 0o700)
	}
	write(t, filepath.Join(workspace, "first/plain"), 0o600)
	nextTick(t)
	changed, accept := c.Means(Shell).Changed, c.Means(Shell).Accept
	if got := changed([]string{"new"}, workspace); got != nil {
		t.Errorf("changed before the call: %q", got)
	}
	if _, err := call(t, c, func(*process.Confinement) (registry.Result, error) {
		for _, name := range []string{"bin/new", "bin/plain", "bin/folder", "bin/sh", "new.py", "sub/new.sh", "Makefile", "venv/lib/new.py", "other/bin/python", "plain/bin/python", "plain/lib/new"} {
			write(t, filepath.Join(workspace, name), 0o700)
		}
		write(t, filepath.Join(workspace, "bin/data"), 0o600)
		write(t, filepath.Join(workspace, "data.yaml"), 0o600)
		text := []byte(`{"scripts": {"build": "node sub/new.mjs && old"}}`)
		for name, data := range map[string][]byte{"package.json": text, "sub/new.mjs": nil} {
			if err := os.WriteFile(filepath.Join(workspace, name), data, 0o600); err != nil {
				t.Error(err)
			}
		}
		return registry.TextResult(""), nil
	}); err != nil {
		t.Fatal(err)
	}
	nextTick(t)
	for argv, want := range map[string]string{
		"new": "bin/new", "./bin/new": "bin/new", workspace + "/bin/new": "bin/new", "plain": "bin/plain", "folder": "bin/folder", "sh": "bin/sh",
		"old": "", "./bin/old": "", "missing": "", "./bin/missing": "", "data": "", "cat": "", "cat x.py": "",
		"python3 new.py": "new.py", "python3 old.py": "", "mytool data.yaml": "", "bash sub/new.sh": "sub/new.sh",
		"make": "Makefile", "npm": "package.json sub/new.mjs", "venv/bin/python old.py": "venv/lib", "old/venv/bin/python": "", "other/bin/tool": "other/bin/python", "plain/bin/tool": "",
	} {
		var paths []string
		for name := range strings.FieldsSeq(want) {
			paths = append(paths, filepath.Join(workspace, name))
		}
		if diff := cmp.Diff(paths, changed(strings.Fields(argv), workspace)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", argv, diff)
		}
	}
	if got := changed([]string{"bash", "new.sh"}, filepath.Join(workspace, "sub")); len(got) != 1 {
		t.Errorf("in another folder: %q", got)
	}

	// What a person accepts or changes is not found again, until a confined call changes it.
	if err := accept(t.Context(), []string{filepath.Join(workspace, "Makefile"), filepath.Join(workspace, "venv/lib")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(workspace, "new.py"), 0o600)
	for _, argv := range []string{"make", "venv/bin/python", "python3 new.py"} {
		if got := changed(strings.Fields(argv), workspace); got != nil {
			t.Errorf("%s: accepted, but %q", argv, got)
		}
	}
	nextTick(t)
	if _, err := call(t, c, func(*process.Confinement) (registry.Result, error) {
		write(t, filepath.Join(workspace, "Makefile"), 0o600)
		return registry.TextResult(""), nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := changed([]string{"make"}, workspace); len(got) != 1 {
		t.Errorf("changed once more: %q", got)
	}
	if got := changed([]string{"bash", "sub/new.sh"}, workspace); len(got) != 1 {
		t.Errorf("never accepted: %q", got)
	}

	path = strings.Join([]string{"/bin", filepath.Join(workspace, "bin")}, ":")
	if got := changed([]string{"sh"}, workspace); got != nil {
		t.Errorf("PATH finds another program first, but %q is said to run", got)
	}
	if logged.Len() > 0 {
		t.Errorf("although nothing failed, the log says %s", &logged)
	}
	if c, _, workspace := place(t, "", full); c.Means(Shell).Changed([]string{"sh"}, workspace) != nil || c.Means(Plugins).Changed != nil {
		t.Error("without logs, a program is said to have changed")
	}
}

// Programs that the settings do not confine are confined if they start with files that a
// confined call may have changed, unless the settings say that they must not be.
func TestProgramsThatStartWithChangedFilesAreConfined(t *testing.T) {
	logs := t.TempDir()
	var warned []string
	c, _, workspace := place(t, "sandbox: {discovery: {mode: off}}\n", full, func(o *Options) {
		o.Logs = func() (string, error) { return logs, nil }
		o.Warn = func(d registry.Diagnostic) { warned = append(warned, d.Message) }
	})
	elsewhere := t.TempDir()
	for _, name := range []string{"old.py", "node_modules/old/x.js"} {
		write(t, filepath.Join(workspace, name), 0o600)
	}
	nextTick(t)
	if _, err := call(t, c, func(*process.Confinement) (registry.Result, error) {
		for _, name := range []string{"Makefile", "module.py", "node_modules/@scope/new/cli.js", "node_modules/@scope/new/lib/x.js", "node_modules/.bin/data"} {
			write(t, filepath.Join(workspace, name), 0o700)
		}
		for name, target := range map[string]string{"new": "../@scope/new/cli.js", "old": "../old/x.js"} {
			if err := os.Symlink(target, filepath.Join(workspace, "node_modules/.bin", name)); err != nil {
				t.Error(err)
			}
		}
		return registry.TextResult(""), nil
	}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(workspace, "node_modules/@scope/new/cli.js"), 0o700) // hers now, the rest of its package is not
	nextTick(t)
	const confined, warning = "runs in the sandbox", "does not run in the sandbox"
	for _, tt := range []struct {
		kind, dir, argv, want, file string
	}{
		{Hooks, workspace, "make", confined, "Makefile"},
		{References, workspace, "make -s x", confined, "Makefile"},
		{Discovery, workspace, "make", warning, "Makefile"},
		{Server("s"), workspace, "python3 -m module", confined, "module.py"},
		{Server("s"), workspace, "python3 -m old", "", ""},
		{Server("s"), elsewhere, "python3 -m module", "", ""},
		{Server("s"), elsewhere, "python3 " + workspace + "/module.py", confined, "module.py"},
		{Server("s"), workspace, "node_modules/.bin/new", confined, "node_modules/.bin/new, " + workspace + "/node_modules/@scope/new"},
	} {
		warned = nil
		spec := process.Spec{Argv: strings.Fields(tt.argv), Dir: tt.dir}
		after, err := c.Programs(tt.kind).Apply(t.Context(), &spec)
		if err != nil {
			t.Fatal(err)
		}
		after()
		if (spec.Confine != nil) != (tt.want == confined) || strings.Join(spec.Argv, " ") != tt.argv {
			t.Errorf("%s %q: confined %v, %q", tt.kind, tt.argv, spec.Confine != nil, spec.Argv)
		}
		var want []string
		if tt.want != "" {
			want = []string{fmt.Sprintf("%s (sandbox.%s) %s", strings.Fields(tt.argv)[0], tt.kind, tt.want)}
		}
		if len(warned) != len(want) || len(want) > 0 && (!strings.HasPrefix(warned[0], want[0]) || !strings.HasSuffix(warned[0], "may have changed "+filepath.Join(workspace, tt.file))) {
			t.Errorf("%s %q: %q, want %q and %s", tt.kind, tt.argv, warned, want, tt.file)
		}
	}
}

// While a server runs in the sandbox, the person edits files too, so only programs that changed
// meanwhile are found.
func TestServersChangeOnlyPrograms(t *testing.T) {
	logs := t.TempDir()
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) { o.Logs = func() (string, error) { return logs, nil } })
	nextTick(t)
	after, err := c.Programs(Server("s")).Apply(t.Context(), &process.Spec{Argv: []string{"true"}, Dir: workspace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(workspace, "bin/tool"), 0o700)
	write(t, filepath.Join(workspace, "script.py"), 0o600)
	nextTick(t)
	after()
	changed := c.Means(Shell).Changed
	if got := changed([]string{"bin/tool"}, workspace); !cmp.Equal(got, []string{filepath.Join(workspace, "bin/tool")}) {
		t.Errorf("a program: %q", got)
	}
	if got := changed([]string{"python3", "script.py"}, workspace); got != nil {
		t.Errorf("a script: %q", got)
	}
}

// The plan for a program that another process starts says what this process would do, and
// confining by it fails without a record of what to clean.
func TestPlanFollowsSettings(t *testing.T) {
	const text = "sandbox: {mode: auto, hooks: {mode: off}, processor: {mode: require}}\n"
	logs := t.TempDir()
	c, home, workspace := place(t, text, full, func(o *Options) {
		o.Logs = func() (string, error) { return logs, nil }
		o.Hide = func() []string { return []string{"/hidden"} }
	})
	spec := &process.Spec{Argv: []string{"true"}, Dir: workspace}
	if p, err := c.Plan(Hooks, spec); p != nil || err != nil {
		t.Errorf("off: %+v, %v", p, err)
	}
	for _, kind := range []string{Server("s"), Processor} {
		p, err := c.Plan(kind, spec)
		if err != nil || p == nil {
			t.Fatalf("%s: %+v, %v", kind, p, err)
		}
		if p.Workspace != workspace || p.Logs != logs || !slices.Equal(p.Private, []string{"/hidden"}) || !slices.Contains(p.Profile.Write, workspace) || slices.Contains(p.Profile.Read, home) {
			t.Errorf("%s: %+v", kind, p)
		}
		confined := *spec
		after, err := p.Confine(t.Context(), &confined)
		if err != nil || confined.Confine == nil || !slices.Contains(confined.Confine.ReadOnly, filepath.Join(workspace, ".envrc")) {
			t.Fatalf("%s: %+v, %v", kind, confined.Confine, err)
		}
		after()
		p.Logs = filepath.Join(logs, "none")
		if after, err = p.Confine(t.Context(), &confined); err != nil {
			t.Fatalf("%s: without a record of what to clean: %v", kind, err)
		}
		after()
	}
	c, _, _ = place(t, text, sandbox.Support{Parts: []sandbox.Part{{Name: "Landlock", Detail: "none"}}})
	if p, err := c.Plan(Server("s"), spec); p != nil || err != nil {
		t.Errorf("auto without a sandbox: %+v, %v", p, err)
	}
	if p, err := c.Plan(Processor, spec); p != nil || !errors.Is(err, registry.ErrDenied) {
		t.Errorf("require without a sandbox: %+v, %v", p, err)
	}
}

// The plan of a server, by which it is known again, does not change when a folder of its settings is
// created.
func TestPlanDoesNotDependOnWhatExists(t *testing.T) {
	c, home, workspace := place(t, "sandbox: {servers: {s: {mode: require, read: [~/later, ~/.cache], write: [~/made]}}}\n", full)
	var plans []*Plan
	for range 2 {
		p, err := c.Plan(Server("s"), &process.Spec{Argv: []string{"true"}, Dir: workspace})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
		for _, name := range []string{"later", ".cache", "made"} {
			if err := os.MkdirAll(filepath.Join(home, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(plans[0], plans[1], cmpopts.IgnoreFields(sandbox.Profile{}, "Created", "Brokered")); diff != "" {
		t.Error(diff)
	}
}

// Folders that stay hidden are created before a program runs that could see others create
// them, and no others are.
func TestClosedFoldersExistWhereProgramsSeeThem(t *testing.T) {
	var seen, unseen string
	c, home, workspace := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) { o.Closed = func() []string { return []string{seen, unseen} } })
	seen, unseen = filepath.Join(workspace, "state"), filepath.Join(home, "state")
	c.profile(c.kind(Shell), sandbox.Place{}, false)
	if !exists(seen) || exists(unseen) {
		t.Errorf("in the workspace: %t, in the home folder: %t", exists(seen), exists(unseen))
	}
}

// Without a folder for its records toolreg goes on, and the log says what that means.
func TestMissingLogsAreLogged(t *testing.T) {
	for _, failed := range []error{nil, errors.New("disk full")} {
		var out strings.Builder
		c, _, _ := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&out, nil))
			o.Logs = func() (string, error) { return "", failed }
		})
		if _, err := call(t, c, func(*process.Confinement) (registry.Result, error) { return registry.TextResult(""), nil }); err != nil {
			t.Error(err)
		}
		if strings.Contains(out.String(), "nothing will be cleaned if toolreg is killed") != (failed != nil) {
			t.Errorf("with the error %v: %s", failed, &out)
		}
	}
}

// A linked worktree writes to the git folder that it shares with others.
func TestLinkedWorktreeWritesSharedFolder(t *testing.T) {
	c, home, workspace := place(t, "sandbox: {mode: auto}\n", full)
	common := filepath.Join(filepath.Dir(home), "main/.git")
	for _, name := range []string{"HEAD", "config", "objects/x", "refs/x", "worktrees/w/HEAD"} {
		write(t, filepath.Join(common, name), 0o600)
	}
	if err := os.RemoveAll(filepath.Join(workspace, ".git")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(workspace, ".git"): "gitdir: " + common + "/worktrees/w\n", common + "/worktrees/w/gitdir": workspace + "/.git\n", common + "/worktrees/w/commondir": "../..\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := call(t, c, func(confinement *process.Confinement) (registry.Result, error) {
		if !slices.Contains(confinement.Profile.Write, common) {
			t.Errorf("it writes to %q", confinement.Profile.Write)
		}
		return registry.TextResult(""), nil
	}); err != nil {
		t.Error(err)
	}
	other, _, _ := place(t, "sandbox: {mode: auto}\n", full)
	if _, err := call(t, other, func(confinement *process.Confinement) (registry.Result, error) {
		if slices.Contains(confinement.Profile.Write, "") {
			t.Errorf("without one, it writes to %q", confinement.Profile.Write)
		}
		return registry.TextResult(""), nil
	}); err != nil {
		t.Error(err)
	}
}

// A list of files in a message is cut after twenty.
func TestListedNamesAtMostTwenty(t *testing.T) {
	var names []string
	for i := range 22 {
		names = append(names, fmt.Sprint("f", i))
	}
	if got := listed(names[:20]); !strings.HasSuffix(got, "f19") {
		t.Error(got)
	}
	if got := listed(names); !strings.HasSuffix(got, "f18, f19 and 2 more") {
		t.Error(got)
	}
}

// A program outside of calls warns about what it left, and about nothing else.
func TestProgramsWarnAboutWhatTheyLeft(t *testing.T) {
	var warned []string
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) {
		o.Warn = func(d registry.Diagnostic) { warned = append(warned, d.Code+": "+d.Message) }
	})
	run := func(during func()) {
		t.Helper()
		spec := process.Spec{Argv: []string{"true"}, Dir: workspace}
		after, err := c.Programs(Hooks).Apply(t.Context(), &spec)
		if err != nil || spec.Confine == nil {
			t.Fatal(spec.Confine, err)
		}
		during()
		after()
	}
	run(func() {})
	if warned != nil {
		t.Errorf("without a cause: %q", warned)
	}
	run(func() { write(t, filepath.Join(workspace, ".bashrc"), 0o600) })
	c.report(Hooks, guards.Cleaned{Removed: []string{"a", "b"}}, errors.New("disk full"))
	want := []string{
		"sandbox_kept: created or replaced while a sandboxed program ran (sandbox.hooks), perhaps not by it, and kept: .bashrc",
		"sandbox_removed: cleaning the workspace after a sandboxed program (sandbox.hooks): disk full",
		"sandbox_removed: deleted after a sandboxed program (sandbox.hooks): a, b",
	}
	if diff := cmp.Diff(want, warned); diff != "" {
		t.Error(diff)
	}
	warned = nil
	c, _, workspace = place(t, "sandbox: {mode: auto}\n", full, func(o *Options) {
		o.Logs = func() (string, error) { return "/proc/none", nil }
		o.Warn = func(d registry.Diagnostic) { warned = append(warned, d.Code) }
	})
	run(func() {})
	if diff := cmp.Diff([]string{"sandbox_unrecorded"}, warned); diff != "" {
		t.Errorf("without a place for logs: %s", diff)
	}
}

// A program may read its own files, and the neutral folder if it starts there.
func TestProgramsReadTheirOwnFiles(t *testing.T) {
	neutral, failed := t.TempDir(), error(nil)
	c, _, workspace := place(t, "sandbox: {mode: auto}\n", full, func(o *Options) { o.Neutral = func() (string, error) { return neutral, failed } })
	opened := func(dir string) []string {
		t.Helper()
		spec := process.Spec{Argv: []string{"true"}, Dir: dir}
		after, err := c.Programs(Hooks).Apply(t.Context(), &spec)
		if err != nil {
			t.Fatal(err)
		}
		after()
		return spec.Confine.Opened
	}
	if got := opened(neutral); !cmp.Equal(got, []string{neutral}) {
		t.Errorf("in the neutral folder: %q", got)
	}
	if got := opened(t.TempDir()); got != nil {
		t.Errorf("in another folder: %q", got)
	}
	if failed = errors.New("none"); opened(neutral) != nil {
		t.Error("opened although there is no neutral folder")
	}
	if neutral, failed = workspace, nil; opened(workspace) != nil {
		t.Error("the project is opened as the neutral folder")
	}
	script := filepath.Join(workspace, "run.sh")
	write(t, script, 0o700)
	write(t, filepath.Join(workspace, "sub/other"), 0o600)
	own, first := ownFiles(&process.Spec{Argv: []string{"sh", "missing", "sub", "run.sh", filepath.Join(workspace, "sub/other")}, Dir: workspace})
	if diff := cmp.Diff([]string{workspace, script, filepath.Join(workspace, "sub/other")}, own); diff != "" || first != script {
		t.Errorf("script %q: %s", first, diff)
	}
}

// The settings of the shell and of yolo decide whether a call is confined and what is said
// about it.
func TestMeansFollowSettings(t *testing.T) {
	for _, tt := range []struct {
		text string
		kind string
		want policy.Means
		says bool
	}{
		{"", Shell, policy.Means{YoloAuto: true}, true},
		{"sandbox: {mode: auto}", Shell, policy.Means{Auto: true, YoloAuto: true}, true},
		{"sandbox: {mode: require}", Shell, policy.Means{Require: true, YoloAuto: true}, true},
		{"sandbox: {mode: off}", Shell, policy.Means{YoloAuto: true}, true},
		{"sandbox: {shell: {mode: off}}", Shell, policy.Means{Off: true}, false},
		{"sandbox: {shell: {mode: auto}}", Shell, policy.Means{Auto: true, YoloAuto: true}, true},
		{"sandbox: {yolo: require}", Shell, policy.Means{YoloRequire: true}, true},
		{"sandbox: {yolo: require, shell: {mode: off}}", Shell, policy.Means{Off: true, YoloRequire: true}, true},
		{"sandbox: {yolo: off}", Shell, policy.Means{}, true},
		{"sandbox: {mode: auto}", Plugins, policy.Means{Auto: true}, true},
	} {
		c, _, _ := place(t, tt.text, full)
		m := c.Means(tt.kind)
		got := policy.Means{Auto: m.Auto, Require: m.Require, Off: m.Off, YoloAuto: m.YoloAuto, YoloRequire: m.YoloRequire}
		if diff := cmp.Diff(tt.want, got); diff != "" || (m.Allows(false) != "") != tt.says || m.Missing() != "" {
			t.Errorf("%s, %s: says %q\n%s", tt.text, tt.kind, m.Allows(false), diff)
		}
	}
}

func TestDescriptionNamesPaths(t *testing.T) {
	c, home, _ := place(t, "sandbox: {shell: {read: [~/.ssh], write: [$DATA]}, plugins: {network: [a.example, b.example]}}\n", full)
	for _, tt := range []struct {
		kind   string
		online bool
		want   string
	}{
		{Shell, false, "it can write to the workspace, " + home + "/data; it can also read " + home + "/.ssh; network: a private loopback"},
		{Shell, true, "it can write to the workspace, " + home + "/data; it can also read " + home + "/.ssh; network: all"},
		{Plugins, false, "it can write to the workspace; network: a.example, b.example"},
	} {
		if got := c.Means(tt.kind).Allows(tt.online); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.kind, got, tt.want)
		}
	}
}

// On a system without the sandbox, the findings name what requires or wants it.
func TestFindingsNameWhatWantsTheSandbox(t *testing.T) {
	const text = `sandbox:
  mode: auto
  shell: {mode: require}
  hooks: {mode: off}
  servers: {s: {mode: require}, off: {mode: require}, remote: {mode: require}}
mcpServers:
  s: {command: srv}
  off: {command: srv, disabled: true}
  remote: {url: https://a.example}
policy:
  rules:
    - {tool: x, decision: sandbox}
    - {tool: y, decision: deny}
`
	c, home, _ := place(t, text, sandbox.Support{Parts: []sandbox.Part{{Name: "Landlock", Detail: "none"}}})
	file := filepath.Join(filepath.Dir(home), "s.yaml")
	parts, missing, wanted := c.Findings()
	want := []string{
		"sandbox.shell.mode: require (" + file + ":3)", "sandbox.mode: auto (" + file + ":2)", "sandbox.servers.s.mode: require (" + file + ":5)",
		"a rule has the decision sandbox (" + file + ":12)",
	}
	if diff := cmp.Diff(want, wanted); diff != "" || missing != "Landlock (none)" || len(parts) != 1 {
		t.Errorf("%q: %s", missing, diff)
	}
	if c, _, _ := place(t, text, full); true {
		if parts, missing, wanted := c.Findings(); missing != "" || wanted != nil || len(parts) != 1 {
			t.Errorf("with a sandbox: %q, %q", missing, wanted)
		}
	}
}

// Folders around protected and hidden paths cannot be renamed.
func TestFoldersAroundProtectedPathsAreFixed(t *testing.T) {
	var hide, protect []string
	c, _, workspace := place(t, "", full, func(o *Options) {
		o.Hide, o.Protect = func() []string { return hide }, func() []string { return protect }
	})
	hide, protect = []string{filepath.Join(workspace, "a/b/secret")}, []string{filepath.Join(workspace, "a/c/file"), filepath.Join(workspace, "top"), "/elsewhere/x/y"}
	p := c.profile(c.kind(Shell), sandbox.Place{}, false)
	want := []string{filepath.Join(workspace, "a/c"), filepath.Join(workspace, "a"), filepath.Join(workspace, "a/b")}
	if diff := cmp.Diff(want, p.Fixed); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append(hide, protect...), c.private()); diff != "" {
		t.Errorf("what programs must not create: %s", diff)
	}
}
