package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

type object = map[string]any

// dashed is the rule for names of OpenAI ("a-z, A-Z, 0-9, or contain
// underscores and dashes, with a maximum length of 64"), Mistral and Bedrock;
// Anthropic takes 128.
var (
	dashed     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	mcpName    = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)
	geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)
	paramName  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// plainRoot checks the root of a schema of params as OpenAI and Anthropic do.
func plainRoot(schema object) error {
	if schema["type"] != "object" {
		return fmt.Errorf("its type is %v", schema["type"])
	}
	for _, refused := range []string{"oneOf", "anyOf", "allOf"} {
		if _, ok := schema[refused]; ok {
			return fmt.Errorf("%s stands at its root", refused)
		}
	}
	return nil
}

// newSchema2020 compiles a schema as one of draft 2020-12, which Anthropic
// does, with its metaschema.
func newSchema2020(raw []byte) error {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.LoadURL = nil
	var schema object
	if err := json.Unmarshal(raw, &schema); err != nil {
		return err
	}
	delete(schema, "$schema") // whatever it claims
	raw, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	if err := c.AddResource("mem:///schema", bytes.NewReader(raw)); err != nil {
		return err
	}
	if _, err := c.Compile("mem:///schema"); err != nil && !strings.Contains(err.Error(), "is not valid 'regex'") {
		return err
	}
	return nil
}

// eachSchema calls f for a schema and all within.
func eachSchema(schema any, path string, f func(schema object, path string) error) error {
	s, ok := schema.(object)
	if !ok {
		return nil
	}
	if err := f(s, path); err != nil {
		return err
	}
	for keyword, value := range s {
		here := path + "/" + keyword
		switch keyword {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			m, _ := value.(object)
			for name, sub := range m {
				if err := eachSchema(sub, here+"/"+name, f); err != nil {
					return err
				}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			l, _ := value.([]any)
			for i, sub := range l {
				if err := eachSchema(sub, fmt.Sprintf("%s/%d", here, i), f); err != nil {
					return err
				}
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems":
			if err := eachSchema(value, here, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func typesOf(schema object) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, v := range t {
			s, _ := v.(string)
			out = append(out, s)
		}
		return out
	}
	return nil
}

// openAIRules are the rules for parameters that are not strict: a plain root
// with properties, no list without items.
func openAIRules(schema object) error {
	if err := plainRoot(schema); err != nil {
		return err
	}
	if _, ok := schema["properties"].(object); !ok {
		return fmt.Errorf("it has no properties")
	}
	for _, refused := range []string{"enum", "not"} {
		if _, ok := schema[refused]; ok {
			return fmt.Errorf("%s stands at its root", refused)
		}
	}
	return eachSchema(schema, "", func(s object, path string) error {
		if _, has := s["items"]; !has && slices.Contains(typesOf(s), "array") {
			return fmt.Errorf("%s: a list does not say what it holds", path)
		}
		return nil
	})
}

// strictKeywords are those of OpenAI's guide to structured outputs, section
// "supported schemas", with the texts that it shows in its examples.
func strictKeywords() []string {
	return []string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs", "definitions",
		"title", "description", "pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems"}
}

// strictRules are OpenAI's rules for strict schemas: objects closed, all
// properties required, a subset of keywords, 5,000 properties, 10 levels, 1,000
// values of enums, 120,000 characters of names and values.
func strictRules(schema object) error {
	if err := openAIRules(schema); err != nil {
		return err
	}
	properties, values, characters := 0, 0, 0
	err := eachSchema(schema, "", func(s object, path string) error {
		for keyword, value := range s {
			if !slices.Contains(strictKeywords(), keyword) {
				return fmt.Errorf("%s: keyword %s", path, keyword)
			}
			if keyword == "$defs" || keyword == "definitions" {
				for name := range value.(object) {
					characters += len(name)
				}
			}
		}
		if list, ok := s["enum"].([]any); ok {
			values += len(list)
			for _, v := range list {
				characters += len(fmt.Sprint(v))
			}
		}
		if ref, ok := s["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return fmt.Errorf("%s: a reference to %s", path, ref)
		}
		if s["type"] == nil && s["$ref"] == nil && s["anyOf"] == nil {
			return fmt.Errorf("%s: no type", path)
		}
		if !slices.Contains(typesOf(s), "object") {
			return nil
		}
		if s["additionalProperties"] != false {
			return fmt.Errorf("%s: an object is not closed", path)
		}
		named, _ := s["properties"].(object)
		required, _ := s["required"].([]any)
		if named == nil || len(named) != len(required) {
			return fmt.Errorf("%s: %d properties, %d required", path, len(named), len(required))
		}
		for name := range named {
			properties++
			characters += len(name)
			if !slices.Contains(required, any(name)) {
				return fmt.Errorf("%s: %s is not required", path, name)
			}
		}
		return nil
	})
	switch depth := nesting(schema); {
	case err != nil:
		return err
	case depth > 10:
		return fmt.Errorf("it is nested %d deep", depth)
	case properties > 5000 || values > 1000 || characters > 120_000:
		return fmt.Errorf("it has %d properties, %d values, %d characters", properties, values, characters)
	}
	return nil
}

// nesting counts the levels of objects and lists.
func nesting(schema any) int {
	s, ok := schema.(object)
	if !ok {
		return 0
	}
	deepest := 0
	for keyword, value := range s {
		switch keyword {
		case "properties", "$defs", "definitions":
			m, _ := value.(object)
			for _, sub := range m {
				deepest = max(deepest, nesting(sub))
			}
		case "anyOf":
			l, _ := value.([]any)
			for _, sub := range l {
				deepest = max(deepest, nesting(sub)-1)
			}
		case "items":
			deepest = max(deepest, nesting(value))
		}
	}
	return deepest + 1
}
