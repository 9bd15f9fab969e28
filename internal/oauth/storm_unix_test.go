//go:build unix

package oauth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

func (s *site) renewal(t *testing.T, stale string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "TOOLREG_TEST_RENEW="+s.dir, "TOOLREG_TEST_SERVER="+s.Resource, "TOOLREG_TEST_STALE="+stale, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// If the tokens of fifty processes expire at once, one process requests a new
// token, which revokes the old one, and the others use it.
func TestFiftyProcessesRenewOnce(t *testing.T) {
	s := newSite(t)
	c := s.client(t, nil)
	s.login(t, c)
	stale := held(t, c)
	s.Expire()
	var got [50]string
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			var errOut bytes.Buffer
			cmd := s.renewal(t, stale)
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %s", err, errOut.String())
			}
			got[i] = string(out)
		})
	}
	all.Wait()
	if n := s.Count("token refresh_token"); n != 1 {
		t.Errorf("%d renewals", n)
	}
	for _, token := range got {
		if token != got[0] || token == stale || !s.accepted(t, token) {
			t.Fatalf("tokens %q and %q", got[0], token)
		}
	}
}

// A process that is killed while the authorization server is working leaves the
// old login, and no lock.
func TestKilledRenewalLeavesTheOldLogin(t *testing.T) {
	s := newSite(t)
	c := s.client(t, nil)
	s.login(t, c)
	stale := held(t, c)
	s.Expire()
	asked, answer := make(chan struct{}), make(chan struct{})
	s.wrapped(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-answer })
	})
	before := s.files(t)
	cmd := s.renewal(t, stale)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	close(answer)
	s.wrapped(nil)
	if after := s.files(t); after != before {
		t.Errorf("the login was\n%s\nand is\n%s", before, after)
	}
	next := s.client(t, nil)
	again, err := next.Received(t.Context(), stale, http.StatusUnauthorized, nil)
	if err != nil || !again || !s.accepted(t, held(t, next)) {
		t.Errorf("the next run: %v, %v", again, err)
	}
}

// files returns the contents of the login files, each of which only the user
// can read.
func (s *site) files(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	text := ""
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
		text += string(data)
	}
	return text
}

// A renewal that the authorization server refuses ends the login for all
// processes, and is requested once.
func TestRefusedRenewalIsRequestedOnce(t *testing.T) {
	s := newSite(t)
	c := s.client(t, nil)
	s.login(t, c)
	stale := held(t, c)
	s.Expire()
	thief := s.client(t, nil)
	thief.loadRecord(t.Context())
	old := *thief.record
	if _, err := c.Received(t.Context(), stale, http.StatusUnauthorized, nil); err != nil {
		t.Fatal(err)
	}
	// If a thief uses the old refresh token, the whole login ends.
	if err := thief.update(t.Context(), func(*record) (*record, error) { return &old, nil }); err != nil {
		t.Fatal(err)
	}
	s.Expire()
	for range 3 {
		_, err := s.client(t, nil).Received(t.Context(), stale, http.StatusUnauthorized, nil)
		if !errors.Is(err, registry.ErrNeedsLogin) {
			t.Errorf("a login that has ended: %v", err)
		}
	}
	if n := s.Count("token refresh_token"); n != 2 {
		t.Errorf("%d renewals", n)
	}
}

// A run that is canceled allows a renewal in progress to finish within a short
// time, so that the new refresh token is not lost.
func TestRenewalOutlivesItsRunForAMoment(t *testing.T) {
	s := newSite(t)
	c := s.client(t, nil)
	s.login(t, c)
	stale := held(t, c)
	s.Expire()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	s.wrapped(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel(enough)
			h.ServeHTTP(w, r)
		})
	})
	if _, err := c.Received(ctx, stale, http.StatusUnauthorized, nil); err != nil {
		t.Fatal(err)
	}
	if token := held(t, s.client(t, nil)); token == stale || !s.accepted(t, token) {
		t.Error("what came after the signal was lost")
	}
	s.wrapped(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
	})
	stale = held(t, c)
	s.Expire()
	begun := time.Now()
	if _, err := c.Received(ctx, stale, http.StatusUnauthorized, nil); err == nil || time.Since(begun) > 2*renewalGrace {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}
