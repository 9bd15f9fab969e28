package providers_test

import (
	"fmt"
	"testing"
)

// mistralTool has the fields of Tool and Function in Mistral's OpenAPI
// document; there is no SDK for Go of theirs.
type mistralTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Strict      *bool  `json:"strict"`
		Parameters  object `json:"parameters"`
	} `json:"function"`
}

func (m *mistralTool) check() error {
	f := m.Function
	switch {
	case m.Type != "function" || !dashed.MatchString(f.Name):
		return fmt.Errorf("type %q, name %q", m.Type, f.Name)
	case f.Parameters["type"] != "object":
		return fmt.Errorf("%s: its root is of type %v", f.Name, f.Parameters["type"])
	}
	return nil
}

func TestMistral(t *testing.T) {
	names := newNames(t)
	for _, raw := range declarations(t, "mistral", "--request") {
		var tool mistralTool
		if err := decodeStrictly(raw, &tool); err != nil {
			t.Fatal(err)
		}
		if err := tool.check(); err != nil {
			t.Error(err)
		}
		names.add(tool.Function.Name)
	}
	names.want(len(names.seen), declarable())
}
