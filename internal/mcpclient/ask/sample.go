package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// codeRefusedByUser is the error code for a sampling request that the user
// refused (revision 2025-11-25, sampling).
const codeRefusedByUser = -1

// Sampling is a server's request to a model.
type Sampling struct {
	Server string
	During string          // our request during which it arrived, such as "tool echo"
	Params json.RawMessage // of sampling/createMessage, as sent
}

// DeclinedError is returned by [Callbacks.Sample] if the user refuses.
type DeclinedError struct {
	Said string // the user's reason, "" for none; not for the server
}

func (*DeclinedError) Error() string { return "the user does not allow it" }

// sample passes the server's request for a model (sampling/createMessage) to
// the Sample callback. The result is checked against the protocol and sent to
// the server unchanged.
func (h *Handler) sample(ctx context.Context, during *Request, params json.RawMessage) (json.RawMessage, error) {
	if h.opts.Sample == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "sampling is not available"}
	}
	if err := h.checkSampling(params); err != nil {
		return nil, h.refuseSampling(jsonrpc.CodeInvalidParams, err)
	}
	if err := during.allowSample(h.opts.MaxSamples); err != nil {
		return nil, h.refuseSampling(codeRefusedByUser, err)
	}
	result, err := h.opts.Sample(ctx, Sampling{Server: h.opts.Server, During: during.name, Params: params})
	if declined, ok := errors.AsType[*DeclinedError](err); ok {
		during.answered(Answer{Said: declined.Said})
	}
	if err != nil { // the callback has reported the refusal
		return nil, samplingError(codeRefusedByUser, err)
	}
	role, _ := jsonx.Text(jsonx.Get(result, "role"))
	if content := jsonx.Get(result, "content"); role == "" || jsonx.KindOf(content) != jsonx.Object || !json.Valid(result) {
		return nil, h.refuseSampling(jsonrpc.CodeInternalError, errors.New("the answer is not a message with a role and content"))
	}
	return result, nil
}

// checkSampling validates the params of a sampling request.
func (h *Handler) checkSampling(params json.RawMessage) error {
	switch messages, ok := jsonx.Elements(jsonx.Get(params, "messages")); {
	case !ok || len(messages) == 0:
		return errors.New("it has no messages")
	case int64(len(params)) > h.opts.MaxParams:
		return fmt.Errorf("it has %d bytes, but the limit is %d", len(params), h.opts.MaxParams)
	case !jsonx.IsNull(jsonx.Get(params, "tools")) || !jsonx.IsNull(jsonx.Get(params, "toolChoice")):
		// Only sampling without tools is advertised.
		return errors.New("it includes tools, which sampling.command does not support")
	}
	return nil
}

func (h *Handler) refuseSampling(code int64, err error) error {
	h.refuse("sampling request", err)
	return samplingError(code, err)
}

func samplingError(code int64, err error) error {
	return &jsonrpc.Error{Code: code, Message: "sampling was refused: " + err.Error()}
}
