package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// inputs is a client that answers the questions in results.
type inputs struct {
	caller.Silent
	answer func() json.RawMessage
}

func (inputs) TakesInput() bool { return true }
func (f inputs) Input(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return f.answer(), nil
}

// earlier is a client that has answered the server "test" in an earlier run.
type earlier struct {
	caller.Silent
	answer string
}

func (a earlier) Answered(server string) (json.RawMessage, int, error) {
	if server != "test" {
		return nil, 0, errors.New("server " + server)
	}
	return json.RawMessage(a.answer), 1, nil
}

// The answers of a client, given during the call or in an earlier run of it, reach
// the server, and the result is marked as not cacheable.
func TestAnswersOfClients(t *testing.T) {
	s := source(t, stdioServer(t, "--dialogs"))
	tools, _ := discovered(t, s)
	const answer = `"inputResponses":{"it":{"action":"accept","content":{"who":"me"}}}`
	asked := 0
	during := &caller.Caller{Peer: inputs{answer: func() json.RawMessage {
		asked++
		return json.RawMessage(answer)
	}}}
	before := &caller.Caller{Peer: earlier{answer: answer}}
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
