package exec

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

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

	// Settled is the verdict that made the question unnecessary, set by an [Elsewhere]; nil means a
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
	// Elsewhere waits until the question is settled other than by the person whom the Confirmer
	// asks, and returns that answer. nil means there is no other way.
	Elsewhere Elsewhere
}

// Elsewhere keeps a question, so that it can be answered while it waits, and waits for that
// answer, or for settings or approvals with which the call needs none. kept is called once with
// the id of the question, "" if it cannot be kept. first reports whether an answer is the first
// one; if it is not, somebody else has answered. The error is the cause of ctx, or
// [ErrAnswered].
type Elsewhere func(ctx context.Context, kept func(id string), first func() bool) (Answer, error)

// ErrAnswered reports that a question was already answered elsewhere.
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

// choices returns the possible answers to a question without duplicates. Without remembers, none is
// "always". If a server can be allowed permanently, always is AlwaysTool.
func (q *Question) choices(remembers bool) []Choice {
	out := []Choice{Yes}
	_, server := q.Verdict.Scope(policy.ScopeServer)
	switch scopes := len(q.Verdict.Scopes); {
	case !remembers || scopes == 0:
	case server:
		out = append(out, AlwaysTool, AlwaysServer)
	case scopes == 1:
		out = append(out, Always)
	default:
		out = append(out, Always, AlwaysOutside)
	}
	if q.Preview.Kind == registry.PreviewEdit && q.Tool.Revise != nil {
		out = append(out, Edit)
	}
	return append(out, No)
}

// Scope returns what an answer is remembered for; false if it applies only to this call.
func (q *Question) Scope(c Choice) (policy.Scope, bool) {
	switch scopes := q.Verdict.Scopes; {
	case c == Always && len(scopes) > 0:
		return scopes[0], true
	case c == AlwaysOutside && len(scopes) > 1:
		return scopes[1], true
	case c == AlwaysTool:
		return q.Verdict.Scope(policy.ScopeTool)
	case c == AlwaysServer:
		return q.Verdict.Scope(policy.ScopeServer)
	}
	return policy.Scope{}, false
}

// Prompt is a question about a call as data, for the programs and the people that answer
// it somewhere other than at this terminal.
type Prompt struct {
	Tool      string               `json:"tool"`
	Source    string               `json:"source"`
	Server    string               `json:"server,omitempty"`
	Place     string               `json:"place,omitempty" jsonschema:"the place in a script that makes the call: FILE:LINE:COL"`
	Kind      registry.PreviewKind `json:"kind" jsonschema:"edit, exec, mcp or info"`
	Params    json.RawMessage      `json:"params"`
	Text      string               `json:"text" jsonschema:"the question as a terminal shows it"`
	Diff      string               `json:"diff,omitempty" jsonschema:"of an edit: the unified diff"`
	Command   string               `json:"command,omitempty" jsonschema:"of exec: the command line"`
	Directory string               `json:"directory,omitempty" jsonschema:"of exec: where it runs, relative to the workspace"`
	Choices   []string             `json:"choices" jsonschema:"the possible answers: yes, always, always-server, no"`
	Covers    map[string]string    `json:"covers" jsonschema:"what would be allowed from now on, for each answer that is remembered"`
	Reason    string               `json:"reason" jsonschema:"why it is asked"`
	Origin    string               `json:"origin" jsonschema:"the rule, setting or default that asks"`
}

// The words of the answers in [Prompt.Choices].
const (
	WordYes          = "yes"
	WordAlways       = "always"
	WordAlwaysServer = "always-server"
	WordNo           = "no"
)

// Words returns the answers to a question in the order to offer them.
func (q *Question) Words() []string {
	var out []string
	for _, word := range []string{WordYes, WordAlways, WordAlwaysServer, WordNo} {
		if _, ok := q.Choice(word); ok {
			out = append(out, word)
		}
	}
	return out
}

// Choice returns the choice for a word in the question; false if there is none.
func (q *Question) Choice(word string) (Choice, bool) {
	choices := map[string][]Choice{WordYes: {Yes}, WordAlways: {Always, AlwaysTool},
		WordAlwaysServer: {AlwaysServer}, WordNo: {No}}
	for _, choice := range choices[word] {
		if slices.Contains(q.Choices, choice) {
			return choice, true
		}
	}
	return No, false
}

// Reply is the answer of a program to a [Prompt].
type Reply struct {
	Choice  string  `json:"choice"`
	Reason  string  `json:"reason,omitempty" jsonschema:"with no: for the model"`
	Content *string `json:"content,omitempty" jsonschema:"with yes to an edit: the whole file instead of the proposed one"`
}

// Answer returns the answer in a reply. A reply that is not among the possible ones is an error.
func (r *Reply) Answer(q *Question) (Answer, error) {
	choice, ok := q.Choice(r.Choice)
	switch {
	case !ok:
		return Answer{}, errors.New("it is not one of the choices")
	case r.Content != nil && (choice != Yes || !slices.Contains(q.Choices, Edit)):
		return Answer{}, errors.New("it has content, which only the answer yes to an edit can have")
	case r.Content != nil:
		return Answer{Choice: Edit, Content: *r.Content, Sure: true}, nil
	}
	return Answer{Choice: choice, Said: r.Reason}, nil
}
