package web

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

func TestFetchProcessor(t *testing.T) {
	s, opts := serving(t, map[string][2]string{
		"/":    {"text/html", "<h1>Title</h1>"},
		"/png": {"image/png", "\x89PNG\r\n\x1a\n"},
	})
	opts.ProcessorEnv = []string{"PATH=" + os.Getenv("PATH")}
	opts.ProcessorDir = t.TempDir()
	ask := func(path string, argv ...string) (string, bool) {
		t.Helper()
		opts.Processor = func() ([]string, error) { return argv, nil }
		r := fetch(t, opts, s.URL+path, `,"prompt":"what \"is\" it?"`)
		return r.Text(), r.IsError
	}
	if text, failed := ask("/", "cat"); failed || text != `{"url":"`+s.URL+`/","prompt":"what \"is\" it?","content":"# Title"}` {
		t.Errorf("input of the program: %s", text)
	}
	if text, failed := ask("/", "pwd"); failed || !strings.HasSuffix(text, opts.ProcessorDir) {
		t.Errorf("folder of the program: %s", text)
	}
	if text, failed := ask("/", "sh", "-c", "echo why >&2; echo answer; exit 3"); !failed || !strings.Contains(text, "exit code 3\nwhy\n") || strings.Contains(text, "answer") {
		t.Errorf("failing: %s", text)
	}
	if text, failed := ask("/", "no-such-program"); !failed || !strings.Contains(text, `"no-such-program"`) {
		t.Errorf("missing: %s", text)
	}
	if text, failed := ask("/", "sh", "-c", "kill -9 $$"); !failed || !strings.Contains(text, "SIGKILL") {
		t.Errorf("killed: %s", text)
	}
	if text, failed := ask("/"); failed || !strings.HasPrefix(text, "[the setting fetch.processor is not set") || !strings.HasSuffix(text, "# Title") {
		t.Errorf("without a program: %s", text)
	}
	if text, failed := ask("/png", "cat"); failed || !strings.Contains(text, "is not text, so the prompt was not applied") {
		t.Errorf("an image: %s", text)
	}
	if text, failed := ask("/missing", "cat"); !failed || strings.Contains(text, "prompt") {
		t.Errorf("a missing page: %s", text)
	}
	opts.Processor = func() ([]string, error) { return nil, errors.New("variable X is not set") }
	if r := fetch(t, opts, s.URL, `,"prompt":"x"`); !r.IsError || !strings.Contains(r.Text(), "variable X") {
		t.Error(r.Text())
	}
}

func TestFetchProcessorIsCancelled(t *testing.T) {
	s, opts := serving(t, map[string][2]string{"/": {"text/plain", "x"}})
	opts.ProcessorEnv = []string{"PATH=" + os.Getenv("PATH")}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	opts.Processor = func() ([]string, error) {
		go cancel(enough)
		return []string{"sleep", "600"}, nil
	}
	tool := NewFetch(opts)
	if _, err := tool.Run(ctx, tooltest.Call(`{"url":"`+s.URL+`","prompt":"x"}`)); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}
