//go:build unix

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOpen(t *testing.T) {
	sh := func(script string) Spec { return Spec{Argv: []string{"sh", "-c", script}, Env: os.Environ()} }
	t.Run("one that fails soon is told of", func(t *testing.T) {
		if err := Open(t.Context(), sh("exit 3"), time.Minute); err == nil || err.Error() != "sh failed (exit status 3)" {
			t.Errorf("%v", err)
		}
	})
	t.Run("one that ends well is not waited for", func(t *testing.T) {
		start := time.Now()
		if err := Open(t.Context(), sh("true"), time.Minute); err != nil || time.Since(start) > 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
	t.Run("one that stays goes on without us", func(t *testing.T) {
		dir := t.TempDir()
		begun, goOn, done := filepath.Join(dir, "begun"), filepath.Join(dir, "go"), filepath.Join(dir, "done")
		script := "touch " + begun + "; while ! [ -e " + goOn + " ]; do sleep 0.02; done; touch " + done
		if err := Open(t.Context(), sh(script), time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goOn, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(done); err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("it never got to its end")
			}
		}
	})
	t.Run("the cause of the context", func(t *testing.T) {
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if err := Open(ctx, sh("sleep 1"), time.Minute); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		var start *StartError
		if err := Open(t.Context(), Spec{Argv: []string{"no-such-program"}, Env: os.Environ()}, time.Minute); !errors.As(err, &start) {
			t.Errorf("%v", err)
		}
	})
}
