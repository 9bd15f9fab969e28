package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// cut writes a small part of a large document for the tests: the wanted operations, those
// that share a tag with many of them, and every eighth of the others, with their words and
// the names of their params, without results and without what is inside of bodies.
func cut(d document, wanted []string, to string) error {
	data, err := os.ReadFile(d.file)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	c := cutter{doc}
	paths := map[string]any{}
	for path, item := range doc["paths"].(map[string]any) {
		kept := map[string]any{}
		for method, op := range item.(map[string]any) {
			op, ok := op.(map[string]any)
			if !ok {
				continue
			}
			id, _ := op["operationId"].(string)
			sum := 0
			for _, b := range []byte(id) {
				sum += int(b)
			}
			if slices.Contains(wanted, id) || strings.HasPrefix(id, "issues/") ||
				strings.HasPrefix(id, "pulls/") || sum%8 == 0 {
				kept[method] = c.operation(op)
			}
		}
		if len(kept) > 0 {
			paths[path] = kept
		}
	}
	var out bytes.Buffer
	head, err := json.Marshal(map[string]any{"openapi": doc["openapi"], "info": doc["info"], "servers": doc["servers"]})
	if err != nil {
		return err
	}
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	separator := ",\n\"paths\": {\n"
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		line, err := json.Marshal(paths[path])
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s%q: %s", separator, path, line)
		separator = ",\n"
	}
	out.WriteString("}}\n")
	return os.WriteFile(to, out.Bytes(), 0o644)
}

type cutter struct{ doc map[string]any }

func (c cutter) resolve(v any) map[string]any {
	m, _ := v.(map[string]any)
	for ref, ok := m["$ref"].(string); ok; ref, ok = m["$ref"].(string) {
		var at any = c.doc
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
		m, _ = at.(map[string]any)
	}
	return m
}

func (c cutter) operation(op map[string]any) map[string]any {
	out := map[string]any{"responses": map[string]any{"200": map[string]any{"description": "OK"}}}
	for _, key := range []string{"operationId", "summary", "tags"} {
		out[key] = op[key]
	}
	out["description"] = short(op["description"], 240)
	var params []any
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		p := c.resolve(p)
		params = append(params, map[string]any{
			"name":        p["name"],
			"in":          p["in"],
			"required":    p["required"] == true,
			"description": short(p["description"], 80),
			"schema":      small(c.resolve(p["schema"])),
		})
	}
	out["parameters"] = params
	content, _ := c.resolve(op["requestBody"])["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	if properties, ok := c.resolve(media["schema"])["properties"].(map[string]any); ok {
		kept := map[string]any{}
		for name, schema := range properties {
			kept[name] = small(c.resolve(schema))
		}
		out["requestBody"] = map[string]any{"content": map[string]any{
			"application/json": map[string]any{"schema": map[string]any{"type": "object", "properties": kept}},
		}}
	}
	return out
}

// short returns the beginning of a text, up to the end of a word.
func short(text any, most int) string {
	s, _ := text.(string)
	if len(s) <= most {
		return s
	}
	return s[:max(strings.LastIndexByte(s[:most], ' '), 0)]
}

// small returns the schema without what is inside of it.
func small(schema map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"type", "enum", "default"} {
		if v, ok := schema[key]; ok {
			out[key] = v
		}
	}
	if description, ok := schema["description"]; ok {
		out["description"] = short(description, 80)
	}
	if out["type"] == "array" {
		out["items"] = map[string]any{}
	}
	return out
}
