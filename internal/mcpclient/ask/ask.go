//lint:file-ignore SA1019 servers still use roots and sampling, which a later revision deprecates

// Package ask answers the requests that MCP servers make to the user and to a
// model while they handle a client request: forms and URLs (elicitation),
// questions for a model (sampling), and the workspace (roots).
//
// The SDK would lose the order of fields and the digits of numbers, and a
// self-referential schema would crash the process, so a [Handler] takes params
// and returns results as JSON. Legacy servers ask by sending requests, which the
// session in package wire passes to Handler.Handle; modern ones ask in the
// results of package mcpclient's requests, which go to Handler.Inputs.
package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// The methods of requests that servers send to clients.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// maxQuestions is how many questions a server may ask during one request.
const maxQuestions = 20

// IsQuestion reports whether a [Handler] answers requests of this method.
func IsQuestion(method string) bool {
	return method == methodElicit || method == methodSample || method == methodRoots
}

// Callbacks answer the questions of a server. The zero value declines all of
// them.
type Callbacks struct {
	// Elicit asks the user the server's question. If nil, questions are
	// declined. Its ctx ends with the request during which the server asked.
	Elicit func(context.Context, Elicitation) (Answer, error)

	// Sample answers the server's sampling request. If nil, the client does not
	// advertise sampling. The result is that of sampling/createMessage; an error
	// refuses the request, and its text is sent to the server.
	Sample func(context.Context, Sampling) (json.RawMessage, error)

	// Refused is called when something was refused without asking the user: what was
	// refused, such as "question" or "sampling request", and why. It may be nil.
	Refused func(server, what, reason string)
}

// Options describe the server that asks, and limit what it may ask.
type Options struct {
	Callbacks
	Server     string       // its name in the settings
	Workspace  string       // absolute; its only root, "" means none
	MaxSamples int          // sampling requests during one of our requests
	MaxParams  int64        // bytes of the params of one sampling request
	Logger     *slog.Logger // never nil

	// Deprecated is called when the server asks in a deprecated way: roots or sampling. It may be
	// nil.
	Deprecated func(part string)
}

// Handler answers the questions of one server. It is safe for concurrent use.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// Handle answers a request for which [IsQuestion] reports true. during is the
// client request that was running when it arrived, or nil if none was. The
// error is a *jsonrpc.Error for the server.
func (h *Handler) Handle(ctx context.Context, during *Request,
	method string, params json.RawMessage) (json.RawMessage, error) {
	ctx = during.context(ctx)
	if part, _, _ := strings.Cut(method, "/"); h.opts.Deprecated != nil &&
		(method == methodSample || method == methodRoots) {
		h.opts.Deprecated(part)
	}
	switch method {
	case methodSample:
		return h.sample(ctx, during, params)
	case methodRoots:
		return h.roots(ctx, during), nil
	}
	return h.elicit(ctx, during, params), nil
}

// refuse reports that a question was refused without asking the user.
func (h *Handler) refuse(what string, err error) {
	h.opts.Logger.Warn(what+" from the server declined", "reason", err.Error())
	if h.opts.Refused != nil {
		h.opts.Refused(h.opts.Server, what, err.Error())
	}
}

// Request is a client request during which the server may ask. nil means that
// no request is running and the server must not ask.
type Request struct {
	name   string
	caller *caller.Caller // client that made it; nil means the user at the command line

	several []*Request // the requests that it represents, if created by Several

	mu        sync.Mutex
	questions int      // questions asked by the server
	samples   int      // how many of them were for a model
	declined  []string // reasons for declining them
	unclear   bool     // a question that may have been about it was declined
}

// NewRequest returns a Request made by the caller in ctx. name describes the
// request to the user, such as "tool echo".
func NewRequest(ctx context.Context, name string) *Request {
	return &Request{name: name, caller: caller.From(ctx)}
}

// SameCaller reports whether the same client made both requests, so that it can be asked about
// either. For a client that must know which call a question is about, both must belong to one call.
func (r *Request) SameCaller(other *Request) bool {
	if r.caller == nil || other.caller == nil || r.caller.Single || other.caller.Single {
		return r.caller == other.caller
	}
	return r.caller.ID == other.caller.ID
}

// Several returns a request for questions that may be about any of several concurrent requests, of
// several clients or of one. It allows no questions.
func Several(requests []*Request) *Request {
	return &Request{name: "calls of several clients", several: requests}
}

// Unclear reports whether a question was declined because it may also have been
// about a request of another client.
func (r *Request) Unclear() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unclear
}

// MarkUnclear records that a question was declined because it may also have been about a
// request of another client.
func (r *Request) MarkUnclear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unclear = true
}

// refuseSeveral marks the requests that the declined question may have been
// about.
func (r *Request) refuseSeveral() error {
	for _, one := range r.several {
		one.MarkUnclear()
	}
	if r.several[0].caller != nil && r.several[0].caller.Single {
		return errCalls
	}
	return errSeveral
}

// Caller returns the client that made the request, or nil for the user at the
// command line or if it is unknown.
func (r *Request) Caller() *caller.Caller {
	if r == nil {
		return nil
	}
	return r.caller
}

// Peer returns what can be asked of the client that made the request. It is never nil.
func (r *Request) Peer() caller.Peer {
	if r == nil || r.caller == nil || r.caller.Peer == nil {
		return caller.Silent{}
	}
	return r.caller.Peer
}

// context returns ctx with the caller of the request, who answers the question.
func (r *Request) context(ctx context.Context) context.Context {
	if r == nil || r.caller == nil {
		return ctx
	}
	return caller.With(ctx, r.caller)
}

// MarkAsked records that something other than a [Handler] answers the server's
// question.
func (r *Request) MarkAsked() { r.count(false) }

// Asked reports whether the server asked a question during the request.
func (r *Request) Asked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.questions > 0
}

// Declined returns the reasons that the user gave for declining questions. The
// protocol has no field for them, so they are not sent to the server.
func (r *Request) Declined() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.declined
}

// setReason stores the reason in an answer, if there is one.
func (r *Request) setReason(a Answer) {
	if a.Said == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.declined = append(r.declined, a.Said)
}

// count counts a question and returns the number of questions so far, and how
// many of them were for a model.
func (r *Request) count(sample bool) (questions, samples int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions++
	if sample {
		r.samples++
	}
	return r.questions, r.samples
}

var (
	errNoRequest = errors.New("it came while no request was running")
	errSeveral   = errors.New("calls of several clients are running on this server, and the protocol does not say which of them the question is about; set perClient: true for the server to give each client its own process")
	errCalls     = errors.New("several calls are running on this server, and the protocol does not say which of them the question is about; make them one after another")
)

// allow counts a question and returns an error if the server must not ask it. If sample is set, the
// question is for a model; there may be at most maxSamples of these.
func (r *Request) allow(sample bool, maxSamples int) error {
	switch {
	case r == nil:
		return errNoRequest
	case r.several != nil:
		return r.refuseSeveral()
	}
	switch questions, samples := r.count(sample); {
	case samples > maxSamples && sample:
		return fmt.Errorf("more than %d were asked during one request", maxSamples)
	case questions > maxQuestions:
		return fmt.Errorf("more than %d were asked during %s", maxQuestions, text.Escape(r.name))
	}
	return nil
}

// Capabilities returns the client capabilities.
func (h *Handler) Capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
	if h.opts.Workspace != "" {
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	if h.opts.Sample != nil {
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	return c
}

// roots returns the result of roots/list: the roots of the client that made the request, if it
// has any, otherwise the workspace, if there is one.
func (h *Handler) roots(ctx context.Context, during *Request) json.RawMessage {
	result, err := during.Peer().Roots(ctx)
	if err == nil && result != nil {
		return result
	}
	if err != nil {
		h.opts.Logger.Warn("the client's roots are not known", "reason", err.Error())
	}
	roots := []*mcp.Root{}
	if h.opts.Workspace != "" {
		path := filepath.ToSlash(h.opts.Workspace)
		if !strings.HasPrefix(path, "/") {
			path = "/" + path // a drive letter
		}
		uri := &url.URL{Scheme: "file", Path: path}
		roots = append(roots, &mcp.Root{URI: uri.String(), Name: filepath.Base(h.opts.Workspace)})
	}
	out, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		return json.RawMessage(`{"roots":[]}`) // only strings: cannot fail
	}
	return out
}

// InputError reports that a server asked for input that it cannot get. Only the request has failed;
// the server still works.
type InputError struct{ Reason string }

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
		method, _ := jsonx.Text(jsonx.Get(request, "method"))
		if !IsQuestion(method) {
			return nil, &InputError{"its request for input was not answered: not a request that clients answer: " +
				text.Quote(method)}
		}
		response, err := h.Handle(ctx, during, method, jsonx.Get(request, "params"))
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
