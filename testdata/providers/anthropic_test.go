package providers_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

func checkAnthropic(raw json.RawMessage) (string, error) {
	var tool anthropic.ToolUnionParam
	if err := decode(raw, &tool); err != nil {
		return "", err
	}
	var d struct {
		Name   string
		Schema json.RawMessage `json:"input_schema"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return "", err
	}
	if !dashed.MatchString(d.Name) {
		return "", fmt.Errorf("the name %q", d.Name)
	}
	return d.Name, checkFlat(d.Name, d.Schema)
}

// checkFlat holds a schema against the rules of Anthropic's models, wherever
// they are served: a plain root, draft 2020-12, tame names of params.
func checkFlat(name string, raw json.RawMessage) error {
	var schema object
	if err := json.Unmarshal(raw, &schema); err != nil {
		return err
	}
	if err := plainRoot(schema); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	properties, _ := schema["properties"].(object)
	for param := range properties {
		if !paramName.MatchString(param) {
			return fmt.Errorf("%s: the param %q", name, param)
		}
	}
	if err := newSchema2020(raw); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func TestAnthropic(t *testing.T) {
	names := newNames(t)
	for _, raw := range declarations(t, "anthropic", "--request") {
		name, err := checkAnthropic(raw)
		if err != nil {
			t.Error(err)
		}
		names.add(name)
	}
	names.want(len(names.seen), declarable(oddParams))
}
