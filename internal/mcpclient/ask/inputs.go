package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// InputError reports that a server asked for input that it does not get. The
// server is alive; only the request has failed.
type InputError struct{ Reason string }

// Error returns the reason.
func (e *InputError) Error() string { return e.Reason }

// WantsInput reports whether the result of a request asks for input, which a
// modern server may do (revision 2026-07-28, input_required).
func WantsInput(result json.RawMessage) bool {
	kind, ok := jsonx.Text(jsonx.Get(result, "resultType"))
	return ok && kind == "input_required"
}

// Inputs answers, in order, the input requests in a result for which
// [WantsInput] reports true. It returns the members to add to the params of the
// request before sending it again. The error is an *InputError.
func (h *Handler) Inputs(ctx context.Context, during *Request, result json.RawMessage) (json.RawMessage, error) {
	requests := jsonx.Get(result, "inputRequests")
	if !jsonx.IsNull(requests) && jsonx.KindOf(requests) != jsonx.Object {
		return nil, &InputError{"its request for input is malformed"}
	}
	var out bytes.Buffer
	out.WriteString(`"inputResponses":{`)
	n := 0
	for key, request := range jsonx.Members(requests) {
		if n++; n > maxQuestions {
			return nil, &InputError{fmt.Sprintf("it asks for more than %d inputs at once", maxQuestions)}
		}
		response, err := h.input(ctx, during, request)
		if err != nil {
			return nil, &InputError{fmt.Sprintf("its request for input was not answered: %v", err)}
		}
		if n > 1 {
			out.WriteByte(',')
		}
		out.WriteString(jsonx.Quote(key) + ":")
		out.Write(response)
	}
	out.WriteByte('}')
	if state := jsonx.Get(result, "requestState"); !jsonx.IsNull(state) {
		out.WriteString(`,"requestState":`)
		out.Write(state)
	}
	return out.Bytes(), nil
}

// input answers one input request.
func (h *Handler) input(ctx context.Context, during *Request, request json.RawMessage) (json.RawMessage, error) {
	method, _ := jsonx.Text(jsonx.Get(request, "method"))
	if IsQuestion(method) {
		return h.Handle(ctx, during, method, jsonx.Get(request, "params"))
	}
	return nil, fmt.Errorf("not a request that clients answer: %s", text.Quote(method))
}
