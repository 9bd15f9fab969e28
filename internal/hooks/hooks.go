// Package hooks runs the commands of the setting hooks around calls. A hook
// receives one JSON object on stdin and may print one on stdout. It can restrict
// calls but not allow them: the policy decides before a hook runs, and again about
// params that it changed. If a beforeCall or afterCall hook fails in any way, the
// call is stopped or its result is withheld.
package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Hook is one command.
type Hook struct {
	Event   Event
	Command []string // argv, unexpanded, run without a shell
	// Expand returns the command with its variables expanded. If nil, it is used unchanged.
	Expand  func() ([]string, error)
	Tools   []string // names or globs of tools; empty means all
	Timeout time.Duration
	Env     []string         // complete environment, as "K=V"
	Confine process.Confiner // nil means it is not confined
	// Origin is the place of the setting, for messages. It may be empty.
	Origin string
	// Place is the rank of the hook's scope. Later scopes have higher ranks, and
	// their hooks cannot bypass those of earlier scopes.
	Place int
}

// String describes the hook in messages.
func (h *Hook) String() string {
	if h.Origin == "" {
		return fmt.Sprintf("%s hook %q", h.Event, h.Command[0])
	}
	return fmt.Sprintf("%s hook %q (%s)", h.Event, h.Command[0], h.Origin)
}

// matches reports whether the hook applies to a tool, by any name that it is called.
func (h *Hook) matches(t *registry.Tool) bool {
	return len(h.Tools) == 0 || slices.ContainsFunc(t.Called(), func(name string) bool {
		return slices.ContainsFunc(h.Tools, func(p string) bool {
			return text.MatchName(registry.Folded(p), strings.ToLower(name))
		})
	})
}

// maxAnswer is the maximum size of a hook's stdout, and of its stderr, in bytes.
const maxAnswer = 16 << 20

// Set has the hooks of one run. Its methods are safe for concurrent use.
// Before, After and Screens implement exec.Hooks.
type Set struct {
	Hooks []Hook
	Dir   string // project root, where hooks run
	// Hide masks the secrets of the settings in what a hook says about its failure. If nil, none are masked.
	Hide func(string) string
}

// Denied reports that a hook refused a call or its result, or failed. It wraps
// [registry.ErrDenied], unless the hook failed after the call.
type Denied struct {
	Tool   string
	Hook   string
	Reason string // as the hook gave it; it may be empty
	Err    error  // why the hook failed; nil if it refused
	Ran    bool   // the call has run, and its result is withheld
}

func (e *Denied) Error() string {
	what := "is denied"
	if e.Ran {
		what = "has run, and its result is withheld"
	}
	if e.Err != nil {
		return fmt.Sprintf("%q %s because the %s failed: %v", e.Tool, what, e.Hook, e.Err)
	}
	return fmt.Sprintf("%q %s by the %s: %s", e.Tool, what, e.Hook, orNoReason(e.Reason))
}

// ForModel returns the error text for a model, with the reason that the hook gave, but not why it
// failed.
func (e *Denied) ForModel() string {
	text, goOn := "This call is not allowed, so it was not run.", "Do not repeat it; find another way."
	if e.Ran {
		text, goOn = "The call has run, but its result is withheld.", "Do not repeat the call."
	}
	if e.Reason == "" {
		return text + " " + goOn
	}
	return text + " The reason given: " + e.Reason + "\n" + goOn
}

// Unwrap returns ErrDenied and the hook's error.
func (e *Denied) Unwrap() []error {
	switch {
	case e.Err == nil:
		return []error{registry.ErrDenied}
	case e.Ran:
		return []error{e.Err}
	}
	return []error{registry.ErrDenied, e.Err}
}

// hooksOf yields the hooks of an event for a tool, in order.
func (s *Set) hooksOf(e Event, t *registry.Tool) iter.Seq[*Hook] {
	return func(yield func(*Hook) bool) {
		for i := range s.Hooks {
			if h := &s.Hooks[i]; h.Event == e && h.matches(t) && !yield(h) {
				return
			}
		}
	}
}

// Before runs the beforeCall hooks in order, each with the params from the previous
// one. It returns the changed params, or nil if no hook changed them, and the
// reason of the first hook that requires confirmation. If a hook of a later scope
// changed the params, the hooks of earlier scopes run again with the new params, so
// that a hook cannot be bypassed by changing the params after it ran. They may then
// only refuse or require confirmation. Errors are *Denied or wrap the cause of ctx.
func (s *Set) Before(ctx context.Context, t *registry.Tool,
	call registry.Call) (changed json.RawMessage, asking registry.Asking, err error) {
	last := 0
	for h := range s.hooksOf(BeforeCall, t) {
		next, asks, err := s.before(ctx, h, t, call)
		if err != nil {
			return nil, asking, err
		}
		asking = cmp.Or(asking, asks)
		if next != nil {
			call.Params, changed, last = next, next, max(last, h.Place)
		}
	}
	for h := range s.hooksOf(BeforeCall, t) {
		if h.Place >= last {
			continue
		}
		_, asks, err := s.before(ctx, h, t, call)
		if err != nil {
			return nil, asking, err
		}
		asking = cmp.Or(asking, asks)
	}
	return changed, asking, nil
}

// before runs one hook. It returns the params that the hook provides, nil for
// none, and whether it wants confirmation.
func (s *Set) before(ctx context.Context, h *Hook, t *registry.Tool,
	call registry.Call) (next json.RawMessage, asking registry.Asking, err error) {
	var a answer
	m, err := aboutCall(ctx, t, call)
	if err == nil {
		a, err = s.ask(ctx, h, m)
	}
	switch {
	case err != nil:
	case a.Decision == "deny":
		return nil, asking, &Denied{Tool: t.Name, Hook: h.String(), Reason: a.Reason}
	case len(a.Result) > 0:
		err = errors.New("it returned a result, but before a call it may only return params")
	case len(a.Params) > 0:
		next, err = registry.DecodeParams(t.Name, a.Params)
	}
	if err != nil {
		return nil, asking, &Denied{Tool: t.Name, Hook: h.String(), Err: err}
	}
	if a.Decision == "ask" {
		asking = registry.Asking{
			Reason: fmt.Sprintf("the %s requests confirmation: %s", h, orNoReason(a.Reason)), Origin: "hook",
		}
	}
	return next, asking, nil
}

func orNoReason(reason string) string {
	return cmp.Or(reason, "no reason given")
}

// Screens reports whether any hook checks the results of a tool.
func (s *Set) Screens(t *registry.Tool) bool {
	for range s.hooksOf(AfterCall, t) {
		return true
	}
	return false
}

// After runs the afterCall hooks in order, each with the result of the previous
// one.
func (s *Set) After(ctx context.Context, t *registry.Tool,
	call registry.Call, r registry.Result) (registry.Result, error) {
	for h := range s.hooksOf(AfterCall, t) {
		var a answer
		m, err := aboutCall(ctx, t, call)
		if err == nil {
			m.Result = newResultMessage(r)
			a, err = s.ask(ctx, h, m)
		}
		switch {
		case err != nil:
		case len(a.Params) > 0:
			err = errors.New("it returned params, but after a call it may only return a result")
		case a.Decision == "ask":
			err = errors.New("it requested confirmation, but after a call it may only return or withhold a result")
		case a.Decision == "deny":
			return registry.Result{}, &Denied{Tool: t.Name, Hook: h.String(), Reason: a.Reason, Ran: true}
		case len(a.Result) > 0:
			r, err = replace(r, a.Result)
		}
		if err != nil {
			return registry.Result{}, &Denied{Tool: t.Name, Hook: h.String(), Err: err, Ran: true}
		}
	}
	return r, nil
}

// Registered runs the onRegister hooks with the registered tools. The hooks decide
// nothing, so callers report the returned errors as warnings.
func (s *Set) Registered(ctx context.Context, tools []*registry.Tool) error {
	m := message{Tools: make([]toolMessage, len(tools))}
	for i, t := range tools {
		m.Tools[i] = *newToolMessage(t)
	}
	return s.notify(ctx, OnRegister, m)
}

// Noticed runs the onDiagnostic hooks if there are diagnostics.
func (s *Set) Noticed(ctx context.Context, diags []registry.Diagnostic) error {
	if len(diags) == 0 {
		return nil
	}
	return s.notify(ctx, OnDiagnostic, message{Diagnostics: diags})
}

// notify runs the hooks of an event whose answers are ignored.
func (s *Set) notify(ctx context.Context, e Event, m message) error {
	var errs []error
	for i := range s.Hooks {
		if h := &s.Hooks[i]; h.Event == e {
			if _, err := s.ask(ctx, h, m); err != nil {
				errs = append(errs, fmt.Errorf("running the %s: %w", h, err))
			}
		}
	}
	return errors.Join(errs...)
}

// ask runs one hook. It returns an error unless the hook succeeds with a valid
// answer.
func (s *Set) ask(ctx context.Context, h *Hook, m message) (answer, error) {
	m.Event = h.Event
	input, err := jsonx.Marshal(m)
	if err != nil {
		return answer{}, fmt.Errorf("encoding its input: %w", err)
	}
	argv := h.Command
	if h.Expand != nil {
		if argv, err = h.Expand(); err != nil {
			return answer{}, err
		}
	}
	timeout := fmt.Errorf("no answer within its time limit of %s", h.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, timeout)
	defer cancel()
	out, err := h.Confine.Run(ctx,
		process.Spec{Argv: argv, Dir: s.Dir, Env: h.Env, Stdin: append(input, '\n'), MaxOutput: maxAnswer})
	if err != nil {
		return answer{}, err
	}
	if err := out.Err(); err != nil {
		said := lastLine(out.Stderr)
		if s.Hide != nil {
			said = s.Hide(said)
		}
		return answer{}, fmt.Errorf("%w%s", err, said)
	}
	return parseAnswer(out.Stdout)
}

// lastLine returns the last line of a hook's stderr.
func lastLine(stderr []byte) string {
	last := text.LastLine(text.Valid(stderr))
	if last == "" {
		return ""
	}
	return ": " + text.Clip(last, 500)
}
