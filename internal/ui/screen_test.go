package ui

import (
	"bytes"
	"log/slog"
	"testing"
)

// What is logged while a question stands comes after it, so that the question
// stays the last thing on the terminal.
func TestLogWaitsForTheQuestion(t *testing.T) {
	var stderr bytes.Buffer
	s := NewScreen(NewWriter(&stderr))
	log := slog.New(slog.NewTextHandler(s, nil))
	release := s.Hold()
	log.Info("early")
	if stderr.Len() > 0 {
		t.Errorf("beside the question: %s", stderr.String())
	}
	release()
	if !bytes.Contains(stderr.Bytes(), []byte("msg=early\n")) {
		t.Errorf("after the question: %q", stderr.String())
	}
}
