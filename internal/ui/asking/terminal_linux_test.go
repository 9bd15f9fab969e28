package asking

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui/ttytest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStoppedTerminal cancels a question that cannot be written because the person
// pressed Ctrl-S.
func TestStoppedTerminal(t *testing.T) {
	p := ttytest.New(t)
	p.Typed("\x13")
	q := aQuestion()
	q.Preview.Prompt = strings.Repeat("x", 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	p.TTY.Before = func() func() { cancel(); return nil }
	got := confirm(ctx, &Terminal{TTY: p.TTY}, q)
	if o := <-got; !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
}

type outcome struct {
	answer exec.Answer
	err    error
}

// confirm asks the question in the background.
func confirm(ctx context.Context, c *Terminal, q exec.Question) <-chan outcome {
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
			p := ttytest.New(t)
			q := aQuestion(tt.choices...)
			got := confirm(t.Context(), &Terminal{TTY: p.TTY}, q)
			for i, s := range tt.typed {
				p.Await("Allow? ", i+1)
				p.Typed(s)
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
	p := ttytest.New(t)
	var steps []string
	p.TTY.Before = func() func() {
		steps = append(steps, "before:"+p.Output())
		return func() { steps = append(steps, "after") }
	}
	got := confirm(t.Context(), &Terminal{TTY: p.TTY}, aQuestion(exec.Yes, exec.No))
	p.Await("Allow? ", 1)
	p.Typed("y\n")
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
		p := ttytest.New(t)
		got := confirm(t.Context(), &Terminal{TTY: p.TTY}, aQuestion(choices...))
		p.Await("[n]o: ", 1)
		if lines := strings.Split(p.Output(), "\n"); lines[len(lines)-1] != want {
			t.Errorf("last line %q, want %q", lines[len(lines)-1], want)
		}
		p.Typed("n\n")
		<-got
	}
}

// TestTypeAhead types an answer before the question, which must be discarded.
func TestTypeAhead(t *testing.T) {
	p := ttytest.New(t)
	p.TypedAhead("y\ny\ny\n")
	got := confirm(t.Context(), &Terminal{TTY: p.TTY}, aQuestion())
	p.Await("Allow? ", 1)
	p.Typed("n\n")
	if o := <-got; o.answer.Choice != exec.No || o.err != nil {
		t.Errorf("%+v", o)
	}
	if n := strings.Count(p.Output(), "Allow? "); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestCancelledWhileAsking(t *testing.T) {
	interrupted := errors.New("interrupt")
	p := ttytest.New(t)
	c := &Terminal{TTY: p.TTY}
	ctx, cancel := context.WithCancelCause(t.Context())
	got := confirm(ctx, c, aQuestion())
	p.Await("Allow? ", 1)
	cancel(interrupted)
	if o := <-got; !errors.Is(o.err, interrupted) || o.answer.Choice != exec.No {
		t.Errorf("%+v", o)
	}
	if out := p.Output(); !strings.HasSuffix(out, "[n]o: ") && !strings.HasSuffix(out, "[n]o: \n") {
		t.Errorf("the screen ends with %q", out[max(0, len(out)-40):])
	}
	got = confirm(t.Context(), c, aQuestion()) // the terminal still works
	p.Await("Allow? ", 2)
	p.Typed("y\n")
	if o := <-got; o.err != nil || o.answer.Choice != exec.Yes {
		t.Errorf("afterwards: %+v", o)
	}
}

func TestTerminalGone(t *testing.T) {
	p := ttytest.New(t)
	got := confirm(t.Context(), &Terminal{TTY: p.TTY}, aQuestion())
	p.Await("Allow? ", 1)
	if err := p.Master.Close(); err != nil {
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
			p := ttytest.New(t)
			q := aQuestion(exec.Yes, exec.Edit, exec.No)
			q.Preview = registry.Preview{Kind: registry.PreviewEdit, FileName: "../x/main.go", NewContent: "an old line\n"}
			p.TTY.Editor = editor(t, tt.script)
			got := confirm(t.Context(), &Terminal{TTY: p.TTY}, q)
			p.Await("Allow? ", 1)
			p.Typed("e\n")
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
			p := ttytest.New(t)
			q := aQuestion(exec.Yes, exec.Edit, exec.No)
			q.Preview = registry.Preview{Kind: registry.PreviewEdit, NewContent: "x"}
			p.TTY.Editor = tt.editor
			got := confirm(t.Context(), &Terminal{TTY: p.TTY}, q)
			p.Await("Allow? ", 1)
			p.Typed("e\n")
			p.Await("Allow? ", 2)
			p.Typed("y\n")
			if o := <-got; o.err != nil || o.answer.Choice != exec.Yes {
				t.Errorf("%+v", o)
			}
			if !strings.Contains(p.Output(), tt.want) {
				t.Errorf("no %q in %q", tt.want, p.Output())
			}
		})
	}
}

func TestEditorIsStoppedByCancel(t *testing.T) {
	p := ttytest.New(t)
	q := aQuestion(exec.Yes, exec.Edit, exec.No)
	q.Preview = registry.Preview{Kind: registry.PreviewEdit, NewContent: "x"}
	ctx, cancel := context.WithCancel(t.Context())
	p.TTY.Editor = editor(t, "echo waiting; exec sleep 600")
	got := confirm(ctx, &Terminal{TTY: p.TTY}, q)
	p.Await("Allow? ", 1)
	p.Typed("e\n")
	p.Await("waiting", 1)
	cancel()
	if o := <-got; !errors.Is(o.err, context.Canceled) {
		t.Errorf("%+v", o)
	}
}

// TestQuestionIsRedrawnAfterStop stops and continues the process, as with Ctrl-Z and
// fg.
func TestQuestionIsRedrawnAfterStop(t *testing.T) {
	p := ttytest.New(t)
	got := confirm(t.Context(), &Terminal{TTY: p.TTY}, aQuestion())
	p.Await("[n]o: ", 1)
	if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.Await("Reason", 2)
	p.Await("[n]o: ", 2)
	p.Typed("y\n")
	if o := <-got; o.err != nil || o.answer.Choice != exec.Yes {
		t.Errorf("%+v", o)
	}
}
