package deferred

import (
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Answer is the result of searching or describing tools. Its JSON is the text that
// the model reads.
type Answer struct {
	Tools    []Described `json:"tools"`
	Matched  *int        `json:"matched,omitempty"`  // for a search, the number of all matches
	Searched int         `json:"searched,omitempty"` // for a search, the number of tools searched
	// Unavailable are the sources that failed. Because their tools cannot be found, a
	// search without results does not mean that no tool exists.
	Unavailable []string `json:"unavailable,omitempty"`
	Notes       []string `json:"notes,omitempty"`
}

// Described is a tool in an [Answer].
type Described struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Params      json.RawMessage `json:"params,omitempty"` // the input schema
	Error       string          `json:"error,omitempty"`  // why the tool cannot be described
}

// Describe returns the information that a call of a tool requires, with the name to
// use in the call.
func Describe(name string, d *registry.Definition) Described {
	params := d.InputSchema
	if schema, err := jsonx.Parse(params, jsonx.Options{}); err != nil || !schema.Is(jsonx.Object) {
		params = json.RawMessage(`{"type":"object","properties":{}}`)
	} else if schema.Remove("$schema") { // models do not need it
		params = schema.AppendTo(nil)
	}
	return Described{Name: name, Description: d.Description, Params: params}
}

// Missing returns the entry for a name that no tool has, with similar names.
func Missing(name string, near []string) Described {
	message := "there is no such tool"
	if len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return Described{Name: name, Error: message}
}

// maxAnswered is the maximum size of a search's answer in tokens.
const maxAnswered = 4_000

// Shorten limits the size of a search's answer. Tools beyond the limit keep only
// their name and the first sentence of their description; a note tells the model to
// use describe_tools.
func (a *Answer) Shorten(describe string) {
	shortened, tokens := false, 0
	for i := range a.Tools {
		t := &a.Tools[i]
		tokens += provider.Format{}.Tokens([]byte(t.Description)) + provider.Format{}.Tokens(t.Params)
		if tokens > maxAnswered {
			t.Description, t.Params, shortened = text.FirstSentence(t.Description), nil, true
		}
	}
	if shortened {
		a.Notes = append(a.Notes, describe+" returns the params of the tools that are listed without them.")
	}
}

// Text returns the answer as text for the model.
func (a Answer) Text() (string, error) {
	if len(a.Unavailable) > 0 {
		a.Notes = append(a.Notes, "These sources failed, so their tools cannot be found at the moment: "+
			strings.Join(a.Unavailable, ", ")+".")
	}
	if a.Tools == nil {
		a.Tools = []Described{}
	}
	data, err := jsonx.Marshal(a)
	return string(data), err
}
