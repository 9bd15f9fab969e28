package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// systemFolders are what a program needs to start.
func systemFolders() []string { return []string{"/usr", "/bin", "/lib", "/lib64", "/sbin"} }

// confined returns a spec for a shell script in a sandbox that may write its
// working directory alone.
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
	t.Run("a signal is the end of the program, not an exit code", func(t *testing.T) {
		o, err := Run(t.Context(), confined(t, "kill -s USR1 $$"))
		if err != nil || o.ExitCode != -1 || o.Signal != "SIGUSR1" {
			t.Errorf("%v %+v", err, o)
		}
	})
	t.Run("what is not opened is not there", func(t *testing.T) {
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte("word"), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Run(t.Context(), confined(t, "cat "+secret+"; ls "+filepath.Dir(secret)))
		if err != nil || len(o.Stdout) > 0 || strings.Count(string(o.Stderr), "No such file") != 2 {
			t.Errorf("%v %q %q", err, o.Stdout, o.Stderr)
		}
	})
	t.Run("a program that the sandbox does not show", func(t *testing.T) {
		spec := confined(t, "")
		spec.Argv = []string{filepath.Join(t.TempDir(), "program")}
		if err := os.WriteFile(spec.Argv[0], []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var start *StartError
		if _, err := Run(t.Context(), spec); !errors.As(err, &start) || !strings.Contains(err.Error(), "the sandbox does not show") {
			t.Errorf("%v", err)
		}
	})
}
