package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"
)

// decodeStrictly reads into a type that is plain Go and refuses what it does
// not know.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func checkGemini(f *genai.FunctionDeclaration) error {
	switch {
	case !geminiName.MatchString(f.Name):
		return fmt.Errorf("the name %q", f.Name)
	case f.Parameters != nil && f.ParametersJsonSchema != nil:
		return fmt.Errorf("%s has both fields", f.Name)
	case f.Parameters != nil:
		if s := f.Parameters; s.Type == "" && s.AnyOf == nil && s.Properties == nil {
			return nil // {}: no params
		} else if !strings.EqualFold(string(s.Type), string(genai.TypeObject)) {
			return fmt.Errorf("%s: type %s", f.Name, s.Type)
		}
		if err := checkGeminiSchema(f.Parameters); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// checkGeminiSchema holds a schema against what the API refuses beyond the
// fields of its type: no type, an object without properties, a list without
// items, required properties that are not there, values of the wrong type.
func checkGeminiSchema(s *genai.Schema) error {
	known := []genai.Type{genai.TypeString, genai.TypeNumber, genai.TypeInteger, genai.TypeBoolean, genai.TypeArray, genai.TypeObject, genai.TypeNULL}
	typ := genai.Type(strings.ToUpper(string(s.Type)))
	switch {
	case len(s.AnyOf) > 0 && (s.Type != "" || s.Description != "" || s.Default != nil || s.Nullable != nil || s.Properties != nil):
		return fmt.Errorf("anyOf does not stand alone")
	case s.Type == "" && len(s.AnyOf) == 0:
		return fmt.Errorf("a part of it has no type")
	case s.Type != "" && !slices.Contains(known, typ):
		return fmt.Errorf("type %s", s.Type)
	case typ == genai.TypeObject && len(s.Properties) == 0:
		return fmt.Errorf("an object has no properties")
	case typ != genai.TypeObject && len(s.Properties) > 0:
		return fmt.Errorf("a %s has properties", typ)
	case typ == genai.TypeArray && s.Items == nil:
		return fmt.Errorf("a list has no items")
	case typ == genai.TypeString && s.Format != "" && s.Format != "enum" && s.Format != "date-time":
		return fmt.Errorf("a string of format %s", s.Format)
	case len(s.Enum) > 0 && typ != genai.TypeString:
		return fmt.Errorf("an enum of type %s", typ)
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			return fmt.Errorf("%q is required and not there", name)
		}
	}
	for name, sub := range s.Properties {
		if sub == nil {
			return fmt.Errorf("%s is null", name)
		}
		if err := checkGeminiSchema(sub); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, sub := range append(slices.Clone(s.AnyOf), s.Items) {
		if sub == nil {
			continue
		}
		if err := checkGeminiSchema(sub); err != nil {
			return err
		}
	}
	return nil
}

func TestGemini(t *testing.T) {
	tests := []struct {
		name       string
		args       []string
		parameters bool
		left       []string
	}{
		{"as servers' tools", nil, false, nil},
		{"by parameters", []string{"--gemini-parameters"}, true, unsayable()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := toolreg(t, shared.settings, "", append([]string{"schema", "--format", "gemini", "--request", "--source", "mcp:*"}, tt.args...)...)
			var tools []*genai.Tool
			if err := decodeStrictly(out, &tools); err != nil {
				t.Fatal(err)
			}
			names := newNames(t)
			for _, f := range tools[0].FunctionDeclarations {
				if err := checkGemini(f); err != nil {
					t.Error(err)
				}
				if tt.parameters != (f.ParametersJsonSchema == nil) {
					t.Errorf("%s is declared by the other field", f.Name)
				}
				names.add(f.Name)
			}
			names.want(len(names.seen), declarable(tt.left...))
		})
	}
}

// TestGeminiDiscovered declares every tool as one of a discovery command, whose
// tools go by parameters unless those cannot say the schema.
func TestGeminiDiscovered(t *testing.T) {
	settings, want := discoverySettings(t)
	out := toolreg(t, settings, "", "schema", "--format", "gemini", "--request", "--source", "command")
	var tools []*genai.Tool
	if err := decodeStrictly(out, &tools); err != nil {
		t.Fatal(err)
	}
	byParameters := 0
	for _, f := range tools[0].FunctionDeclarations {
		if err := checkGemini(f); err != nil {
			t.Error(err)
		}
		if f.ParametersJsonSchema == nil {
			byParameters++
		}
	}
	if got := len(tools[0].FunctionDeclarations); got != want || byParameters < want*3/4 {
		t.Errorf("%d of %d declared, %d by parameters", got, want, byParameters)
	}
}
