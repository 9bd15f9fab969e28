//go:build unix

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	sh := func(script string) Spec { return Spec{Argv: []string{"sh", "-c", script}, Env: os.Environ()} }
	t.Run("an early failure is reported", func(t *testing.T) {
		if err := Open(t.Context(), sh("exit 3"), time.Minute); err == nil || err.Error() != "sh failed (exit status 3)" {
			t.Errorf("%v", err)
		}
	})
	t.Run("a successful exit ends the watch", func(t *testing.T) {
		start := time.Now()
		if err := Open(t.Context(), sh("true"), time.Minute); err != nil || time.Since(start) > 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
	t.Run("a running program is left running", func(t *testing.T) {
		dir := t.TempDir()
		goOn, done := filepath.Join(dir, "go"), filepath.Join(dir, "done")
		for _, pipe := range []string{goOn, done} {
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := Open(t.Context(), sh("read -r word <"+goOn+"; echo $word >"+done), time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goOn, []byte("over\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if word, err := os.ReadFile(done); err != nil || string(word) != "over\n" {
			t.Errorf("%q, %v", word, err)
		}
	})
	t.Run("the cause of the context", func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Open(ctx, sh("read -r word <"+pipe), time.Minute); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		if err := os.WriteFile(pipe, nil, 0o600); err != nil { // lets it exit
			t.Error(err)
		}
	})
	t.Run("none", func(t *testing.T) {
		var start *StartError
		if err := Open(t.Context(), Spec{Argv: []string{"no-such-program"}, Env: os.Environ()}, time.Minute); !errors.As(err, &start) {
			t.Errorf("%v", err)
		}
	})
}
