package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("TERMINAL_TEST_OPEN") != "" { // see TestNoTerminal
		_, err := OpenTTY()
		fmt.Print(err)
		return
	}
	goleak.VerifyTestMain(m)
}

// TestNoTerminal opens the terminal in a process that has none.
func TestNoTerminal(t *testing.T) {
	out, err := process.Run(t.Context(), process.Spec{Argv: []string{os.Args[0]}, Env: []string{"TERMINAL_TEST_OPEN=1"}})
	if err != nil || !strings.HasPrefix(string(out.Stdout), "opening the terminal: open /dev/tty") {
		t.Errorf("%s %s, %v", out.Stdout, out.Stderr, err)
	}
}

// TestStoppedTerminal cancels a question that cannot be written because the person
// pressed Ctrl-S.
func TestStoppedTerminal(t *testing.T) {
	p := newPTY(t)
	p.typed("\x13")
	q := question()
	q.Preview.Prompt = strings.Repeat("x", 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	p.tty.Before = func() func() { cancel(); return nil }
	got := confirm(ctx, &Confirmer{p.tty}, q)
	if o := <-got; !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
}

type outcome struct {
	answer exec.Answer
	err    error
}

// confirm asks the question in the background.
func confirm(ctx context.Context, c *Confirmer, q exec.Question) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		a, err := c.Confirm(ctx, q)
		out <- outcome{a, err}
	}()
	return out
}

func TestAnswers(t *testing.T) {
	all := []exec.Choice{exec.Yes, exec.AlwaysTool, exec.AlwaysServer, exec.Edit, exec.No}
	one := []exec.Choice{exec.Yes, exec.Always, exec.Edit, exec.No}
	both := []exec.Choice{exec.Yes, exec.Always, exec.AlwaysOutside, exec.No}
	few := []exec.Choice{exec.Yes, exec.No}
	for _, tt := range []struct {
		typed   []string
		choices []exec.Choice
		want    exec.Choice
		reason  string
	}{
		{[]string{"y\n"}, all, exec.Yes, ""},
		{[]string{"YES\n"}, all, exec.Yes, ""},
		{[]string{"  y  \n"}, all, exec.Yes, ""},
		{[]string{"a\n"}, one, exec.Always, ""},
		{[]string{"a\n"}, all, exec.AlwaysTool, ""},
		{[]string{"always\n"}, all, exec.AlwaysTool, ""},
		{[]string{"a\n"}, both, exec.Always, ""},
		{[]string{"A\n"}, both, exec.AlwaysOutside, ""},
		{[]string{"ALWAYS\n"}, both, exec.Always, ""},
		{[]string{"A\n"}, one, exec.Always, ""},
		{[]string{"s\n"}, all, exec.AlwaysServer, ""},
		{[]string{"t\n"}, all, exec.AlwaysTool, ""},
		{[]string{"n\n"}, all, exec.No, ""},
		{[]string{"\n"}, all, exec.No, ""},
		{[]string{"\x04"}, all, exec.No, "no answer (end of input)"},
		{[]string{"yes please\n", "y\n"}, all, exec.Yes, ""},
		{[]string{"a\n", "s\n", "e\n", "n\n"}, few, exec.No, ""},
		{[]string{"yy\n", "?\n", "\x7f1\n", "y\n"}, all, exec.Yes, ""},
		{[]string{"a\n", "y\n"}, few, exec.Yes, ""},
	} {
		t.Run(strings.Join(tt.typed, ""), func(t *testing.T) {
			p := newPTY(t)
			q := question(tt.choices...)
			got := confirm(t.Context(), &Confirmer{p.tty}, q)
			for i, s := range tt.typed {
				p.await("Allow? ", i+1)
				p.typed(s)
			}
			o := <-got
			if o.err != nil || o.answer.Choice != tt.want || !strings.Contains(o.answer.Reason, tt.reason) {
				t.Errorf("%+v, %v; want %s, %q", o.answer, o.err, tt.want, tt.reason)
			}
		})
	}
}

// Before is called before the question, and its result after the answer.
func TestBeforeAndAfter(t *testing.T) {
	p := newPTY(t)
	var steps []string
	p.tty.Before = func() func() {
		steps = append(steps, "before:"+p.output())
		return func() { steps = append(steps, "after") }
	}
	got := confirm(t.Context(), &Confirmer{p.tty}, question(exec.Yes, exec.No))
	p.await("Allow? ", 1)
	p.typed("y\n")
	if o := <-got; o.answer.Choice != exec.Yes || o.err != nil {
		t.Errorf("%+v", o)
	}
	if diff := cmp.Diff([]string{"before:", "after"}, steps); diff != "" {
		t.Error(diff)
	}
}

func TestPromptIsTheLastLine(t *testing.T) {
	for want, choices := range map[string][]exec.Choice{
		"Allow? [y]es, [a]lways, [v]iew, [n]o: ":         {exec.Yes, exec.Always, exec.No},
		"Allow? [y]es, [v]iew, [n]o: ":                   {exec.Yes, exec.No},
		"Allow? [y]es, [a]lways, [e]dit, [v]iew, [n]o: ": {exec.Yes, exec.Always, exec.Edit, exec.No},
		"Allow? [y]es, [t]ool, [s]erver, [v]iew, [n]o: ": {exec.Yes, exec.AlwaysTool, exec.AlwaysServer, exec.No},
	} {
		p := newPTY(t)
		got := confirm(t.Context(), &Confirmer{p.tty}, question(choices...))
		p.await("[n]o: ", 1)
		if lines := strings.Split(p.output(), "\n"); lines[len(lines)-1] != want {
			t.Errorf("last line %q, want %q", lines[len(lines)-1], want)
		}
		p.typed("n\n")
		<-got
	}
}

// TestTypeAhead types an answer before the question, which must be discarded.
func TestTypeAhead(t *testing.T) {
	p := newPTY(t)
	p.typedAhead("y\ny\ny\n")
	got := confirm(t.Context(), &Confirmer{p.tty}, question())
	p.await("Allow? ", 1)
	p.typed("n\n")
	if o := <-got; o.answer.Choice != exec.No || o.err != nil {
		t.Errorf("%+v", o)
	}
	if n := strings.Count(p.output(), "Allow? "); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestCancelledWhileAsking(t *testing.T) {
	interrupted := errors.New("interrupt")
	p := newPTY(t)
	c := &Confirmer{p.tty}
	ctx, cancel := context.WithCancelCause(t.Context())
	got := confirm(ctx, c, question())
	p.await("Allow? ", 1)
	cancel(interrupted)
	if o := <-got; !errors.Is(o.err, interrupted) || o.answer.Choice != exec.No {
		t.Errorf("%+v", o)
	}
	if out := p.output(); !strings.HasSuffix(out, "[n]o: ") && !strings.HasSuffix(out, "[n]o: \n") {
		t.Errorf("the screen ends with %q", out[max(0, len(out)-40):])
	}
	got = confirm(t.Context(), c, question()) // the terminal still works
	p.await("Allow? ", 2)
	p.typed("y\n")
	if o := <-got; o.err != nil || o.answer.Choice != exec.Yes {
		t.Errorf("afterwards: %+v", o)
	}
}

func TestTerminalGone(t *testing.T) {
	p := newPTY(t)
	got := confirm(t.Context(), &Confirmer{p.tty}, question())
	p.await("Allow? ", 1)
	if err := p.master.Close(); err != nil {
		t.Fatal(err)
	}
	if o := <-got; o.answer.Choice != exec.No {
		t.Errorf("%+v", o)
	}
}

func editor(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "my editor")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return "'" + file + "' --wait"
}

func TestEdit(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"changed":            {`sed -i s/old/new/ "$2"`, "an new line\n"},
		"emptied":            {`: > "$2"`, ""},
		"kept":               {`exit 0`, "an old line\n"},
		"private":            {`stat -c %a "$2" > out; stat -c %a "$(dirname "$2")" >> out; cat out > "$2"; rm out`, "600\n700\n"},
		"keeps the language": {`basename "$2" > "$2.x"; mv "$2.x" "$2"`, "content.go\n"},
		"gets its options":   {`echo "$1" > "$2"`, "--wait\n"},
		"has the terminal":   {`test -t 0 && test -t 1 && echo yes > "$2"`, "yes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("TMPDIR", t.TempDir())
			p := newPTY(t)
			q := question(exec.Yes, exec.Edit, exec.No)
			q.Preview = registry.Preview{Kind: registry.PreviewEdit, FileName: "../x/main.go", NewContent: "an old line\n"}
			p.tty.Editor = editor(t, tt.script)
			got := confirm(t.Context(), &Confirmer{p.tty}, q)
			p.await("Allow? ", 1)
			p.typed("e\n")
			o := <-got
			if diff := cmp.Diff(exec.Answer{Choice: exec.Edit, Content: tt.want}, o.answer); diff != "" || o.err != nil {
				t.Errorf("%s %v", diff, o.err)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "toolreg-edit-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestEditFails asks again and says why, and the terminal still works.
func TestEditFails(t *testing.T) {
	for name, tt := range map[string]struct{ editor, want string }{
		"ends with an error": {editor(t, "exit 3"), "exit status 3"},
		"is not there":       {"/nonexistent/editor", "no such file"},
		"is not in the path": {"no-such-editor", "set VISUAL or EDITOR"},
		"is no command":      {"vi | cat", "editor's command line"},
		"spoils the text":    {editor(t, `printf '\377' > "$2"`), "valid UTF-8"},
		"removes the file":   {editor(t, `rm "$2"`), "reading the edit"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPTY(t)
			q := question(exec.Yes, exec.Edit, exec.No)
			q.Preview = registry.Preview{Kind: registry.PreviewEdit, NewContent: "x"}
			p.tty.Editor = tt.editor
			got := confirm(t.Context(), &Confirmer{p.tty}, q)
			p.await("Allow? ", 1)
			p.typed("e\n")
			p.await("Allow? ", 2)
			p.typed("y\n")
			if o := <-got; o.err != nil || o.answer.Choice != exec.Yes {
				t.Errorf("%+v", o)
			}
			if !strings.Contains(p.output(), tt.want) {
				t.Errorf("no %q in %q", tt.want, p.output())
			}
		})
	}
}

func TestEditorIsStoppedByCancel(t *testing.T) {
	p := newPTY(t)
	q := question(exec.Yes, exec.Edit, exec.No)
	q.Preview = registry.Preview{Kind: registry.PreviewEdit, NewContent: "x"}
	ctx, cancel := context.WithCancel(t.Context())
	p.tty.Editor = editor(t, "echo waiting; exec sleep 600")
	got := confirm(ctx, &Confirmer{p.tty}, q)
	p.await("Allow? ", 1)
	p.typed("e\n")
	p.await("waiting", 1)
	cancel()
	if o := <-got; !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
}

func TestAsk(t *testing.T) {
	p := newPTY(t)
	got := make(chan string, 1)
	go func() {
		line, err := p.tty.Ask(t.Context(), "Trust it? ")
		got <- fmt.Sprint(line, err)
	}()
	p.await("Trust it? ", 1)
	p.typed("of course\n")
	if s := <-got; s != "of course<nil>" {
		t.Errorf("%q", s)
	}
}

func TestSize(t *testing.T) {
	p := newPTY(t)
	if c, r := p.tty.Size(); c != 80 || r != 24 {
		t.Errorf("%d by %d", c, r)
	}
	if c, r := size(os.Stdin); c < 0 || r < 0 {
		t.Errorf("%d by %d", c, r)
	}
}

func TestScanLine(t *testing.T) {
	for in, want := range map[string]string{"y\nrest": "y", "y\rrest": "y", " y \n": "y", strings.Repeat("a", 9000) + "\n": strings.Repeat("a", maxAnswer)} {
		if got, err := scanLine(strings.NewReader(in)); got != want || err != nil {
			t.Errorf("%.20q: %.20q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "y", "y\x03\n", "\x04", "y\x1a\n"} {
		if got, err := scanLine(strings.NewReader(in)); !errors.Is(err, io.EOF) || got != "" {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// TestQuestionIsRedrawnAfterStop stops and continues the process, as with Ctrl-Z and
// fg.
func TestQuestionIsRedrawnAfterStop(t *testing.T) {
	p := newPTY(t)
	got := confirm(t.Context(), &Confirmer{p.tty}, question())
	p.await("[n]o: ", 1)
	if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.await("Reason", 2)
	p.await("[n]o: ", 2)
	p.typed("y\n")
	if o := <-got; o.err != nil || o.answer.Choice != exec.Yes {
		t.Errorf("%+v", o)
	}
}
