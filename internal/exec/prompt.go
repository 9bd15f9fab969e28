package exec

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/registry"
)

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

// Choice returns the choice that a word stands for in the question; false if it is none.
func (q *Question) Choice(word string) (Choice, bool) {
	choices := map[string][]Choice{WordYes: {Yes}, WordAlways: {Always, AlwaysTool}, WordAlwaysServer: {AlwaysServer}, WordNo: {No}}
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

// Answer returns what a reply answers to a question. A reply that is none of the possible
// ones is an error.
func (r *Reply) Answer(q *Question) (Answer, error) {
	choice, ok := q.Choice(r.Choice)
	switch {
	case !ok:
		return Answer{}, errors.New("it is none of those offered")
	case r.Content != nil && (choice != Yes || !slices.Contains(q.Choices, Edit)):
		return Answer{}, errors.New("it has content, which only the answer yes to an edit can have")
	case r.Content != nil:
		return Answer{Choice: Edit, Content: *r.Content, Sure: true}, nil
	}
	return Answer{Choice: choice, Said: r.Reason}, nil
}
