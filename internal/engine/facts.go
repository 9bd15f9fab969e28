package engine

import (
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// Fact is one value of the context, given for this run.
type Fact struct {
	Name  string
	Value json.RawMessage
}

// facts are the context of a run: what programs and expressions are told about it.
type facts struct {
	set      *settings.Settings
	given    []Fact
	expander *values.Expander
	reports  *reports
}

// json returns the context of this run: the setting context, overridden by --context
// and by the values that toolreg sets itself.
func (c facts) json() json.RawMessage {
	all := map[string]json.RawMessage{"sandboxed": json.RawMessage("false")}
	for _, n := range c.set.RawNamed("context") {
		value, err := expand.JSON(n.JSON(), c.expander.Expand)
		if err != nil {
			c.reports.warn("context_unset", "", fmt.Sprintf("%s: context.%s is ignored: %s", n.Origin, n.Name, err), "")
			continue
		}
		all[n.Name] = value
	}
	for _, fact := range c.given {
		all[fact.Name] = fact.Value
	}
	set := func(name, value string) {
		if text, err := json.Marshal(value); err == nil && value != "" {
			all[name] = text
		}
	}
	set("channel", c.set.Globals.Channel)
	set("workspace", c.set.Workspace)
	set("projectRoot", c.set.ProjectRoot)
	out, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("{}") // cannot happen: each value is JSON
	}
	return out
}

// text returns one value of the context as text; "" if it is not set or is
// neither text nor a number.
func (c facts) text(name string) string {
	var value json.RawMessage
	for _, n := range c.set.RawNamed("context") {
		if n.Name == name {
			// A value that cannot be expanded is reported by json.
			value, _ = expand.JSON(n.JSON(), c.expander.Expand)
		}
	}
	for _, fact := range c.given {
		if fact.Name == name {
			value = fact.Value
		}
	}
	var out string
	var number json.Number
	if json.Unmarshal(value, &out) != nil && json.Unmarshal(value, &number) == nil {
		out = number.String()
	}
	return out
}
