package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/session"
)

// context reads --context k=v and TOOLREG_CONTEXT, a JSON object. Numbers, true
// and false are converted; the value of k:=JSON is JSON.
func (e *Env) context() ([]session.Fact, error) {
	var out []session.Fact
	if text := e.Getenv("TOOLREG_CONTEXT"); text != "" {
		var facts map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &facts) != nil {
			return nil, &UsageError{Err: fmt.Errorf("TOOLREG_CONTEXT is not a JSON object"), Hint: `for example {"agentId":"a1"}`}
		}
		for k, v := range facts {
			out = append(out, session.Fact{Name: k, Value: v})
		}
	}
	flags, err := e.globalFlags().GetStringArray("context")
	if err != nil {
		return nil, err
	}
	for _, f := range flags {
		name, text, ok := strings.Cut(f, "=")
		raw := strings.HasSuffix(name, ":")
		name = strings.TrimSuffix(name, ":")
		if !ok || name == "" {
			return nil, &UsageError{Err: fmt.Errorf("--context %q: expected k=v", f), Hint: "for example --context sandboxed=true"}
		}
		value := json.RawMessage(text)
		literal := text == "true" || text == "false" || text != "" && strings.Trim(text, "0123456789.eE+-") == ""
		switch {
		case raw && !json.Valid(value):
			return nil, &UsageError{Err: fmt.Errorf("--context %s:= needs JSON", name)}
		case !raw && !(literal && json.Valid(value)):
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			value = quoted
		}
		out = append(out, session.Fact{Name: name, Value: value})
	}
	return out, nil
}
