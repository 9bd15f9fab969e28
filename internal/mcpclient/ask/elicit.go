package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// maxMessage is the maximum length of a question's message as shown, in bytes.
const maxMessage = 4 << 10

// The actions of an [Answer] (revision 2025-11-25).
const (
	Accept  = "accept"
	Decline = "decline"
	Cancel  = "cancel"
)

// The modes of an elicitation.
const (
	modeForm = "form"
	modeURL  = "url"
)

// Elicitation is a server's question to the user.
type Elicitation struct {
	Server  string
	During  string          // our request during which it arrived, such as "tool echo"
	Mode    string          // "form" or "url"
	Message string          // the server's words, not to be trusted
	Form    *form.Form      // form: the requested fields
	Schema  json.RawMessage // form: its schema, see [form.Form]
	URL     string          // url: the address to open, which passed [webaddr.Check]
	ID      string          // url: the server's id of this question

	// Done is set if the request waits until the user has finished at the URL:
	// accept means that they have. It is closed when the server reports that they
	// have finished.
	Done <-chan struct{}
}

// Answer is the user's answer. The zero value declines.
type Answer struct {
	Action  string          // Accept, Decline or Cancel
	Content json.RawMessage // accept of a form: one JSON object
	Said    string          // decline: the user's reason, "" for none; not for the server
}

// elicit asks the user the server's question and returns the result of
// elicitation/create. A question that cannot be shown is declined and reported.
func (h *Handler) elicit(ctx context.Context, during *Request, params json.RawMessage) json.RawMessage {
	e, err := Read(h.opts.Server, params)
	if refused := during.allow(false, 0); refused != nil {
		err = refused
	}
	if err != nil {
		h.refuse("question", err)
		return elicitResult(Answer{Action: Decline})
	}
	e.During = during.name
	a := h.askUser(ctx, e)
	during.setReason(a)
	if a.Action != Accept || e.Mode != modeForm {
		return elicitResult(Answer{Action: a.Action})
	}
	if len(a.Content) == 0 {
		a.Content = json.RawMessage("{}")
	}
	if !json.Valid(a.Content) || jsonx.KindOf(a.Content) != jsonx.Object {
		a = Answer{Action: Cancel}
	}
	return elicitResult(a)
}

func elicitResult(a Answer) json.RawMessage {
	if a.Content == nil {
		return json.RawMessage(`{"action":"` + a.Action + `"}`)
	}
	return json.RawMessage(`{"action":"` + a.Action + `","content":` + string(a.Content) + `}`)
}

// Read decodes the params of elicitation/create, from a server's request or from its
// input_required. The error says why nobody can be asked that question. Revision 2025-06-18 has no
// mode.
func Read(server string, params json.RawMessage) (Elicitation, error) {
	e := Elicitation{Server: server, Mode: modeForm}
	if jsonx.KindOf(params) != jsonx.Object {
		return e, errors.New("it has no params")
	}
	message, _ := jsonx.Text(jsonx.Get(params, "message"))
	e.Message = shorten(message, maxMessage)
	e.URL, _ = jsonx.Text(jsonx.Get(params, "url"))
	e.ID, _ = jsonx.Text(jsonx.Get(params, "elicitationId"))
	if mode, ok := jsonx.Text(jsonx.Get(params, "mode")); ok && mode != "" {
		e.Mode = mode
	} else if e.URL != "" {
		e.Mode = modeURL
	}
	switch e.Mode {
	case modeURL:
		return e, webaddr.Check(e.URL)
	case modeForm:
		e.Schema = jsonx.Get(params, "requestedSchema")
		if jsonx.IsNull(e.Schema) {
			e.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		var err error
		if e.Form, err = form.Parse(e.Schema); err == nil {
			e.Schema = e.Form.Schema
		}
		return e, err
	}
	return e, fmt.Errorf("its mode %s is not supported", text.Quote(e.Mode))
}

// shorten cuts text that is too long to read, and says so.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s…\n(cut at %d of %d bytes)", text.Head(s, n), n, len(s))
}

// askUser asks the user and returns an answer with an action that the protocol
// knows. It returns when ctx is done even if the user never answers.
func (h *Handler) askUser(ctx context.Context, e Elicitation) Answer {
	if h.opts.Elicit == nil {
		return Answer{Action: Decline}
	}
	answers := make(chan Answer, 1)
	go func() {
		a, err := h.opts.Elicit(ctx, e)
		if err != nil {
			a = Answer{Action: Cancel}
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		if slices.Contains([]string{Accept, Decline, Cancel}, a.Action) {
			return a
		}
		return Answer{Action: Decline}
	case <-ctx.Done():
		return Answer{Action: Cancel}
	}
}

// Completion returns a channel that is closed when the server reports that the
// user has finished at the URL of an elicitation, and a function that stops
// waiting for that report.
type Completion func(elicitationID string) (done <-chan struct{}, forget func())

// Addresses handles the refusal of a request until the user has opened URLs (error -32042 with
// data), and reports whether to repeat the request. The user or the server confirms that the URLs
// were visited.
func (h *Handler) Addresses(ctx context.Context, during *Request, data json.RawMessage, completion Completion) bool {
	questions, _ := jsonx.Elements(jsonx.Get(data, "elicitations"))
	for _, raw := range questions {
		e, err := Read(h.opts.Server, raw)
		switch {
		case err == nil && e.Mode != modeURL:
			err = errors.New("it is not a usable address")
		case err == nil:
			err = during.allow(false, 0)
		}
		if err != nil {
			h.refuse("question", err)
			return false
		}
		e.During = during.name
		ctx := during.context(ctx)
		var forget func()
		e.Done, forget = completion(e.ID)
		a := h.askUser(ctx, e)
		during.setReason(a)
		forget()
		if a.Action != Accept {
			return false
		}
	}
	return len(questions) > 0
}

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
	if err := during.allow(true, h.opts.MaxSamples); err != nil {
		return nil, h.refuseSampling(codeRefusedByUser, err)
	}
	result, err := h.opts.Sample(ctx, Sampling{Server: h.opts.Server, During: during.name, Params: params})
	if declined, ok := errors.AsType[*DeclinedError](err); ok {
		during.setReason(Answer{Said: declined.Said})
	}
	if err != nil { // the callback has reported the refusal
		return nil, samplingError(codeRefusedByUser, err)
	}
	role, _ := jsonx.Text(jsonx.Get(result, "role"))
	content := jsonx.Get(result, "content")
	blocks, several := jsonx.Elements(content) // since revision 2025-11-25
	if role == "" || jsonx.KindOf(content) != jsonx.Object && (!several || len(blocks) == 0) || !json.Valid(result) {
		return nil, h.refuseSampling(jsonrpc.CodeInternalError,
			errors.New("the answer is not a message with a role and content"))
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
