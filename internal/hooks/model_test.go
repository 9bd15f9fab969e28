package hooks

import (
	"errors"
	"testing"
)

// A model learns the reason that a hook gives and whether the call ran, not why a hook failed.
func TestDeniedForModel(t *testing.T) {
	for _, tt := range []struct {
		err  Denied
		want string
	}{
		{Denied{}, "This call is not allowed, so it was not run. Do not repeat it; find another way."},
		{Denied{Reason: "use staging"}, "This call is not allowed, so it was not run. The reason given: use staging\nDo not repeat it; find another way."},
		{Denied{Hook: "/home/me/hook", Err: errors.New("no file")}, "This call is not allowed, so it was not run. Do not repeat it; find another way."},
		{Denied{Ran: true}, "The call has run, but its result is withheld. Do not repeat the call."},
		{Denied{Ran: true, Reason: "a key"}, "The call has run, but its result is withheld. The reason given: a key\nDo not repeat the call."},
	} {
		if got := tt.err.ForModel(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
