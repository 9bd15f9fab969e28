package ui

import (
	"bytes"
	"log/slog"
	"testing"
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
