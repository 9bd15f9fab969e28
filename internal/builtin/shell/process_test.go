//go:build unix

package shell

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// start starts a command in the background and returns its id. The command is
// killed when the test ends.
func start(t *testing.T, opts setup, command string) string {
	t.Helper()
	r := run(t, opts, "run_shell_command", tooltest.JSON(t, map[string]any{"command": command, "background": true}))
	_, rest, ok := strings.Cut(r.Text(), `with id "`)
	id, _, _ := strings.Cut(rest, `"`)
	if !ok || r.IsError {
		t.Fatal(r.Text())
	}
	tool := find(t, opts, "process")
	t.Cleanup(func() {
		p := tooltest.Call(tooltest.JSON(t, map[string]string{"action": "kill", "id": id}))
		_, _ = tool.Run(context.WithoutCancel(t.Context()), p) // it may have ended already
	})
	return id
}

func processes(t *testing.T, opts setup, action, id string) *registry.Result {
	t.Helper()
	r := run(t, opts, "process", tooltest.JSON(t, map[string]any{"action": action, "id": id, "timeout": 60}))
	return &r
}

// A token sees, and stops, only the commands that it started; the person sees all.
func TestBackgroundBelongsToItsToken(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	as := func(name string) context.Context {
		return caller.With(t.Context(), &caller.Caller{Name: cmp.Or(name, "stdio"), Token: name})
	}
	shell, tool := find(t, opts, "run_shell_command"), find(t, opts, "process")
	r, err := shell.Run(as("alice"), tooltest.Call(`{"command":"sleep 300","background":true}`))
	_, rest, _ := strings.Cut(r.Text(), `with id "`)
	id, _, found := strings.Cut(rest, `"`)
	if err != nil || !found {
		t.Fatal(r.Text(), err)
	}
	t.Cleanup(func() { run(t, opts, "process", `{"action":"kill","id":"`+id+`"}`) })
	text := func(ctx context.Context, action string) string {
		r, err := tool.Run(ctx, tooltest.Call(`{"action":"`+action+`","id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		return r.Text()
	}
	for _, who := range []string{"bob", ""} {
		if got := text(as(who), "list"); got != "No background processes." {
			t.Errorf("%q sees %q", who, got)
		}
		if got := text(as(who), "log") + text(as(who), "kill"); strings.Count(got, "there is no background process") != 2 {
			t.Errorf("%q gets %q", who, got)
		}
		p, err := tool.Preview(as(who), tooltest.Call(`{"action":"kill","id":"`+id+`"}`))
		if _, fails := errors.AsType[*registry.FailedError](err); !fails || strings.Contains(p.Prompt+err.Error(), "sleep") {
			t.Errorf("%q is shown %q, %v", who, p.Prompt, err)
		}
	}
	for name, ctx := range map[string]context.Context{"alice": as("alice"), "the person": t.Context()} {
		if got := text(ctx, "list"); !strings.Contains(got, "sleep 300") {
			t.Errorf("%s sees %q", name, got)
		}
	}
}

func TestBackground(t *testing.T) {
	opts, dir := shellPlace(t, map[string]string{"sub/f": ""})
	id := start(t, opts, "echo started; until [ -e go ]; do sleep 0.02; done; echo $COLOUR; exit 7 # done")

	if text := processes(t, opts, "list", "x").Text(); !strings.HasPrefix(text, id+"  running  started ") || !strings.Contains(text, "in .: echo started;") {
		t.Errorf("list: %q", text)
	}
	tooltest.Put(t, filepath.Join(dir, "go"), "")
	r := processes(t, opts, "wait", id)
	if !r.IsError || r.ErrorCategory != registry.ErrorExecution || !strings.Contains(r.Text(), id+": ended with exit code 7\n") ||
		!strings.HasSuffix(r.Text(), "Output:\nstarted\nred\n") {
		t.Errorf("wait: %q", r.Text())
	}
	if r := processes(t, opts, "log", id); r.IsError || !strings.HasSuffix(r.Text(), "Output:\nstarted\nred\n") {
		t.Errorf("log: %q", r.Text())
	}
	if r := processes(t, opts, "kill", id); !r.IsError || !strings.Contains(r.Text(), "has already ended: ended with exit code 7") {
		t.Errorf("kill: %q", r.Text())
	}
}

// Killing a command stops everything that it started, including processes that
// ignore SIGTERM.
func TestBackgroundKill(t *testing.T) {
	opts, dir := shellPlace(t, nil)
	id := start(t, opts, "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo up > up; wait; while :; do sleep 0.05; done")
	waitFor(t, filepath.Join(dir, "up"))
	p := &processTool{opts: &opts.Options, workspace: workspace.New(workspace.Options{Dir: opts.Workspace})}
	_, rec, failed := p.findProcess(t.Context(), &processCall{processParams: processParams{ID: id}})
	if failed != nil {
		t.Fatal(failed)
	}
	r := processes(t, opts, "kill", id)
	if r.IsError || !strings.Contains(r.Text(), id+": killed") {
		t.Errorf("kill: %q", r.Text())
	}
	if process.GroupIsAlive(rec.Group) {
		t.Errorf("group %d is still running", rec.Group)
	}
	if r := processes(t, opts, "wait", id); !strings.Contains(r.Text(), "killed") {
		t.Errorf("wait: %q", r.Text())
	}
	_, err := find(t, opts, "process").Preview(t.Context(), tooltest.Call(`{"action":"kill","id":"`+id+`"}`))
	if _, fails := errors.AsType[*registry.FailedError](err); !fails {
		t.Errorf("it can be killed again: %v", err)
	}
}

// waitFor returns when a file exists.
func waitFor(t *testing.T, path string) {
	t.Helper()
	out, err := process.Run(t.Context(), process.Spec{
		Argv: []string{"/bin/sh", "-c", `until [ -e "$1" ]; do sleep 0.02; done`, "sh", path}, Env: []string{"PATH=" + os.Getenv("PATH")},
	})
	if err != nil || out.ExitCode != 0 {
		t.Fatal(err)
	}
}

func TestBackgroundWaitEndsInTime(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	id := start(t, opts, "sleep 600")
	r := run(t, opts, "process", tooltest.JSON(t, map[string]any{"action": "wait", "id": id, "timeout": 1}))
	if r.IsError || r.Summary != id+" is still running after 1s" {
		t.Errorf("%q %q", r.ErrorCategory, r.Summary)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted")
	cancel(cause)
	_, err := find(t, opts, "process").Run(ctx, tooltest.Call(tooltest.JSON(t, map[string]string{"action": "wait", "id": id})))
	if !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}

// If the process of a record is gone and its id belongs to another process, the
// record is not reported as running, and the other process is not killed.
func TestReusedProcessIDIsNotTakenForTheCommand(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	id := start(t, opts, "sleep 600")
	tool := &processTool{opts: &opts.Options, workspace: workspace.New(workspace.Options{Dir: opts.Workspace})}
	store, rec, failed := tool.findProcess(t.Context(), &processCall{processParams: processParams{ID: id}})
	if failed != nil {
		t.Fatal(failed)
	}
	other := *rec
	other.ID, other.Birth = "other", "earlier"
	if err := store.save(&other); err != nil {
		t.Fatal(err)
	}
	tooltest.Put(t, store.path("other", "log"), "")
	if r := processes(t, opts, "kill", "other"); !r.IsError || !strings.Contains(r.Text(), "already ended: ended, exit code unknown") {
		t.Errorf("kill: %q", r.Text())
	}
	if text := processes(t, opts, "list", "x").Text(); !strings.Contains(text, id+"  running") {
		t.Errorf("list: %q", text)
	}
}

func TestBackgroundBelongsToItsWorkspace(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	id := start(t, opts, "sleep 600")
	elsewhere := opts
	elsewhere.Workspace = t.TempDir()
	if r := processes(t, elsewhere, "kill", id); !r.IsError || !strings.Contains(r.Text(), "there is no background process") {
		t.Errorf("kill from another workspace: %q", r.Text())
	}
	if text := processes(t, elsewhere, "list", "x").Text(); text != "No background processes." {
		t.Errorf("list from another workspace: %q", text)
	}
}

func TestProcessChecksParams(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	tooltest.Put(t, filepath.Join(opts.StateDir, backgroundFolder, "bad.json"), `{"id":"bad","pid":1,"group":1}`)
	tooltest.Put(t, filepath.Join(opts.StateDir, "secret.json"), `{"id":"secret","pid":2,"group":2}`)
	for p, want := range map[string]string{
		`{"action":"log"}`:               "/id: is required for log",
		`{"action":"list","timeout":-1}`: "/timeout",
	} {
		err := find(t, opts, "process").Check(t.Context(), tooltest.Call(p))
		if _, ok := errors.AsType[*registry.ArgsError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", p, err)
		}
	}
	for id, want := range map[string]string{"nosuch": "there is no", "../secret": "there is no", "bad": "damaged", "a/b": "there is no"} {
		if r := processes(t, opts, "kill", id); !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("kill %q: %q", id, r.Text())
		}
	}
}

func TestProcessPreviewShowsTheCommand(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	id := start(t, opts, "sleep 600")
	p, err := find(t, opts, "process").Preview(t.Context(), tooltest.Call(tooltest.JSON(t, map[string]string{"action": "kill", "id": id})))
	if want := `Stop the background process "` + id + `": sleep 600`; err != nil || p.Prompt != want {
		t.Errorf("%q, %v", p.Prompt, err)
	}
}

// childVariable holds the workspace and the state folder when the test binary
// runs as a program that starts a background command and exits.
const childVariable = "BUILTIN_TEST_BACKGROUND"

// A background command outlives the program that started it.
func TestBackgroundOutlivesTheProgram(t *testing.T) {
	if folders := os.Getenv(childVariable); folders != "" {
		ws, state, _ := strings.Cut(folders, "\n")
		opts := setup{ws, Options{StateDir: state, Env: os.Environ(), Keeper: testKeeper()}}
		r := run(t, opts, "run_shell_command", `{"command":"until [ -e go ]; do sleep 0.02; done; echo alive","background":true}`)
		if r.IsError {
			t.Fatal(r.Text())
		}
		return
	}
	opts, dir := shellPlace(t, nil)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.Run(t.Context(), process.Spec{
		Argv: []string{self, "-test.run=^TestBackgroundOutlivesTheProgram$"},
		Env:  append(os.Environ(), childVariable+"="+dir+"\n"+opts.StateDir),
	})
	if err != nil || out.ExitCode != 0 {
		t.Fatalf("%v %s%s", err, out.Stdout, out.Stderr)
	}
	id, _, _ := strings.Cut(processes(t, opts, "list", "x").Text(), "  running")
	tooltest.Put(t, filepath.Join(dir, "go"), "")
	if r := processes(t, opts, "wait", id); r.IsError || !strings.HasSuffix(r.Text(), "alive\n") {
		t.Errorf("wait: %q", r.Text())
	}
}

func TestLogTail(t *testing.T) {
	store := &backgroundStore{dir: t.TempDir()}
	tooltest.Put(t, store.path("x", "log"), "first\nsecond\nthird\n")
	for limit, want := range map[int64]string{100: "first\nsecond\nthird\n", 13: "third\n", 6: "third\n", 3: "rd\n", 19: "first\nsecond\nthird\n"} {
		got, size, err := store.tail("x", limit)
		if err != nil || got != want || size != 19 {
			t.Errorf("tail of %d: %q, %d, %v; want %q", limit, got, size, err, want)
		}
	}
}
