package engine

import (
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/expand"
)

// context returns the context of this run: the setting context, overridden by --context
// and by the values that toolreg sets itself.
func (r *run) context() json.RawMessage {
	facts := map[string]json.RawMessage{"sandboxed": json.RawMessage("false")}
	for _, n := range r.set.RawNamed("context") {
		value, err := expand.JSON(n.JSON(), r.expander.Expand)
		if err != nil {
			r.warn("context_unset", "", fmt.Sprintf("%s: context.%s is ignored: %s", n.Origin, n.Name, err), "")
			continue
		}
		facts[n.Name] = value
	}
	for _, fact := range r.opts.Context {
		facts[fact.Name] = fact.Value
	}
	set := func(name, value string) {
		if text, err := json.Marshal(value); err == nil && value != "" {
			facts[name] = text
		}
	}
	set("channel", r.set.Globals.Channel)
	set("workspace", r.set.Workspace)
	set("projectRoot", r.set.ProjectRoot)
	out, err := json.Marshal(facts)
	if err != nil {
		return json.RawMessage("{}") // cannot happen: each value is JSON
	}
	return out
}

// fact returns one value of the context as text; "" if it is not set or is
// neither text nor a number.
func (r *run) fact(name string) string {
	var value json.RawMessage
	for _, n := range r.set.RawNamed("context") {
		if n.Name == name {
			// A value that cannot be expanded is reported where the context is
			// used.
			value, _ = expand.JSON(n.JSON(), r.expander.Expand)
		}
	}
	for _, fact := range r.opts.Context {
		if fact.Name == name {
			value = fact.Value
		}
	}
	var text string
	var number json.Number
	if json.Unmarshal(value, &text) != nil && json.Unmarshal(value, &number) == nil {
		text = number.String()
	}
	return text
}

// Fact is one value of the context, given for this run.
type Fact struct {
	Name  string
	Value json.RawMessage
}
