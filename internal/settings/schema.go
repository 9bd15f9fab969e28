package settings

import (
	"encoding/json"
	"strings"
)

// schemaAddress names the dialect of the published schema.
const schemaAddress = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON Schema of a settings file, for `toolreg settings
// schema` and for editors. It is made of the same table as the reader.
func Schema() json.RawMessage {
	root := schemaObject("Settings of toolreg")
	root["$schema"] = schemaAddress
	for _, s := range table() {
		for _, name := range []string{s.name, s.twin} {
			if name != "" {
				place(root, strings.Split(name, "."), schemaOf(&s))
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
	return map[string]any{"type": "object", "description": description, "properties": map[string]any{}, "additionalProperties": false}
}

// place puts a setting below the groups that the dots of its name make.
func place(object map[string]any, path []string, schema map[string]any) {
	properties, ok := object["properties"].(map[string]any)
	if !ok { // a group of the table below a foreign setting would end here
		return
	}
	if len(path) == 1 {
		properties[path[0]] = schema
		return
	}
	group, ok := properties[path[0]].(map[string]any)
	if !ok {
		group = schemaObject("Group of settings")
		properties[path[0]] = group
	}
	place(group, path[1:], schema)
}

func schemaOf(s *setting) map[string]any {
	out := typeSchema(s)
	if s.doc != "" {
		out["description"] = s.doc
	}
	if s.foreign && s.name != "$schema" {
		out["description"] = "Of another program; without meaning here."
	}
	if s.def != "" {
		out["default"] = json.RawMessage(s.def)
	}
	return out
}

func typeSchema(s *setting) map[string]any {
	text := map[string]any{"type": "string"}
	words := map[string]any{"type": "array", "items": text}
	switch s.typ {
	case typeString:
		return map[string]any{"type": "string"}
	case typeBool:
		return map[string]any{"type": "boolean"}
	case typeInt:
		return map[string]any{"type": "integer", "minimum": 0}
	case typeDuration, typeSize:
		return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 0}, text}}
	case typeChoice:
		return map[string]any{"enum": s.choices}
	case typeCommand:
		return map[string]any{"anyOf": []any{text, words}}
	case typeStrings:
		return words
	case typePairs:
		return map[string]any{"type": "object", "additionalProperties": text}
	case typeObject:
		return fieldsSchema(s)
	case typeNamed:
		return map[string]any{"type": "object", "additionalProperties": fieldsSchema(s)}
	case typeObjects:
		return map[string]any{"type": "array", "items": fieldsSchema(s)}
	case typeRawNamed:
		return map[string]any{"type": "object"}
	}
	return map[string]any{}
}

func fieldsSchema(s *setting) map[string]any {
	properties := map[string]any{}
	required := []string{}
	for i := range s.fields {
		properties[s.fields[i].name] = schemaOf(&s.fields[i])
		if s.fields[i].required {
			required = append(required, s.fields[i].name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
