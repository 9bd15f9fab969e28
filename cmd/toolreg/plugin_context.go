package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// pluginSettings are the settings of one plugin, expanded; nil for none.
func pluginSettings(ctx context.Context, s *settings.Settings, x *settings.Expander, id string) (json.RawMessage, error) {
	for _, n := range s.RawNamed("plugins.settings") {
		if n.Name == id {
			return expandJSON(n.JSON, func(text string) (string, error) { return x.Secret(ctx, text) })
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

// context is the context of this run (spec section 6.2): the setting context,
// --context over it, and what only we know.
func (a *app) context(s *settings.Settings, x *settings.Expander) json.RawMessage {
	facts := map[string]json.RawMessage{"sandboxed": json.RawMessage("false")}
	for _, n := range s.RawNamed("context") {
		value, err := expandJSON(n.JSON, x.Expand)
		if err != nil {
			a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "context_unset",
				Message: fmt.Sprintf("%s: context.%s is left out: %s", n.Origin, n.Name, err)})
			continue
		}
		facts[n.Name] = value
	}
	for _, pair := range a.contextFlags {
		facts[pair.name] = pair.value
	}
	set := func(name, value string) {
		if text, err := json.Marshal(value); err == nil && value != "" {
			facts[name] = text
		}
	}
	set("channel", s.Globals.Channel)
	set("workspace", s.Workspace)
	set("projectRoot", s.ProjectRoot)
	out, err := json.Marshal(facts)
	if err != nil {
		return json.RawMessage("{}") // each value is JSON already
	}
	return out
}

// fact is one fact of the context as text, "" where it is not set or no text
// or number.
func (a *app) fact(s *settings.Settings, name string) string {
	var value json.RawMessage
	for _, n := range s.RawNamed("context") {
		if n.Name == name {
			// One that does not expand is told of where the context is used.
			value, _ = expandJSON(n.JSON, settings.NewExpander(s.ProjectRoot, a.environ).Expand)
		}
	}
	for _, pair := range a.contextFlags {
		if pair.name == name {
			value = pair.value
		}
	}
	var text string
	var number json.Number
	if json.Unmarshal(value, &text) != nil && json.Unmarshal(value, &number) == nil {
		text = number.String()
	}
	return text
}

// contextPair is one --context k=v.
type contextPair struct {
	name  string
	value json.RawMessage
}

// readContext reads --context k=v and TOOLREG_CONTEXT, a JSON object. Numbers,
// true and false are taken as such; k:=JSON is taken as it stands.
func readContext(flags []string, environ []string) ([]contextPair, error) {
	var out []contextPair
	if text, _ := lookupEnv(environ, "TOOLREG_CONTEXT"); text != "" {
		var facts map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &facts) != nil {
			return nil, &usageError{err: fmt.Errorf("TOOLREG_CONTEXT is not a JSON object"), hint: `for example {"agentId":"a1"}`}
		}
		for k, v := range facts {
			out = append(out, contextPair{k, v})
		}
	}
	for _, f := range flags {
		name, text, ok := strings.Cut(f, "=")
		raw := strings.HasSuffix(name, ":")
		name = strings.TrimSuffix(name, ":")
		if !ok || name == "" {
			return nil, &usageError{err: fmt.Errorf("--context %q is not k=v", f), hint: "for example --context sandboxed=true"}
		}
		value := json.RawMessage(text)
		literal := text == "true" || text == "false" || text != "" && strings.Trim(text, "0123456789.eE+-") == ""
		switch {
		case raw && !json.Valid(value):
			return nil, &usageError{err: fmt.Errorf("--context %s:= wants JSON", name)}
		case !raw && !(literal && json.Valid(value)):
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			value = quoted
		}
		out = append(out, contextPair{name, value})
	}
	return out, nil
}
