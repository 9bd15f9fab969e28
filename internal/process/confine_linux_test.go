package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// systemFolders returns the folders that a program needs to start.
func systemFolders() []string { return []string{"/usr", "/bin", "/lib", "/lib64", "/sbin"} }

// confined returns a spec for a shell script in a sandbox that can write only
// its working directory.
func confined(t *testing.T, script string) Spec {
	t.Helper()
	if support := sandbox.Probe(); !support.Full() {
		t.Skipf("this system cannot confine in full; missing: %s", strings.Join(support.Missing(), ", "))
	}
	dir := t.TempDir()
	return Spec{
		Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ(), Dir: dir,
		Confine: &sandbox.Profile{Read: systemFolders(), Write: []string{dir}},
	}
}

func TestConfinedRun(t *testing.T) {
	t.Run("output, exit code and files arrive", func(t *testing.T) {
		spec := confined(t, `echo out; echo err >&2; echo kept >file; read -r line; echo "$line"; exit 3`)
		spec.Stdin = []byte("given\n")
		o, err := Run(t.Context(), spec)
		if err != nil || string(o.Stdout) != "out\ngiven\n" || string(o.Stderr) != "err\n" || o.ExitCode != 3 || o.Signal != "" {
			t.Errorf("%v %+v", err, o)
		}
		if text, err := os.ReadFile(filepath.Join(spec.Dir, "file")); string(text) != "kept\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
	t.Run("a signal is reported, not an exit code", func(t *testing.T) {
		o, err := Run(t.Context(), confined(t, "kill -s USR1 $$"))
		if err != nil || o.ExitCode != -1 || o.Signal != "SIGUSR1" {
			t.Errorf("%v %+v", err, o)
		}
	})
	t.Run("unopened paths do not exist", func(t *testing.T) {
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte("word"), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Run(t.Context(), confined(t, "cat "+secret+"; ls "+filepath.Dir(secret)))
		if err != nil || len(o.Stdout) > 0 || strings.Count(string(o.Stderr), "No such file") != 2 {
			t.Errorf("%v %q %q", err, o.Stdout, o.Stderr)
		}
	})
	t.Run("a program that the sandbox hides", func(t *testing.T) {
		spec := confined(t, "")
		spec.Argv = []string{filepath.Join(t.TempDir(), "program")}
		if err := os.WriteFile(spec.Argv[0], []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var start *StartError
		if _, err := Run(t.Context(), spec); !errors.As(err, &start) || !strings.Contains(err.Error(), "the sandbox hides") {
			t.Errorf("%v", err)
		}
	})
}

func TestConfinedTermination(t *testing.T) {
	t.Run("the group gets SIGTERM, and later output arrives", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := confined(t, `trap 'echo ending; exit 5' TERM; echo ready; while :; do sleep 0.01; done`)
		spec.Grace = time.Minute
		spec.Output = func(_ int, p []byte) {
			if strings.Contains(string(p), "ready") {
				cancel()
			}
		}
		o, err := Run(ctx, spec)
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(string(o.Stdout), "ending\n") || o.ExitCode != 5 {
			t.Errorf("%v %+v", err, o)
		}
	})
	t.Run("a program that ignores SIGTERM is killed with its descendants", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		spec := confined(t, `trap '' TERM; (setsid sh -c 'trap "" TERM; echo daemon; while :; do sleep 1; done') & while :; do sleep 1; done`)
		spec.Output = func(_ int, p []byte) { cancel() }
		spec.Grace = time.Millisecond
		o, err := Run(ctx, spec)
		if !errors.Is(err, context.Canceled) || o.Signal != "SIGKILL" {
			t.Errorf("%v %+v", err, o)
		}
	})
	t.Run("later output of a grandchild arrives", func(t *testing.T) {
		spec := confined(t, `(read -r _ <go; echo late) & echo >go; exit 4`)
		if err := unix.Mkfifo(filepath.Join(spec.Dir, "go"), 0o600); err != nil {
			t.Fatal(err)
		}
		spec.Linger = time.Minute
		o, err := Run(t.Context(), spec)
		if err != nil || string(o.Stdout) != "late\n" || o.ExitCode != 4 {
			t.Errorf("%v %+v", err, o)
		}
	})
	t.Run("a daemon does not outlive the call", func(t *testing.T) {
		spec := confined(t, `mkfifo up; (setsid sh -c 'exec >/dev/null 2>&1 </dev/null; echo >up; exec sleep 1000') & read -r _ <up; readlink /proc/1/ns/pid /proc/self/ns/pid`)
		o, err := Run(t.Context(), spec)
		if err != nil || o.ExitCode != 0 && o.ExitCode != 1 {
			t.Errorf("%v %+v", err, o)
		}
		space, _, _ := strings.Cut(strings.TrimSpace(string(o.Stdout)), "\n")
		if !strings.HasPrefix(space, "pid:") {
			t.Fatalf("no process namespace in %q", o.Stdout)
		}
		namespaces, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
		for _, name := range namespaces {
			if to, _ := os.Readlink(name); to == space {
				t.Errorf("%s is still in the namespace of the call", name)
			}
		}
	})
}

func TestConfinedChild(t *testing.T) {
	spec := confined(t, `echo "noise" >&2; while read -r line; do echo "got $line"; done; exit 7`)
	c, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop(time.Minute, time.Minute)
	if _, err := io.WriteString(c.Stdin, "one\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c.Stdout).ReadString('\n')
	if line != "got one\n" {
		t.Errorf("%q, %v", line, err)
	}
	_ = c.Stdin.Close()
	<-c.Done()
	if c.Exit() != "exit status 7" || c.StderrTail() != "noise\n" {
		t.Errorf("%q %q", c.Exit(), c.StderrTail())
	}
}
