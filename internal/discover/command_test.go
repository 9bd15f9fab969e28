//go:build unix

package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// source returns the source of a project whose discovery command is the script.
func source(t testing.TB, script string, tune func(*CommandOptions)) registry.Source {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "discover.sh", "#!/bin/sh\n"+script)
	opts := CommandOptions{Discovery: commandLine(t, "./discover.sh"), Call: commandLine(t, "./call.sh"), Options: Options{ProjectRoot: dir, Env: environ()}}
	if tune != nil {
		tune(&opts)
	}
	return newCommand(opts)
}

func TestDiscoveryErrors(t *testing.T) {
	tests := []struct {
		name, script string
		tune         func(*CommandOptions)
		want         []string // parts of the error
	}{
		{"cannot start", "", func(o *CommandOptions) { o.Discovery = settings.Command{Argv: []string{"./absent", "x y"}} },
			[]string{`"./absent 'x y'"`, "cannot start", "no such file"}},
		{"not in PATH", "", func(o *CommandOptions) { o.Discovery = settings.Command{Argv: []string{"toolreg-absent"}} },
			[]string{"not found in its PATH"}},
		{"no working directory", "", func(o *CommandOptions) {
			o.ProjectRoot += "/absent"
			o.Discovery = settings.Command{Argv: []string{"/bin/true"}}
		}, []string{"working directory"}},
		{"exit code", "echo one >&2; echo two >&2; echo '[]'; exit 3", nil, []string{"exit code 3", "its stderr ends with: one | two"}},
		{"exit code 127", "toolreg-absent", nil, []string{"exit code 127", "toolreg-absent"}},
		{"silent", "exit 1", nil, []string{"exit code 1", "it printed nothing on stderr"}},
		{"long stderr", "seq 1 100000 >&2; exit 1", nil, []string{"ends with: 99996 | 99997 | 99998 | 99999 | 100000"}},
		{"signal", "kill -SEGV $$", nil, []string{"ended by SIGSEGV"}},
		{"time limit", "exec sleep 600", func(o *CommandOptions) { o.Timeout = 200 * time.Millisecond },
			[]string{"stopped after 200ms", "toolDiscoveryTimeout"}},
		{"stdout limit", "yes", func(o *CommandOptions) { o.Limits.Discovery = 1000 }, []string{"killed at the size limit of 1000 bytes on stdout"}},
		{"stderr limit", "yes >&2", func(o *CommandOptions) { o.Limits.Discovery = 1000 }, []string{"size limit of 1000 bytes on stderr"}},
		{"nothing", "", nil, []string{"printed nothing", "[] for none"}},
		{"not JSON", `printf 'oops\n[]'`, nil, []string{"not JSON", "at line 1, column 1", `first line is "oops"`}},
		{"not JSON later", `printf '[\n{"name":1},\n}]'`, nil, []string{"line 3"}},
		{"UTF-16", `printf '\377\376[\000]\000'`, nil, []string{"not UTF-8", "looks like UTF-16"}},
		{"UTF-16 without a mark", `printf '\000[\000]'`, nil, []string{"looks like UTF-16"}},
		{"cut off", `printf '[{"name":"a"}'`, nil, []string{"unexpected end"}},
		{"npm banner", `printf '\n> demo@1.0.0 discover\n> node tools.js\n\n[]\n'`, nil, []string{"not JSON", "npm run --silent", "> demo@1.0.0 discover"}},
		{"a request", `echo '{"model":"m","tools":[{"name":"a"}]}'`, nil, []string{"JSON array, not an object", `print the array in its member "tools"`}},
		{"object", `echo '{"name":"a"}'`, nil, []string{"JSON array, not an object", "wrap it in [ ]"}},
		{"null", `echo null`, nil, []string{"JSON array, not null"}},
		{"string", `echo '"[]"'`, nil, []string{"JSON array, not a string"}},
		{"unset variable", "", func(o *CommandOptions) {
			o.Expand = func(settings.Command) ([]string, error) { return nil, errors.New("variable TOOLS_HOME is not set") }
		}, []string{"variable TOOLS_HOME is not set"}},
		{"empty after expansion", "", func(o *CommandOptions) {
			o.Expand = func(settings.Command) ([]string, error) { return []string{""}, nil }
		}, []string{"empty once its variables are expanded"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tools, _, err := source(t, tt.script, tt.tune).Discover(t.Context())
			if !errors.Is(err, registry.ErrSourceFailed) || tools != nil {
				t.Fatalf("tools %v, error %v", tools, err)
			}
			for _, want := range append(tt.want, "discovery command", "toolDiscoveryCommand") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
				t.Errorf("the error is not a single short line: %q", err)
			}
		})
	}
}

func TestDiscoveryStopsWhenContextIsDone(t *testing.T) {
	cause := errors.New("the person pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	src := source(t, "echo $$ > "+pipe+"; exec sleep 600", nil)
	go func() {
		_, _ = os.ReadFile(pipe) // until the script has started
		cancel(cause)
	}()
	if _, _, err := src.Discover(ctx); !errors.Is(err, cause) || !errors.Is(err, registry.ErrSourceFailed) {
		t.Errorf("error %v", err)
	}
}

func TestCommandEnvironment(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "hunter2")
	const report = `printf '%s|%s|%s|%s|%s' "$(pwd)" "$TOOLREG_PROJECT_ROOT" "$TOOLREG_TOOL" "$GITHUB_TOKEN" "$TOOLREG_DEPTH"`
	var root string
	src := source(t, `printf '[{"name":"say it","description":"'; `+report+`; printf '"}]'`, func(o *CommandOptions) {
		root = o.ProjectRoot
		o.Env = append(o.Env, "TOOLREG_DEPTH=1", "TOOLREG_TOOL=")
		writeFile(t, root, "call.sh", "#!/bin/sh\n"+report+`; printf '|%s' "$@"`)
	})
	tools, diags, err := src.Discover(t.Context())
	if err != nil || len(tools) != 1 || len(diags) > 0 {
		t.Fatalf("%d tools, %v, %v", len(tools), diags, err)
	}
	if want := root + "|" + root + "|||1\n"; !strings.HasPrefix(tools[0].Description, want) {
		t.Errorf("the discovery command got %q", tools[0].Description)
	}
	if tools[0].Name != "say_it" {
		t.Errorf("registered as %q", tools[0].Name)
	}
	got, err := tools[0].Run(t.Context(), registry.Call{})
	if want := root + "|" + root + "|say it||1|say it"; err != nil || got.Text() != want {
		t.Errorf("the call command got %q, want %q, %v", got.Text(), want, err)
	}
}

// Variables are expanded only when the command runs, and their values are never
// shown.
func TestCommandIsExpandedWhenRunAndShownAsWritten(t *testing.T) {
	var expanded []string
	src := source(t, "echo '[{\"name\":\"a\"}]'", func(o *CommandOptions) {
		o.Call = settings.Command{Argv: []string{"/bin/echo", "--token=$TOKEN", "two words"}}
		o.Expand = func(c settings.Command) ([]string, error) {
			expanded = append(expanded, c.Argv[0])
			argv := make([]string, len(c.Argv))
			for i, w := range c.Argv {
				argv[i] = strings.ReplaceAll(w, "$TOKEN", "hunter2")
			}
			return argv, nil
		}
	})
	tools, _, err := src.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"./discover.sh"}, expanded); diff != "" {
		t.Errorf("expanded before a call (-want +got):\n%s", diff)
	}
	if !strings.Contains(tools[0].Description, "`/bin/echo --token=$TOKEN 'two words' a`") {
		t.Errorf("description %q", tools[0].Description)
	}
	if got, want := string(tools[0].Identity), `{"discovery":["./discover.sh"],"call":["/bin/echo","--token=$TOKEN","two words"]}`; got != want {
		t.Errorf("identity %s, want %s", got, want)
	}
	got, err := tools[0].Run(t.Context(), registry.Call{})
	if err != nil || got.Text() != "--token=hunter2 two words a\n" {
		t.Errorf("result %q, %v", got.Text(), err)
	}
}

func TestToolsWithoutCallCommandAreListed(t *testing.T) {
	src := source(t, `echo '[{"name":"a"}]'`, func(o *CommandOptions) { o.Call = settings.Command{} })
	tools, diags, err := src.Discover(t.Context())
	if err != nil || len(tools) != 1 || len(diags) != 1 || diags[0].Code != "no_call_command" {
		t.Fatalf("tools %v, diagnostics %v, %v", tools, diags, err)
	}
	if strings.Contains(tools[0].Description, "When called, this tool will execute") {
		t.Errorf("the description promises a call: %q", tools[0].Description)
	}
	_, err = tools[0].Run(t.Context(), registry.Call{})
	if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "toolCallCommand") {
		t.Errorf("error %v", err)
	}
}

func TestCallWithAnUnsetVariable(t *testing.T) {
	src := source(t, `echo '[{"name":"a"}]'`, func(o *CommandOptions) {
		o.Expand = func(c settings.Command) ([]string, error) {
			if c.Argv[0] == "./call.sh" {
				return nil, errors.New("variable TOKEN is not set")
			}
			return c.Argv, nil
		}
	})
	tools, _, err := src.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tools[0].Run(t.Context(), registry.Call{})
	if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "variable TOKEN is not set") ||
		!strings.Contains(err.Error(), "toolCallCommand, settings.yaml:3") {
		t.Errorf("error %v", err)
	}
}

// callable discovers one tool, with the script as the call command.
func callable(t *testing.T, declared, script string, tune func(*CommandOptions)) registry.Tool {
	t.Helper()
	src := source(t, "echo '["+declared+"]'", func(o *CommandOptions) {
		writeFile(t, o.ProjectRoot, "call.sh", "#!/bin/sh\n"+script)
		if tune != nil {
			tune(o)
		}
	})
	tools, _, err := src.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tools[0]
}

// call makes a call and fails the test if it returns an error.
func call(t *testing.T, ctx context.Context, tool registry.Tool, c registry.Call) registry.Result {
	t.Helper()
	got, err := tool.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCanceledCall(t *testing.T) {
	cause := errors.New("the person pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	tool := callable(t, `{"name":"a","canUpdateOutput":true}`, "echo partial; exec sleep 600", nil)
	got := call(t, ctx, tool, registry.Call{Emit: func(registry.Content) { cancel(cause) }})
	const want = "Stdout: partial\n\nStderr: (empty)\nError: the person pressed a key\nExit Code: (none)\nSignal: SIGTERM"
	if !got.IsError || got.ErrorCategory != registry.ErrorCancellation || got.Text() != want {
		t.Errorf("category %q, text %q", got.ErrorCategory, got.Text())
	}
}

func TestCallTimeout(t *testing.T) {
	tool := callable(t, `{"name":"a"}`, "exec sleep 600", nil)
	for _, limit := range []time.Duration{0, 200 * time.Millisecond} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("time limit reached"))
		got := call(t, ctx, tool, registry.Call{})
		cancel()
		if !got.IsError || got.ErrorCategory != registry.ErrorTimeout ||
			!strings.Contains(got.Text(), "Error: time limit reached\nExit Code: (none)\n") {
			t.Errorf("category %q, text %q", got.ErrorCategory, got.Text())
		}
	}
}

func TestCallIsKilledAtItsOutputLimit(t *testing.T) {
	got := call(t, t.Context(), callable(t, `{"name":"a"}`, "yes", func(o *CommandOptions) { o.Limits.Output = 10 }), registry.Call{})
	want := "Stdout: y\ny\ny\ny\ny\n\nStderr: (empty)\nError: output limit reached: more than 10 bytes on stdout or stderr (limits.result)\nExit Code: (none)\nSignal: SIGKILL"
	if !got.IsError || got.ErrorCategory != registry.ErrorExecution || got.Text() != want {
		t.Errorf("category %q, text %q", got.ErrorCategory, got.Text())
	}
}

func TestCallCommandMayIgnoreStdin(t *testing.T) {
	params := json.RawMessage(`{"s":"` + strings.Repeat("x", 4<<20) + `"}`)
	got := call(t, t.Context(), callable(t, `{"name":"a"}`, "echo ok", nil), registry.Call{Params: params})
	if got.IsError || got.Text() != "ok\n" {
		t.Errorf("result %.100q", got.Text())
	}
}

// Output of tools that declare canUpdateOutput is passed on as it arrives, in
// complete characters, and is complete in the result.
func TestCallStreams(t *testing.T) {
	const script = `printf 'a\360\237'; printf noise >&2; sleep 0.1; printf '\230\200b'; printf '\342\202'`
	for _, declares := range []bool{true, false} {
		var streamed []string
		tool := callable(t, fmt.Sprintf(`{"name":"a","canUpdateOutput":%v}`, declares), script, nil)
		got := call(t, t.Context(), tool, registry.Call{Emit: func(c registry.Content) { streamed = append(streamed, c.Text) }})
		if !strings.HasPrefix(got.Text(), "Stdout: a\U0001F600b\uFFFD\nStderr: noise\n") {
			t.Errorf("result %q", got.Text())
		}
		want := ""
		if declares {
			want = "a\U0001F600b"
		}
		if s := strings.Join(streamed, ""); s != want {
			t.Errorf("streamed %q, want %q", streamed, want)
		}
	}
}

// If a program prints more than is kept, only the beginning and the end of each
// stream stay in memory, and an image that is cut is only described. Output that is
// parsed as a whole is never cut.
func TestCallKeepsHeadAndTail(t *testing.T) {
	for name, tt := range map[string]struct{ tool, script, want, spilled string }{
		"text":      {`{"name":"a"}`, `printf 0123456789`, "01\n[… 6 of 10 bytes cut here …]\n89", "0123456789"},
		"it fits":   {`{"name":"a"}`, `printf 0123`, "0123", "0123"},
		"a failure": {`{"name":"a"}`, `printf 0123456789; exit 1`, "Stdout: 01\n[… 6 of 10 bytes cut here …]\n89\nStderr: (empty)", "0123456789"},
		"stderr":    {`{"name":"a"}`, `printf 0123456789 >&2`, "Stdout: (empty)\nStderr: 01\n[… 6 of 10 bytes cut here …]\n89", "0123456789"},
		"a picture": {`{"name":"a"}`, `printf 'GIF87a\0\0\0\0\0\0\0\0'`, "[image/gif, 14 bytes]", "GIF87a\x00\x00\x00\x00\x00\x00\x00\x00"},
		"a result":  {`{"name":"a","output":"result"}`, `printf '{"llmContent":"long enough"}'`, "long enough", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var spilled []byte
			keep := int64(4)
			if name == "a picture" {
				keep = 12
			}
			got := call(t, t.Context(), callable(t, tt.tool, tt.script, nil), registry.Call{Keep: keep, Spill: func(p []byte) { spilled = append(spilled, p...) }})
			if !strings.HasPrefix(got.Text(), tt.want) || string(spilled) != tt.spilled || got.Truncated != (int64(len(tt.spilled)) > keep) {
				t.Errorf("result %q, truncated %v, spilled %q", got.Text(), got.Truncated, spilled)
			}
		})
	}
}

// A process that a call left running holds its stdout open. The call must not wait
// for it, and must kill it.
func TestCallKillsLeftoverProcesses(t *testing.T) {
	got := call(t, t.Context(), callable(t, `{"name":"a"}`, "sleep 600 & echo $!", nil), registry.Call{})
	var pid int
	if _, err := fmt.Sscan(got.Text(), &pid); err != nil {
		t.Fatalf("%q: %v", got.Text(), err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("sleep is still running: %s", stat)
	}
}

func TestSourceName(t *testing.T) {
	if got := newCommand(CommandOptions{}).Name(); got != "command" {
		t.Errorf("name %q", got)
	}
	_, _, err := newCommand(CommandOptions{}).Discover(t.Context())
	if !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "no command is set") {
		t.Errorf("without a command: %v", err)
	}
}

func TestAsWritten(t *testing.T) {
	for want, cmd := range map[string]settings.Command{
		`npm run "x y"`:                         {Argv: []string{"npm", "run", "x y"}, Line: `npm run "x y"`},
		`a 'b c' '' 'it'\''s' $HOME 'x|y' 'e;'`: {Argv: []string{"a", "b c", "", "it's", "$HOME", "x|y", "e;"}},
	} {
		if got := newCommand(CommandOptions{}).(*command).asWritten(cmd); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if words, err := process.Split(want); err != nil || !cmp.Equal(words, cmd.Argv) {
			t.Errorf("%q splits into %q, %v", want, words, err)
		}
	}
}
