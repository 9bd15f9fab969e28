package exec

import (
	"context"
	"errors"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// Choice is a person's answer. The zero value is no.
type Choice int

// The possible answers.
const (
	No            Choice = iota
	Yes                  // this call
	Always               // remember it for the first scope of the verdict
	AlwaysTool           // remember it for this tool
	AlwaysServer         // remember it for this server
	AlwaysOutside        // remember it for commands outside the sandbox; Always means inside
	Edit                 // the person changed the proposed content; ask again
)

// String returns the answer's word.
func (c Choice) String() string {
	switch c {
	case Yes:
		return "yes"
	case Always:
		return "always"
	case AlwaysTool:
		return "tool"
	case AlwaysServer:
		return "server"
	case AlwaysOutside:
		return "Always"
	case Edit:
		return "edit"
	}
	return "no"
}

// Answer is a choice and its details.
type Answer struct {
	Choice  Choice
	Content string // with Edit, the new content; it may be empty
	Sure    bool   // with Edit, if the call may write the new content without another question
	Reason  string // with No, why there was no answer; "" if there was one
	Said    string // with No, the person's reason, for the model; it may be empty

	// Settled is the verdict that has made the question needless, set by an [Elsewhere]; nil means a
	// person has answered.
	Settled *policy.Verdict
}

// Question is a question about a call.
type Question struct {
	Tool    *registry.Tool
	Call    registry.Call
	Preview registry.Preview
	Verdict policy.Verdict
	// Denied is set if the call failed in the sandbox and the question is whether to
	// run it again outside. It lists what the sandbox denied.
	Denied []string
	// Choices are the possible answers in the order to show them. Yes is first
	// and No last.
	Choices []Choice
	// Copy is the number of equal calls that are held before this one.
	Copy int
	// Elsewhere waits until the question is settled in another way than by the person that the
	// Confirmer asks, and returns that answer. See [Elsewhere]. nil means there is no other way.
	Elsewhere Elsewhere
}

// Elsewhere keeps a question, so that it can be answered while it waits, and waits for that
// answer, or for settings or approvals with which the call needs none. kept is called once with
// the id of the question, "" if it cannot be kept. first reports whether an answer is the first
// one; if it is not, somebody else has answered. The error is the cause of ctx, or
// [ErrAnswered].
type Elsewhere func(ctx context.Context, kept func(id string), first func() bool) (Answer, error)

// ErrAnswered reports that a question was answered in another place before.
var ErrAnswered = errors.New("the question was answered elsewhere")

// Confirmer asks a person.
type Confirmer interface {
	// Turn waits until a question may be asked, and returns a function that ends the
	// turn.
	Turn() (end func())
	// Confirm asks a question; the caller must have the turn. An error means that
	// nobody could be asked, and never that the call is allowed. A *NeedsConfirmation
	// leaves the question to the Unattended.
	Confirm(context.Context, Question) (Answer, error)
}

type pauseKey struct{}

// WithPause returns a context in which pause is called while a question waits for its
// answer, and what it returns afterwards.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// paused calls the function of [WithPause].
func paused(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}

// Decider decides about calls. It is implemented by *policy.Policy.
type Decider interface {
	Decide(context.Context, *registry.Tool, registry.Call) policy.Verdict
}

// Rememberer stores "always" answers. It is implemented by *policy.Approvals.
type Rememberer interface {
	Remember(context.Context, *registry.Tool, policy.Scope) error
}

// choices returns the possible answers to a question without duplicates. If a
// server can be allowed permanently, always is AlwaysTool.
func choices(t *registry.Tool, p registry.Preview, v policy.Verdict, canRemember bool) []Choice {
	out := []Choice{Yes}
	if canRemember && len(v.Scopes) > 0 {
		if _, ok := v.Scope(policy.ScopeServer); ok {
			out = append(out, AlwaysTool, AlwaysServer)
		} else {
			out = append(out, Always)
			if len(v.Scopes) > 1 {
				out = append(out, AlwaysOutside)
			}
		}
	}
	if p.Kind == registry.PreviewEdit && t.Revise != nil {
		out = append(out, Edit)
	}
	return append(out, No)
}

// Remembers returns the choice that a word stands for and the scope for which it is remembered;
// false if it is not offered or not remembered.
func (q *Question) Remembers(word string) (Choice, policy.Scope, bool) {
	choice, ok := q.Choice(word)
	if !ok {
		return No, policy.Scope{}, false
	}
	scope, ok := scopeOf(choice, q.Verdict)
	return choice, scope, ok
}

// scopeOf returns the scope for which an "always" answer is remembered.
func scopeOf(c Choice, v policy.Verdict) (policy.Scope, bool) {
	switch c {
	case Always:
		if len(v.Scopes) > 0 {
			return v.Scopes[0], true
		}
	case AlwaysOutside:
		if len(v.Scopes) > 1 {
			return v.Scopes[1], true
		}
	case AlwaysTool:
		return v.Scope(policy.ScopeTool)
	case AlwaysServer:
		return v.Scope(policy.ScopeServer)
	}
	return policy.Scope{}, false
}
