package secret

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A server that refuses a request for good does not have the command that prints the credentials run each time.
func TestRefusedCredentialsAreReadOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, reads, printed := NewCurrent("old"), 0, "old"
		c.Reread(func(context.Context) (string, error) { reads++; return printed, nil })
		send := func(what string, status, want int) {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
			resp, err := c.Send(r, func(_ *http.Request, with string) (*http.Response, error) {
				w := httptest.NewRecorder()
				if w.WriteHeader(http.StatusForbidden); with == "new" {
					w = httptest.NewRecorder()
				}
				return w.Result(), nil
			})
			if err != nil || resp.StatusCode != status || reads != want {
				t.Errorf("%s: %v, %v, read %d times, want %d and %d", what, resp, err, reads, status, want)
			}
		}
		send("first", http.StatusForbidden, 1)
		printed = "new"
		send("at once", http.StatusForbidden, 1)
		time.Sleep(time.Minute)
		send("a minute later", http.StatusOK, 2)
	})
}
