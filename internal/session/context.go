package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// pluginSettings returns the settings of one plugin, expanded; nil if there are
// none.
func (r *run) pluginSettings(ctx context.Context, id string) (json.RawMessage, error) {
	for _, n := range r.set.RawNamed("plugins.settings") {
		if n.Name == id {
			return expandJSON(n.JSON(), func(text string) (string, error) { return r.expander.Secret(ctx, text) })
		}
	}
	return nil, nil
}

// expandJSON expands every string value in a document.
func expandJSON(raw json.RawMessage, expand func(string) (string, error)) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, err := expandValue(v, expand)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func expandValue(v any, expand func(string) (string, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return expand(v)
	case []any:
		for i := range v {
			if v[i], err = expandValue(v[i], expand); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = expandValue(v[k], expand); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// context returns the context of this run (spec section 6.2): the setting
// context, overridden by --context and by the values that only toolreg knows.
func (r *run) context() json.RawMessage {
	facts := map[string]json.RawMessage{"sandboxed": json.RawMessage("false")}
	for _, n := range r.set.RawNamed("context") {
		value, err := expandJSON(n.JSON(), r.expander.Expand)
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
			value, _ = expandJSON(n.JSON(), r.expander.Expand)
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
