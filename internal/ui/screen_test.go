package ui

import (
	"bytes"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// Text that is logged during a question is written after it, so that the question
// remains the last text on the terminal.
func TestLogWaitsForTheQuestion(t *testing.T) {
	var stderr bytes.Buffer
	s := NewScreen(NewWriter(&stderr))
	log := slog.New(slog.NewTextHandler(s, nil))
	release := s.Hold()
	log.Info("early")
	if stderr.Len() > 0 {
		t.Errorf("during the question: %s", stderr.String())
	}
	release()
	if !bytes.Contains(stderr.Bytes(), []byte("msg=early\n")) {
		t.Errorf("after the question: %q", stderr.String())
	}
}

// A question that is never answered, because its call was interrupted, keeps back no
// output.
func TestCloseWithoutAnAnswer(t *testing.T) {
	var stderr, stdout bytes.Buffer
	s := NewScreen(NewWriter(&stderr))
	results := s.Results(&stdout)
	release := s.Hold()
	s.Note("before\n")
	_, _ = results.Write([]byte("result\n"))
	s.Close()
	s.Note("interrupted\n")
	_, _ = results.Write([]byte("more\n"))
	release()
	if got, want := stderr.String()+stdout.String(), "before\ninterrupted\nresult\nmore\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
}

// A question stays on the terminal while the work that asks it reports progress, also
// if there was work within that work before, or there is other work meanwhile.
func TestQuestionStaysBelowProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var scr screen
		s := NewScreen(NewWriter(&scr))
		s.Live(true)
		show := func(when, want string) {
			t.Helper()
			<-time.After(300 * time.Millisecond)
			synctest.Wait()
			if diff := cmp.Diff(want, scr.text()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		progress, done := s.Progress("script", "")
		progress(registry.Progress{Done: 1, Message: "read_file"})
		loaded := s.Watch()
		s.Line("github", "connecting")
		show("within", "script: 1 read_file\ngithub: connecting\n")
		s.Line("github", "")
		loaded()
		show("after it", "script: 1 read_file\n")
		release := s.Hold()
		_, _ = scr.Write([]byte("Run it? "))
		progress(registry.Progress{Done: 2, Message: "write_file"})
		other := s.Watch()
		s.Line("gitlab", "connecting")
		show("during the question", "Run it? ")
		_, _ = scr.Write([]byte("y\n"))
		release()
		show("after the question", "Run it? y\nscript: 2 write_file (1 s)\ngitlab: connecting (1 s)\n")
		done()
		show("after the script", "Run it? y\ngitlab: connecting (1 s)\n")
		other()
		show("at the end", "Run it? y\n")
		defer s.Hold()()
		_, done = s.Progress("late", "")
		defer done()
		show("work during a question", "Run it? y\n")
	})
}

// Without live lines a wait is told once, by what began last.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScreen(NewWriter(io.Discard))
		var told []string
		s.Slow(SlowTime, func(waiting string) { told = append(told, waiting) })
		pass := func(d time.Duration, want ...string) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
		}
		_, done := s.Progress("quick", "builtin")
		pass(SlowTime - time.Millisecond)
		done()
		pass(SlowTime)
		_, done = s.Progress("hi", "mcp:slow")
		defer done()
		loaded := s.Watch()
		s.Line("other", "connecting")
		s.Line("other", "listing")
		s.Line("quick", "connecting")
		pass(SlowTime / 2)
		s.Line("quick", "")
		pass(SlowTime, "other (listing)")
		s.Line("other", "")
		loaded()
		s.Line("later", "connecting")
		pass(2*SlowTime, "other (listing)")
	})
}
