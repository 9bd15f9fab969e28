package shell

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// shellPlace creates a workspace, with the environment that a shell needs.
func shellPlace(t testing.TB, files map[string]string) (setup, string) {
	opts, dir := place(t, files)
	opts.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "COLOUR=red"}
	return opts, dir
}

// report splits the lines of a shell report by their labels; absent ones are left out.
func report(t testing.TB, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	last, rest := "", "\n"+text
	for _, label := range []string{"Command", "Directory", "Stdout", "Stderr", "Error", "Exit Code", "Signal"} {
		before, after, ok := strings.Cut(rest, "\n"+label+": ")
		if !ok {
			continue
		}
		if last != "" {
			out[last] = before
		} else if before != "" {
			t.Fatalf("begins with %q", before)
		}
		last, rest = label, after
	}
	out[last] = rest
	return out
}

func TestShell(t *testing.T) {
	const none, empty, anyText = "", "(empty)", "*"
	tests := []struct {
		name, params                               string
		dir, stdout, stderr, failure, code, signal string
		isError                                    bool
		display                                    string
	}{
		{"output", `{"command":"echo hi; echo oops >&2"}`, none, "hi\n", "oops\n", none, "0", none, false, "hi\noops\n"},
		{"nothing", `{"command":"true"}`, none, empty, none, none, "0", none, false, "[done, no output]\n"},
		{"exit code", `{"command":"echo no; exit 3"}`, none, "no\n", none, none, "3", none, true, "no\n[exit code 3]\n"},
		{"signal", `{"command":"kill -KILL $$"}`, none, empty, none, none, none, "SIGKILL", true, "[ended by signal SIGKILL]\n"},
		{"directory", `{"command":"basename \"$PWD\"","directory":"sub dir"}`, "sub dir", "sub dir\n", none, none, "0", none, false, "sub dir\n"},
		{"a comment at the end", `{"command":"echo a # b"}`, none, "a\n", none, none, "0", none, false, "a\n"},
		{"a here document", `{"command":"cat <<E\nx $COLOUR\nE"}`, none, "x red\n", none, none, "0", none, false, "x red\n"},
		{"only the given environment", `{"command":"env | grep -c -e ^HOME= -e ^COLOUR= -e ^TOOLREG_SECRET="}`, none, "2\n", none, none, "0", none, false, "2\n"},
		{"no stdin and no terminal", `{"command":"cat; tty; exec 3<>/dev/tty || echo none"}`, none, "not a tty\nnone\n", anyText, none, "0", none, false, ""},
		{"a command that looks like an option", `{"command":"-c 'echo x'"}`, none, none, anyText, none, "127", none, true, ""},
		{"invalid UTF-8", `{"command":"printf 'a\\377b\\303\\251'"}`, none, "a\uFFFDbé", none, none, "0", none, false, "a\uFFFDbé"},
	}
	t.Setenv("TOOLREG_SECRET", "x")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, _ := shellPlace(t, map[string]string{"sub dir/f": ""})
			r := run(t, opts, "run_shell_command", tt.params)
			got := report(t, r.Text())
			want := map[string]string{
				"Command": got["Command"], "Directory": tt.dir, "Stdout": tt.stdout, "Stderr": tt.stderr,
				"Error": tt.failure, "Exit Code": tt.code, "Signal": tt.signal,
			}
			if tt.stderr == anyText {
				want["Stderr"] = got["Stderr"] // the shell's own message
			}
			maps.DeleteFunc(want, func(_, value string) bool { return value == none })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if r.IsError != tt.isError || tt.isError && r.ErrorCategory != registry.ErrorExecution {
				t.Errorf("error %v, category %q", r.IsError, r.ErrorCategory)
			}
			if tt.display != "" && r.Display.Text != tt.display {
				t.Errorf("displayed %q, want %q", r.Display.Text, tt.display)
			}
		})
	}
}

func TestShellChecksParams(t *testing.T) {
	opts, dir := shellPlace(t, map[string]string{"f": ""})
	if err := os.Symlink("/", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	opts.MaxTimeout = 10 * time.Second
	opts.StateDir = ""
	for p, want := range map[string]string{
		`{}`:                                   "/command: is empty",
		`{"command":" \n"}`:                    "/command: is empty",
		`{"command":"a\u0000b"}`:               "/command: contains a NUL byte",
		`{"command":"ls","timeout":11}`:        "/timeout: is 11; it must be 1 to 10 seconds",
		`{"command":"ls","timeout":0}`:         "/timeout: is 0",
		`{"command":"ls","timeout":1e30}`:      "/timeout: is 9007199254740992; it must be 1 to 10 seconds",
		`{"command":"ls","directory":"/etc"}`:  "outside the workspace",
		`{"command":"ls","directory":"out/x"}`: "leaves the workspace through link",
		`{"command":"ls","background":true}`:   "/background: needs a state folder",
		`{"command":"ls","shell":"zsh"}`:       `unknown field "shell"`,
	} {
		err := find(t, opts, "run_shell_command").Check(t.Context(), tooltest.Call(p))
		if _, ok := errors.AsType[*registry.ArgsError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", p, err, want)
		}
	}
	for dir, want := range map[string]string{"nowhere": "does not exist", "f": "is a file"} {
		r := run(t, opts, "run_shell_command", tooltest.JSON(t, map[string]string{"command": "pwd", "directory": dir}))
		if !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("in %q: %q", dir, r.Text())
		}
	}
}

func TestShellTimeLimits(t *testing.T) {
	for _, tt := range []struct {
		set, most time.Duration
		asked     tool.Integer
		want      time.Duration // 0 means refused
	}{
		{0, 0, 0, 120 * time.Second},
		{0, 0, 3600, time.Hour},
		{0, 0, 3601, 0},
		{30 * time.Second, 0, 0, 30 * time.Second},
		{2 * time.Hour, 0, 0, 2 * time.Hour},
		{2 * time.Hour, 0, 7200, 2 * time.Hour},
		{0, 10 * time.Second, 0, 10 * time.Second},
		{120 * time.Second, 10 * time.Second, 0, 10 * time.Second},
		{120 * time.Second, 10 * time.Second, 60, 0},
	} {
		var asked *tool.Integer
		if tt.asked != 0 {
			asked = &tt.asked
		}
		got, err := timeLimit("t", asked, &Options{Timeout: tt.set, MaxTimeout: tt.most})
		if got != tt.want || (err != nil) != (tt.want == 0) {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
}

func TestShellPreviewShowsCommand(t *testing.T) {
	opts, _ := shellPlace(t, map[string]string{"sub/f": ""})
	const command = "rm -rf \"$X\" && echo 'é' #\r\n"
	c := tooltest.Call(tooltest.JSON(t, map[string]string{"command": command, "directory": "./sub/"}))
	tool := find(t, opts, "run_shell_command")
	s, err := tool.Subject(c)
	if diff := cmp.Diff(registry.Subject{Command: command, Directory: "sub"}, s); err != nil || diff != "" {
		t.Error(err, diff)
	}
	p, err := tool.Preview(t.Context(), c)
	want := registry.Preview{Kind: registry.PreviewExec, Title: "Run a shell command", Command: command, Directory: filepath.Join(opts.Workspace, "sub")}
	if diff := cmp.Diff(want, p); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, dir := range []string{"nosuch", "sub/f"} {
		_, err := tool.Preview(t.Context(), tooltest.Call(tooltest.JSON(t, map[string]string{"command": "ls", "directory": dir})))
		if _, fails := errors.AsType[*registry.FailedError](err); !fails {
			t.Errorf("a command in %s, which can only fail, is asked about: %v", dir, err)
		}
	}
}

// The time limit stops the command and everything it started. Output from
// before is kept.
func TestShellTimeLimit(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	r := run(t, opts, "run_shell_command",
		`{"command":"echo $$; echo before; (trap '' TERM; while :; do sleep 0.05; done) & wait","timeout":1}`)
	if !r.IsError || r.ErrorCategory != registry.ErrorTimeout {
		t.Errorf("category %q", r.ErrorCategory)
	}
	got := report(t, r.Text())
	if !strings.HasSuffix(got["Stdout"], "\nbefore\n") || !strings.Contains(got["Error"], "time limit of 1s") || !strings.Contains(got["Error"], "background") {
		t.Error(r.Text())
	}
	expectGone(t, r.Text())
}

// Processes that a command leaves running with & are stopped with it.
func TestShellLeavesNothingRunning(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	r := run(t, opts, "run_shell_command", `{"command":"echo $$; (while :; do sleep 0.05; done) & echo done"}`)
	if r.IsError || !strings.Contains(r.Text(), "done") {
		t.Error(r.Text())
	}
	expectGone(t, r.Text())
}

// expectGone fails if a process of the group that the first line of stdout names goes on running. One that was
// killed may need a moment.
func expectGone(t testing.TB, text string) {
	t.Helper()
	first, _, _ := strings.Cut(report(t, text)["Stdout"], "\n")
	group, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	limit := time.After(time.Minute)
	for process.GroupIsAlive(group) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-limit:
			t.Fatalf("group %d is still running", group)
		}
	}
}

func TestShellCancelled(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted")
	c := tooltest.Call(`{"command":"echo before; sleep 60"}`)
	c.Emit = func(registry.Content) { cancel(cause) }
	r, err := find(t, opts, "run_shell_command").Run(ctx, c)
	if !errors.Is(err, cause) || r.ErrorCategory != registry.ErrorCancellation || !strings.Contains(r.Text(), "before") {
		t.Errorf("%v %q %q", err, r.ErrorCategory, r.Text())
	}
}

// Output is emitted while the command runs, in whole characters.
func TestShellStreams(t *testing.T) {
	opts, dir := shellPlace(t, nil)
	var mu sync.Mutex
	var got strings.Builder
	c := tooltest.Call(`{"command":"printf 'a\\303'; until [ -e go ]; do sleep 0.01; done; printf '\\251b'"}`)
	c.Emit = func(part registry.Content) {
		mu.Lock()
		defer mu.Unlock()
		if got.Len() == 0 {
			tooltest.Put(t, filepath.Join(dir, "go"), "") // the command ends only if its output was streamed
		}
		got.WriteString(part.Text)
	}
	if r, err := find(t, opts, "run_shell_command").Run(t.Context(), c); err != nil || r.IsError {
		t.Fatal(err, r.Text())
	}
	if got.String() != "aéb" {
		t.Errorf("streamed %q", got.String())
	}
}

func TestShellLongOutput(t *testing.T) {
	opts, _ := shellPlace(t, nil)
	opts.MaxOutput = 1000
	r := run(t, opts, "run_shell_command", `{"command":"echo first; yes | head -c 100000; echo last"}`)
	text := report(t, r.Text())["Stdout"]
	if !r.Truncated || r.IsError || len(text) > 1100 || !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "last\n") ||
		!strings.Contains(text, "\n[… 96.7 KiB cut here …]\n") {
		t.Errorf("truncated %v, error %v, %d bytes: %s", r.Truncated, r.IsError, len(text), text)
	}
}

func TestShellChoice(t *testing.T) {
	empty, onlySh := t.TempDir(), t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(onlySh, "sh")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{os.Getenv("PATH"): "bash", onlySh: "sh", empty: "sh"} {
		if got := Name([]string{"PATH=" + path}); got != want {
			t.Errorf("with PATH %q: %q, want %q", path, got, want)
		}
	}
	opts, _ := shellPlace(t, nil)
	opts.Env = []string{"PATH=" + onlySh}
	if r := run(t, opts, "run_shell_command", `{"command":"echo $0"}`); report(t, r.Text())["Stdout"] != "sh\n" {
		t.Error(r.Text())
	}
	opts.Env = []string{"PATH=" + empty}
	_, err := find(t, opts, "run_shell_command").Run(t.Context(), tooltest.Call(`{"command":"echo"}`))
	if err == nil || !strings.Contains(err.Error(), `running a shell command: starting "sh"`) {
		t.Errorf("without a shell: %v", err)
	}
}

// The command line is a single argument, whatever it contains.
func TestShellArgv(t *testing.T) {
	for _, command := range []string{`echo "a b" 'c' $d`, "a\nb", "x"} {
		for shell, want := range map[string][]string{
			"bash": {"bash", "-c", command}, "zsh": {"zsh", "-c", command},
			"pwsh": {"pwsh", "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", command},
		} {
			if got := argvOf(shell, shell == "pwsh", command); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
	for _, command := range []string{"-x", "+x"} {
		if got := argvOf("sh", false, command); !slices.Equal(got, []string{"sh", "-c", "--", command}) {
			t.Errorf("%q", got)
		}
	}
}

func FuzzTextStream(f *testing.F) {
	f.Add([]byte("a\xc3\xa9\xff\xf0\x9f\x98\x80\xc3"), 2)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		var got strings.Builder
		s := &textStream{emit: func(c registry.Content) { got.WriteString(c.Text) }}
		for rest := data; len(rest) > 0; {
			n := min(max(step, 1), len(rest))
			s.write(1, rest[:n])
			rest = rest[n:]
		}
		s.end()
		// A run of broken bytes may become one replacement or several.
		fold := func(s string) string {
			for strings.Contains(s, "\uFFFD\uFFFD") {
				s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
			}
			return s
		}
		if want := text.Valid(data); fold(got.String()) != fold(want) {
			t.Errorf("%q in steps of %d: %q, want %q", data, step, got.String(), want)
		}
	})
}
