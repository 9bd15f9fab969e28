package confine

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// What a server left in the workspace is looked at after its end, even if the settings have been
// read again since its start.
func TestServersOutliveTheirRun(t *testing.T) {
	var warned []registry.Diagnostic
	c, _, workspace := place(t, "sandbox: {mode: auto}", full, func(o *Options) { o.Warn = func(d registry.Diagnostic) { warned = append(warned, d) } })
	after, err := c.Programs(Server("s"))(t.Context(), &process.Spec{Argv: []string{"true"}, Dir: workspace})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	planted := workspace + "/.git/hooks/pre-commit"
	if err := os.MkdirAll(workspace+"/.git/hooks", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(planted, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	after()
	if len(warned) != 1 || warned[0].Code != "sandbox_kept" || !strings.Contains(warned[0].Message, ".git/hooks") {
		t.Errorf("a hook that appeared while the server ran: %+v", warned)
	}
}

// The workspace is held as long as a program runs, and not longer.
func TestWorkspaceIsReleasedWithTheLastProgram(t *testing.T) {
	c, _, workspace := place(t, "sandbox: {mode: auto}", full)
	start := func(ctx context.Context) (after func(), err error) {
		return c.Programs(Server("s"))(ctx, &process.Spec{Argv: []string{"true"}, Dir: workspace})
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := start(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that is canceled: %v", err)
	}
	var ends []func()
	for range 2 {
		after, err := start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, after)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		after, err := start(t.Context())
		if err != nil {
			t.Fatalf("while a program runs: %v", err)
		}
		after()
		end()
	}
	if _, err := start(t.Context()); err == nil {
		t.Error("the workspace is still open")
	}
}

func TestSameConfinement(t *testing.T) {
	const text = "sandbox: {mode: auto, servers: {s: {read: [a]}}}"
	c, _, _ := place(t, text, full)
	for other, want := range map[string]bool{
		"# moved\n" + text: true,
		"sandbox: {mode: auto, servers: {s: {read: [b]}}}":    false,
		"sandbox: {mode: require, servers: {s: {read: [a]}}}": false,
		"sandbox: {mode: auto}":                               false,
	} {
		if d, _, _ := place(t, other, full); c.Same(Server("s"), d) != want {
			t.Errorf("%s: same is %v, want %v", other, !want, want)
		}
	}
}
