package mcpclient

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// The answers of a client, given during the call or in an earlier run of it, reach
// the server, and the result is marked as not cacheable.
func TestAnswersOfClients(t *testing.T) {
	s := source(t, stdioServer(t, "--dialogs"))
	tools, _ := discovered(t, s)
	const answer = `"inputResponses":{"it":{"action":"accept","content":{"who":"me"}}}`
	asked := 0
	during := &caller.Caller{Input: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		asked++
		return json.RawMessage(answer), nil
	}}
	before := &caller.Caller{Answered: func(server string) (json.RawMessage, int, error) {
		if server != "test" {
			t.Errorf("server %q", server)
		}
		return json.RawMessage(answer), 1, nil
	}}
	for name, who := range map[string]*caller.Caller{"during the call": during, "in an earlier run": before} {
		r, err := tools["form"].Run(caller.With(t.Context(), who), registry.Call{Tool: "form", Params: json.RawMessage(`{"message":"m"}`)})
		if err != nil || r.Text() != `accept {"who":"me"}` || !r.Asked {
			t.Errorf("%s: %q, %v; marked: %v", name, r.Text(), err, r.Asked)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	r, err := tools["echo"].Run(t.Context(), registry.Call{Tool: "echo", Params: json.RawMessage(`{"text":"x"}`)})
	if err != nil || r.Asked {
		t.Errorf("without a question: %v; marked: %v", err, r.Asked)
	}
}
