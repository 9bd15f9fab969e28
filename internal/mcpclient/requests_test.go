package mcpclient

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
)

// TestBusyServersAreGivenTime checks that a server that asks for no input gets more time
// with each round, for requests of the user and of clients.
func TestBusyServersAreGivenTime(t *testing.T) {
	of := &caller.Caller{Peer: inputs{answer: func() json.RawMessage { return json.RawMessage(`"inputResponses":{}`) }}}
	for name, who := range map[string]*caller.Caller{"command line": nil, "client": of} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, start := caller.With(t.Context(), who), time.Now()
				r := &request{asked: ask.NewRequest(ctx, "tool x")}
				if _, err := New(Options{}).requests.inputs(ctx, r, json.RawMessage(`{"resultType":"input_required"}`), 2); err != nil {
					t.Error(err)
				}
				if waited := time.Since(start); waited != 3*busyPause || r.asked.Asked() {
					t.Errorf("waited %s, asked %v", waited, r.asked.Asked())
				}
			})
		})
	}
}
