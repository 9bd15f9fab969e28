package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/timing"
)

// requester sends requests for users and clients, and answers the server's questions
// meanwhile.
type requester struct {
	opts  *Options
	asker *ask.Handler
	pool  *pool
}

// request is one request of a user or a client, during which the server may ask. It is sent
// again with the answers.
type request struct {
	method   string
	name     string // of the tool or prompt, or the URI of the resource, "" for none
	params   any    // encoded as a JSON object
	headers  http.Header
	progress func(registry.Progress) // may be nil

	detach   func(registry.RemoteTask) error // see [registry.Call]
	detached bool                            // it was called

	asked *ask.Request
	input json.RawMessage // members to add to the params: the input that the server asked for
}

func withMembers(object, members json.RawMessage) json.RawMessage {
	if len(members) == 0 || string(object) == "{}" {
		return object
	}
	return slices.Concat(bytes.TrimSuffix(object, []byte("}")), []byte(","), members, []byte("}"))
}

// addAnswers adds the answers of an earlier run of the call to a request, and returns
// how often the server had asked by then.
func addAnswers(server string, r *request) (rounds int, err error) {
	members, rounds, err := r.asked.Peer().Answered(server)
	if len(members) > 0 {
		r.asked.MarkAsked()
		r.input = members
	}
	return rounds, err
}

// inputs provides the input that a modern server asks for. A server that asks for none
// is busy, and gets the request again after a pause.
func (q *requester) inputs(ctx context.Context, r *request, raw json.RawMessage, round int) (json.RawMessage, error) {
	asks := false
	for range jsonx.Members(jsonx.Get(raw, "inputRequests")) {
		asks = true
		break
	}
	if !asks {
		_ = timing.Pause(ctx, time.Duration(round+1)*busyPause)
	}
	if peer := r.asked.Peer(); peer.TakesInput() {
		if asks {
			r.asked.MarkAsked()
		}
		return peer.Input(ctx, q.opts.Server.Name, raw)
	}
	return q.asker.Inputs(ctx, r.asked, raw)
}

// busyPause is how long to wait for a busy server, multiplied by the round.
const busyPause = 100 * time.Millisecond
