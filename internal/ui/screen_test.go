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
