package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
)

// Errors returns the encoding of errors in recordings.
func Errors() recording.Errors {
	return recording.Errors{Encode: encodeFailure, Decode: decodeFailure}
}

// The kinds of recorded errors that are not in failureKinds.
const (
	failureTimeout  = "timeout"
	failureCanceled = "canceled"
	failureParams   = "invalid_params"
	failureRefused  = "refused"
)

// failureKind is a kind of recorded errors that wrap a sentinel.
type failureKind struct {
	word string
	errs []error
}

// failureKinds returns the kinds, the most specific first.
func failureKinds() []failureKind {
	return []failureKind{
		{"needs_login", []error{registry.ErrSourceFailed, registry.ErrNeedsLogin}},
		{"source_failed", []error{registry.ErrSourceFailed}},
		{"denied", []error{registry.ErrDenied}},
		{failureTimeout, []error{exec.ErrTimeout}},
		{failureCanceled, []error{context.Canceled}},
	}
}

// encodeFailure returns an error and the result that came with it as a recording has them; nil if
// there is no error. If the context has ended, its cause is recorded, whatever the source made of
// it.
func encodeFailure(ctx context.Context, r registry.Result, err error) (registry.Result, *recording.Failure) {
	cause := context.Cause(ctx)
	if over, ok := errors.AsType[*exec.TimeoutError](cause); ok {
		return over.Stopped(r), &recording.Failure{Kind: failureTimeout, Text: over.Error(), Hint: over.Hint()}
	}
	if cause != nil {
		return r, &recording.Failure{Kind: failureCanceled, Text: "the call was canceled"}
	}
	if err == nil {
		return r, nil
	}
	f := &recording.Failure{Text: err.Error(), Hint: registry.HintOf(err)}
	if e, ok := errors.AsType[*registry.ArgsError](err); ok {
		f.Kind, f.Violations = failureParams, e.Violations
	} else if e, ok := errors.AsType[*mcpclient.RefusedError](err); ok {
		*f = recording.Failure{
			Kind:    failureRefused,
			Text:    e.Message,
			Server:  e.Server,
			Request: e.Request,
			Code:    e.Code,
		}
	} else if i := slices.IndexFunc(failureKinds(),
		func(k failureKind) bool { return errors.Is(err, k.errs[len(k.errs)-1]) }); i >= 0 {
		f.Kind = failureKinds()[i].word
	}
	return r, f
}

func decodeFailure(f *recording.Failure) error {
	switch f.Kind {
	case failureParams:
		if len(f.Violations) > 0 {
			return &registry.ArgsError{Violations: f.Violations}
		}
	case failureRefused:
		return &mcpclient.RefusedError{Server: f.Server, Request: f.Request, Code: f.Code, Message: f.Text}
	}
	e := &registry.Failure{Text: f.Text, Help: f.Hint}
	for _, k := range failureKinds() {
		if k.word == f.Kind {
			e.Kind = errors.Join(k.errs...)
		}
	}
	return e
}

// isRecorded reports whether the answers of a source are recorded. Built-in tools and steps of
// composites are not: a replay runs them again.
func isRecorded(source string) bool {
	return source != registry.SourceBuiltin && source != registry.SourceComposite
}

// Tape is a recording that a session makes or replays. A nil Tape records nothing and answers
// nothing. It implements [exec.Answers].
type Tape struct {
	options  recording.Options
	recorder *recording.Recorder  // nil when a recording is used
	recorded *recording.Recording // nil when one is made
}

// NewTape returns the tape of a session, without anything known to be secret. It returns nil if
// neither a recorder nor a recording is given.
func NewTape(m *Mask, recorder *recording.Recorder, recorded *recording.Recording) *Tape {
	if recorder == nil && recorded == nil {
		return nil
	}
	return &Tape{recording.Options{
		Text: func(s string) string { return secret.MaskKnown(m.Hide(s)) },
		Params: func(params json.RawMessage) json.RawMessage {
			return json.RawMessage(m.Hide(string(m.Params(params))))
		},
	}, recorder, recorded}
}

// Records reports whether the session is recorded.
func (a *Tape) Records() bool { return a != nil && a.recorder != nil }

// Replays reports whether the session replays a recording.
func (a *Tape) Replays() bool { return a != nil && a.recorded != nil }

// Sources returns the sources of the recording that is replayed, if any. It is not nil for an empty
// recording.
func (a *Tape) Sources() []registry.Source {
	if !a.Replays() {
		return nil
	}
	return append([]registry.Source{}, a.recorded.Sources(a.options)...)
}

// Found returns the function that records the tools that sources find, except those that a filter
// hides; see [registry.Options.Found].
func (a *Tape) Found(hide []registry.Filter) func(context.Context, string,
	[]registry.Tool, []registry.Diagnostic, error) []registry.Tool {
	o := a.options
	o.Omit = func(t *registry.Tool) bool {
		return slices.ContainsFunc(hide, func(f registry.Filter) bool { return f(t) != nil })
	}
	return func(ctx context.Context, source string, tools []registry.Tool,
		diags []registry.Diagnostic, err error) []registry.Tool {
		if !isRecorded(source) {
			return tools
		}
		return a.recorder.Listed(ctx, o, source, tools, diags, err)
	}
}

// Exchange returns the function that records requests to a server about prompts and resources, or
// answers them from the recording. It returns nil if there is no recording.
func (a *Tape) Exchange(server string) func(context.Context, string,
	any, func() (json.RawMessage, error)) (json.RawMessage, error) {
	if a == nil {
		return nil
	}
	source := registry.MCPPrefix + server
	return func(ctx context.Context, method string, params any,
		send func() (json.RawMessage, error)) (json.RawMessage, error) {
		raw, err := jsonx.Marshal(params)
		if err != nil {
			return nil, err
		}
		if a.recorded != nil {
			return a.recorded.Request(a.options, source, method, raw)
		}
		result, err := send()
		if _, absent := errors.AsType[*mcpclient.NotOfferedError](err); result != nil || err != nil && !absent {
			a.recorder.Request(ctx, a.options, source, method, raw, result, err)
		}
		return result, err
	}
}

// Find implements [exec.Answers]. An answer counts only for this call, even if it was to
// be remembered.
func (a *Tape) Find(q *exec.Question) (exec.Answer, bool) {
	if a.recorded == nil || !isRecorded(q.Tool.Source) || len(q.Denied) > 0 {
		return exec.Answer{}, false
	}
	word, reason, ok := a.recorded.Answer(a.options, q.Tool.Source, q.Tool.OriginalName(), q.Call.Params)
	if word != exec.No.String() {
		return exec.Answer{Choice: exec.Yes}, ok
	}
	return exec.Answer{Choice: exec.No, Said: reason}, ok
}

// Keep implements [exec.Answers].
func (a *Tape) Keep(q *exec.Question, answer exec.Answer) {
	if a.recorder != nil && isRecorded(q.Tool.Source) && len(q.Denied) == 0 {
		a.recorder.Question(a.options, q.Tool.Source, q.Tool.OriginalName(),
			q.Call.Params, answer.Choice.String(), cmp.Or(answer.Said, answer.Reason))
	}
}

// KeepServers records a question of a server and its answer.
func (a *Tape) KeepServers(e ask.Elicitation, answer ask.Answer) {
	if a.Records() {
		a.recorder.ServerQuestion(a.options, registry.MCPPrefix+e.Server, e.Message, answer.Action, answer.Content)
	}
}
