package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// settingsTable lists all settings, with the fields of those that are objects. The kinds of
// programs in the sandbox have the same fields, which are listed once.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| key | type | default | meaning |\n|---|---|---|---|\n")
	first, others := table.SandboxKinds()[0], append(table.SandboxKinds()[1:], "servers")
	for _, s := range table.NewIndex().Rows {
		key, inSandbox := strings.CutPrefix(s.Name, table.Sandbox)
		kind, field, _ := strings.Cut(key, ".")
		switch {
		case s.Foreign, inSandbox && slices.Contains(others, kind):
			continue
		case inSandbox && kind == first:
			s.Name = table.Sandbox + "KIND." + field
			if field == "mode" {
				s.Doc = "Whether to sandbox programs of this kind; by default sandbox.mode, and off for references."
			}
		}
		writeSetting(&b, &s, "")
	}
	return b.String()
}

// writeSetting writes a row and, below it, those of its fields.
func writeSetting(b *strings.Builder, s *table.Row, prefix string) {
	doc := s.Doc
	if prefix == "" {
		doc += map[table.Merge]string{table.Unite: " Combined.", table.ByName: " Merged by name."}[s.Merge]
		if s.FilesOnly {
			doc += " No variable."
		}
	}
	if s.Twin != "" {
		doc += " Also " + code(s.Twin) + "."
	}
	key := prefix + s.Name
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(key), settingType(s), code(s.Default), cell(doc))
	if key == "openapi.NAME.auth.oauth" || key == "serve.profiles.NAME.rules" {
		return // their meaning names the setting whose fields they have
	}
	mark := "."
	switch s.Type {
	case table.Named:
		mark = ".NAME."
	case table.Objects:
		mark = "[]."
	}
	for i := range s.Fields {
		writeSetting(b, &s.Fields[i], key+mark)
	}
}

func settingType(s *table.Row) string {
	switch s.Type {
	case table.Choice:
		return strings.Join(s.Choices, ", ")
	case table.Raw:
		return "any"
	case table.RawNamed, table.Named, table.Object:
		return "object"
	}
	return map[table.Type]string{table.String: "string", table.Bool: "boolean", table.Int: "whole number",
		table.Duration: "duration", table.Size: "size", table.Keep: "boolean or duration",
		table.Network: "none, loopback, all or a list of hosts", table.Command: "command",
		table.Strings: "list of strings", table.Pairs: "object of strings",
		table.Objects: "list of objects", table.Calls: "list of calls", table.Addresses: "list of addresses",
		table.Scopes: "list of scopes, or object of scopes by tool"}[s.Type]
}

// builtinTools returns the built-in tools, to describe them and not to call them.
func builtinTools() ([]registry.Tool, error) {
	tools, _, err := builtin.Source(builtin.Options{}).Discover(context.Background())
	return tools, err
}

// toolReference describes a built-in tool: names, category and params.
func (g *generator) toolReference(name string) (string, error) {
	i := slices.IndexFunc(g.tools, func(t registry.Tool) bool { return t.Name == name })
	if i < 0 {
		return "", fmt.Errorf("unknown built-in tool %s", name)
	}
	t := &g.tools[i]
	var b strings.Builder
	fmt.Fprintf(&b, "Category %s", t.Category)
	if len(t.Aliases) > 0 {
		fmt.Fprintf(&b, "; also called `%s`", strings.Join(t.Aliases, "`, `"))
	}
	if len(t.Permissions) > 0 {
		fmt.Fprintf(&b, "; needs the permission %s", strings.Join(t.Permissions, ", "))
	}
	b.WriteString(".\n\n")
	err := writeParams(&b, t.InputSchema)
	return b.String(), err
}

// writeParams writes a table of the params in the order of the schema.
func writeParams(b *strings.Builder, schema json.RawMessage) error {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := dec.Token(); err != nil || !dec.More() {
		b.WriteString("No params.\n")
		return nil
	}
	b.WriteString("| param | type | meaning |\n|---|---|---|\n")
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var p struct {
			Type        string   `json:"type"`
			Description string   `json:"description"`
			Enum        []string `json:"enum"`
		}
		if err := dec.Decode(&p); err != nil {
			return err
		}
		kind := p.Type
		if len(p.Enum) > 0 {
			kind = strings.Join(p.Enum, ", ")
		}
		if slices.Contains(s.Required, name.(string)) {
			kind += ", required"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", code(name.(string)), kind, cell(p.Description))
	}
	return nil
}
