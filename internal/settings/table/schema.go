package table

import (
	"encoding/json"
	"strings"
)

// schemaAddress names the dialect of the published schema.
const schemaAddress = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON Schema of a settings file, for `toolreg settings
// schema` and for editors. It is generated from the table that the reader uses.
func Schema() json.RawMessage {
	root := schemaObject("Settings of toolreg")
	root["$schema"] = schemaAddress
	// A setting that is a group too, such as scripts, comes after its group.
	for _, groups := range []bool{true, false} {
		for _, s := range all() {
			for _, name := range []string{s.Name, s.Twin} {
				if name != "" && strings.Contains(name, ".") == groups {
					insert(root, strings.Split(name, "."), schemaOf(&s))
				}
			}
		}
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return json.RawMessage("true") // plain maps always encode
	}
	return out
}

func schemaObject(description string) map[string]any {
	return map[string]any{"type": "object", "description": description,
		"properties": map[string]any{}, "additionalProperties": false}
}

// insert puts a setting into the groups named by the dots in its name.
func insert(object map[string]any, path []string, schema map[string]any) {
	properties, ok := object["properties"].(map[string]any)
	if !ok { // only for a group inside a foreign setting, which the table does not have
		return
	}
	if len(path) == 1 {
		if group := properties[path[0]]; group != nil {
			if schema["type"] == nil { // a boolean or text that belongs to another program
				schema["type"] = []string{"boolean", "string", "null"}
			}
			schema = map[string]any{"anyOf": []any{group, schema}}
		}
		properties[path[0]] = schema
		return
	}
	group, ok := properties[path[0]].(map[string]any)
	if !ok {
		group = schemaObject("Group of settings")
		properties[path[0]] = group
	}
	insert(group, path[1:], schema)
}

func schemaOf(s *Row) map[string]any {
	out := typeSchema(s)
	if s.Doc != "" {
		out["description"] = s.Doc
	}
	if s.Foreign && s.Name != "$schema" {
		out["description"] = "Belongs to another program; ignored."
	}
	if s.Default != "" {
		out["default"] = json.RawMessage(s.Default)
	}
	return out
}

func typeSchema(s *Row) map[string]any {
	text := map[string]any{"type": "string"}
	words := map[string]any{"type": "array", "items": text}
	switch s.Type {
	case String:
		return map[string]any{"type": "string"}
	case Bool:
		return map[string]any{"type": "boolean"}
	case Int:
		return map[string]any{"type": "integer", "minimum": 0}
	case Duration, Size:
		return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 0}, text}}
	case Keep:
		return map[string]any{"anyOf": []any{
			map[string]any{"type": "boolean"}, map[string]any{"type": "integer", "minimum": 0}, text,
			map[string]any{"type": "object"},
		}}
	case Choice:
		return map[string]any{"enum": s.Choices}
	case Network:
		return map[string]any{
			"anyOf": []any{map[string]any{"enum": []string{NetworkNone, NetworkLoopback, NetworkAll}}, words},
		}
	case Command:
		return map[string]any{"anyOf": []any{text, words}}
	case Strings:
		if len(s.Choices) > 0 {
			words["items"] = map[string]any{"enum": s.Choices}
		}
		return words
	case Pairs:
		return map[string]any{"type": "object", "additionalProperties": text}
	case Object:
		return fieldsSchema(s)
	case Named:
		return map[string]any{"type": "object", "additionalProperties": fieldsSchema(s)}
	case Objects:
		return map[string]any{"type": "array", "items": fieldsSchema(s)}
	case OneOrMore:
		return map[string]any{"anyOf": []any{fieldsSchema(s),
			map[string]any{"type": "array", "items": fieldsSchema(s)}}}
	case Addresses:
		return map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{text, fieldsSchema(s)}}}
	case Scopes:
		return map[string]any{"anyOf": []any{words, map[string]any{"type": "object", "additionalProperties": text}}}
	case Calls:
		return map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{text, fieldsSchema(s.Entry)}}}
	case RawNamed:
		return map[string]any{"type": "object"}
	}
	return map[string]any{}
}

func fieldsSchema(s *Row) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for i := range s.Fields {
		properties[s.Fields[i].Name] = schemaOf(&s.Fields[i])
		if s.Fields[i].Required {
			required = append(required, s.Fields[i].Name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
