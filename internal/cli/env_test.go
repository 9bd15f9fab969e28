package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
	"github.com/toolreg/toolreg/internal/ui"
)

// testEnv returns the environment of a command with its own home folder, and the buffer
// that receives its stderr.
func testEnv(t *testing.T, command string, environ ...string) (*Env, *bytes.Buffer) {
	t.Helper()
	var stderr bytes.Buffer
	home := t.TempDir()
	e := newEnv("", Streams{In: strings.NewReader(""), Out: ui.NewWriter(io.Discard), Err: ui.NewWriter(&stderr)},
		append([]string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state")}, environ...))
	e.Config.command = &cobra.Command{Use: command}
	(&cobra.Command{Use: "toolreg"}).AddCommand(e.Config.command)
	return e, &stderr
}

// Params are read from stdin only if nothing else provides them and stdin is not a
// terminal.
func TestParamsReadStdinLast(t *testing.T) {
	file := filepath.Join(t.TempDir(), "params.json")
	if err := os.WriteFile(file, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	takes := &registry.Tool{Definition: registry.Definition{Name: "t", InputSchema: []byte(`{"type":"object","properties":{"a":{}}}`)}}
	takesNone := &registry.Tool{Definition: registry.Definition{Name: "t", InputSchema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)}}
	for _, tt := range []struct {
		name     string
		o        ParamsOptions
		tool     *registry.Tool
		args     bool
		terminal bool
		want     string
		given    bool
	}{
		{"a pipe", ParamsOptions{}, takes, false, false, "stdin", true},
		{"the keyboard", ParamsOptions{}, takes, false, true, "", false},
		{"arguments and a pipe", ParamsOptions{}, takes, true, false, "", false},
		{"a tool that takes none", ParamsOptions{}, takesNone, false, false, "", false},
		{"--params", ParamsOptions{params: "{}"}, takes, true, false, "{}", true},
		{"--params-file", ParamsOptions{file: file}, takes, true, false, "file", true},
		{"--params-file -", ParamsOptions{file: "-"}, takes, true, true, "stdin", true},
	} {
		e, _ := testEnv(t, "call")
		e.IO.In, e.IO.InTTY = strings.NewReader("stdin"), tt.terminal
		data, given, err := e.Config.baseParams(t.Context(), &tt.o, tt.tool, tt.args)
		if err != nil || string(data) != tt.want || given != tt.given {
			t.Errorf("%s: %q, %t, %v; want %q, %t", tt.name, data, given, err, tt.want, tt.given)
		}
	}
	for _, tt := range []struct {
		o     ParamsOptions
		wrong bool
	}{{ParamsOptions{params: "{}"}, false}, {ParamsOptions{file: "-"}, false}, {ParamsOptions{params: "{}", file: "-"}, true}} {
		if err := tt.o.Check(); (err != nil) != tt.wrong {
			t.Errorf("%+v: %v", tt.o, err)
		}
	}
}

func TestNobodyCanBeAsked(t *testing.T) {
	for _, tt := range []struct {
		name           string
		nonInteractive bool
		environ        []string
		nobody         string
	}{
		{"a person", false, nil, ""},
		{"--non-interactive", true, nil, "--non-interactive is given"},
		{"a tool's run", false, []string{"TOOLREG_DEPTH=1"}, "inside a tool's run nobody can be asked"},
	} {
		e, _ := testEnv(t, "call", tt.environ...)
		e.Person.NonInteractive = tt.nonInteractive
		if got := e.Person.nobody(); got != tt.nobody {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.nobody)
		}
		if tt.nobody != "" && e.Person.Confirmer() != nil {
			t.Errorf("%s is asked", tt.name)
		}
	}
}

// Trust is offered only to a person who sees the question, not to a program that reads
// the output.
func TestTrustIsOfferedOnlyToAPerson(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		change        func(*Env)
		want          bool
	}{
		{"a listing at a terminal", "list", func(*Env) {}, true},
		{"a call", "call", func(*Env) {}, true},
		{"a command that must be silent", "serve", func(*Env) {}, false},
		{"stderr in a file", "list", func(e *Env) { e.IO.ErrTTY = false }, false},
		{"--non-interactive", "list", func(e *Env) { e.Person.NonInteractive = true }, false},
		{"--quiet", "list", func(e *Env) { e.IO.Quiet = true }, false},
		{"a tool's run", "list", func(e *Env) { e.IO.environ = append(e.IO.environ, "TOOLREG_DEPTH=1") }, false},
	} {
		e, _ := testEnv(t, tt.command)
		e.IO.ErrTTY = true
		tt.change(e)
		if got := e.Trust.mayOffer("toolreg " + tt.command); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// A refusal applies to exactly what was shown. Until the project changes, one line says
// that it is not loaded.
func TestRefusedTrustIsRemembered(t *testing.T) {
	e, _ := testEnv(t, "list")
	p := &settings.Project{Root: "/p", Hash: "1", Covered: []trust.File{{Name: "a.yaml", Path: "/p/a.yaml"}, {Name: "b.sh", Path: "/p/b.sh"}}}
	untrusted := registry.Diagnostic{Code: settings.CodeProjectUntrusted, Message: "m"}
	other := registry.Diagnostic{Code: "other", Message: "m"}
	diags := func() []registry.Diagnostic { return []registry.Diagnostic{untrusted, other} }
	if e.Trust.Declined(p) || len(e.Trust.withRefusal(p, diags())) != 2 {
		t.Error("reports a refusal before there was one")
	}
	e.Trust.saveRefusal(t.Context(), p, p.Hash)
	got := e.Trust.withRefusal(p, diags())
	if !e.Trust.Declined(p) || len(got) != 2 || got[0] != other || !strings.Contains(got[1].Message, "you declined to trust this project: a.yaml and 1 more file;") {
		t.Errorf("after a no: %t, %v", e.Trust.Declined(p), got)
	}
	changed, another, trusted := *p, *p, *p
	changed.Hash, another.Root, trusted.Trusted = "2", "/q", true
	if e.Trust.Declined(&changed) || e.Trust.Declined(&another) {
		t.Error("the refusal applies to other files or another project")
	}
	if got := e.Trust.withRefusal(&trusted, diags()); len(got) != 2 || got[0] != untrusted {
		t.Errorf("a project trusted by a flag: %v", got)
	}
	e.Trust.saveRefusal(t.Context(), p, "")
	if e.Trust.Declined(p) {
		t.Error("the refusal was not withdrawn")
	}
}

func TestDiagnosticsFollowVerboseAndQuiet(t *testing.T) {
	diags := []registry.Diagnostic{{Severity: "error", Code: "c", Message: "wrong"}, {Severity: "warning", Code: "c", Message: "odd"}, {Severity: "info", Code: "c", Message: "known"},
		{Severity: "error", Code: "c", Message: "wrong"}, {Severity: "error", Code: "c", Source: "mcp:s", Message: "wrong"}, {Severity: "error", Code: "c", Tool: "t", Message: "wrong"}}
	for _, tt := range []struct {
		globals   settings.Globals
		some, all string
	}{
		{settings.Globals{}, "wrong odd wrong wrong", "wrong odd known wrong wrong"},
		{settings.Globals{Verbose: true}, "wrong odd known wrong wrong", "wrong odd known wrong wrong"},
		{settings.Globals{Quiet: true}, "wrong wrong wrong", "wrong wrong wrong"},
	} {
		shown := func(diagnose func(*IO, []registry.Diagnostic)) string {
			e, stderr := testEnv(t, "list")
			e.IO.Quiet, e.IO.Verbose = tt.globals.Quiet, tt.globals.Verbose
			diagnose(e.IO, diags)
			var words []string
			for line := range strings.Lines(stderr.String()) {
				for _, word := range []string{"wrong", "odd", "known"} {
					if strings.Contains(line, word) {
						words = append(words, word)
					}
				}
			}
			return strings.Join(words, " ")
		}
		if got := shown((*IO).Diagnose); got != tt.some {
			t.Errorf("%+v: %q, want %q", tt.globals, got, tt.some)
		}
		if got := shown((*IO).DiagnoseAll); got != tt.all {
			t.Errorf("%+v, all: %q, want %q", tt.globals, got, tt.all)
		}
	}
}

// A summary is printed only if results and notes go to the same terminal.
func TestSummaryNeedsATerminal(t *testing.T) {
	for _, tt := range []struct{ out, err, quiet, want bool }{{true, true, false, true}, {false, true, false, false}, {true, false, false, false}, {true, true, true, false}} {
		e, _ := testEnv(t, "list")
		e.IO.OutTTY, e.IO.ErrTTY, e.IO.Quiet = tt.out, tt.err, tt.quiet
		if e.IO.Summary("%d tools", 3); e.IO.summary != map[bool]string{true: "3 tools"}[tt.want] {
			t.Errorf("%+v: %q", tt, e.IO.summary)
		}
	}
}

func TestFirstTimeIsTrueOnce(t *testing.T) {
	e, _ := testEnv(t, "list")
	if got := fmt.Sprint(e.Config.firstTime("a"), e.Config.firstTime("a"), e.Config.firstTime("b")); got != "true false true" {
		t.Error(got)
	}
}
