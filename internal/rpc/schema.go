package rpc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/typescript"
)

// exchange is a message with its answer. result is nil for a notification.
type exchange struct {
	name           string
	params, result reflect.Type
	types          string // what the names of its types begin with; "" means the name
}

// Messages are all messages of a connection, from which their schema and types are generated.
type Messages struct {
	Methods []Method // the first is that which comes first
	// Types are the JSON Schemas of types that encode themselves.
	Types map[reflect.Type]string
}

func (m *Messages) requests() []exchange {
	var out []exchange
	for _, method := range m.Methods {
		out = append(out, exchange{method.Name, method.Params, method.Result, ""})
	}
	return append(out, exchange{cancelMethod, reflect.TypeFor[CancelParams](), reflect.TypeFor[CancelResult](), ""})
}

func questions() []exchange {
	return []exchange{
		{"approve", reflect.TypeFor[Approve](), reflect.TypeFor[exec.Reply](), ""},
		{"elicit", reflect.TypeFor[Elicit](), reflect.TypeFor[ElicitResult](), ""},
		{"sample", reflect.TypeFor[Sample](), reflect.TypeFor[json.RawMessage](), ""},
		{"run", reflect.TypeFor[Run](), reflect.TypeFor[json.RawMessage](), ""},
	}
}

func notifications() []exchange {
	return []exchange{
		{"progress", reflect.TypeFor[Progress](), nil, ""},
		{"output", reflect.TypeFor[Output](), nil, ""}, {"log", reflect.TypeFor[Log](), nil, ""},
		{"diagnostic", reflect.TypeFor[Diagnostic](), nil, ""},
		{"changed", reflect.TypeFor[Changed](), nil, ""},
		{cancelMethod, reflect.TypeFor[RunCancel](), nil, "runCancel"},
	}
}

// schemaOf returns the schema of a type. closed says that objects have no other members.
func (m *Messages) schemaOf(t reflect.Type, closed bool) (*jsonschema.Schema, error) {
	own := map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}
	for t, text := range m.Types {
		s := &jsonschema.Schema{}
		if err := json.Unmarshal([]byte(text), s); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", t, err)
		}
		own[t] = s
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: own})
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t, err)
	}
	openObjects(s, closed)
	return s, nil
}

// openObjects allows additional members in objects, except in the outermost if it is closed, and
// removes null from all values, because absent values are left out.
func openObjects(s *jsonschema.Schema, closed bool) {
	if s == nil {
		return
	}
	if s.Properties != nil && !closed {
		s.AdditionalProperties = nil
	}
	switch s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" }); len(s.Types) {
	case 0:
		s.Types = nil
	case 1:
		s.Type, s.Types = s.Types[0], nil
	}
	for _, p := range s.Properties {
		openObjects(p, false)
	}
	openObjects(s.Items, false)
}

func (x *exchange) typeName(part string) string {
	name := cmp.Or(x.types, x.name)
	return strings.ToUpper(name[:1]) + name[1:] + part
}

// each calls f for the types of all messages, in order.
func (m *Messages) each(f func(name string, s *jsonschema.Schema) error) error {
	for _, e := range [][]exchange{m.requests(), questions(), notifications()} {
		for _, x := range e {
			for _, part := range []struct {
				name string
				t    reflect.Type
			}{{"Params", x.params}, {"Result", x.result}} {
				if part.t == nil {
					continue
				}
				// Messages from the host are checked; messages to the host may get more members in
				// the future.
				s, err := m.schemaOf(part.t, part.name == "Params" && x.types == "" && m.method(x.name) ||
					x.name == "approve" && part.name == "Result")
				if err == nil {
					err = f(x.typeName(part.name), s)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (m *Messages) method(name string) bool {
	return slices.ContainsFunc(m.requests(), func(x exchange) bool { return x.name == name })
}

// Schema returns the JSON Schema of all messages, in both directions.
func (m *Messages) Schema() (any, error) {
	defs := map[string]*jsonschema.Schema{"Error": {Type: "object",
		Required: []string{"code", "message"}, Properties: map[string]*jsonschema.Schema{
			"code": {Type: "integer"}, "message": {Type: "string"},
			"data": {Description: "with code -32000: the error as toolreg --json prints it"}}}}
	err := m.each(func(name string, s *jsonschema.Schema) error {
		defs[name] = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	id := &jsonschema.Schema{Types: []string{"string", "number"}}
	ref := func(name string) *jsonschema.Schema { return &jsonschema.Schema{Ref: "#/$defs/" + name} }
	envelope := func(title string, required []string, members map[string]*jsonschema.Schema) *jsonschema.Schema {
		members["jsonrpc"] = &jsonschema.Schema{Const: jsonschema.Ptr[any](version)}
		return &jsonschema.Schema{Title: title, Type: "object",
			Required: append([]string{"jsonrpc"}, required...), Properties: members}
	}
	all := &jsonschema.Schema{Schema: "https://json-schema.org/draft/2020-12/schema",
		Title: "Messages of toolreg rpc, one a line", Defs: defs}
	for _, x := range append(m.requests(), questions()...) {
		required := []string{"id", "method"}
		if params := defs[x.typeName("Params")]; params != nil && len(params.Required) > 0 {
			required = append(required, "params")
		}
		all.AnyOf = append(all.AnyOf,
			envelope(x.name, required,
				map[string]*jsonschema.Schema{"id": id, "method": {Const: jsonschema.Ptr[any](x.name)},
					"params": ref(x.typeName("Params"))}),
			envelope("answer to "+x.name, []string{"id", "result"},
				map[string]*jsonschema.Schema{"id": id, "result": ref(x.typeName("Result"))}))
	}
	for _, x := range notifications() {
		all.AnyOf = append(all.AnyOf,
			envelope(x.name, []string{"method", "params"},
				map[string]*jsonschema.Schema{"method": {Const: jsonschema.Ptr[any](x.name)},
					"params": ref(x.typeName("Params"))}))
	}
	all.AnyOf = append(all.AnyOf,
		envelope("error", []string{"id", "error"},
			map[string]*jsonschema.Schema{"id": {Types: []string{"string", "number", "null"}}, "error": ref("Error")}))
	return all, nil
}

// TypeScript returns the types of all messages.
func (m *Messages) TypeScript() (string, error) {
	var b []byte
	err := m.each(func(name string, s *jsonschema.Schema) error {
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		n, err := jsonx.Parse(data, jsonx.Options{})
		if err != nil {
			return err
		}
		b = append(b, "export type "+name+" = "...)
		b = append(typescript.AppendType(b, n), ";\n\n"...)
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, group := range []struct {
		name, comment string
		of            []exchange
	}{
		{"Requests", "What the host asks.", m.requests()},
		{"Questions", "What toolreg asks the host, if it has the capability of that name.", questions()},
		{"Notifications", "What toolreg tells the host.", notifications()},
	} {
		b = append(typescript.AppendComment(b, "", group.comment), "export interface "+group.name+" {\n"...)
		for _, x := range group.of {
			b = append(b, "  "+x.name+": { params: "+x.typeName("Params")...)
			if x.result != nil {
				b = append(b, "; result: "+x.typeName("Result")...)
			}
			b = append(b, " };\n"...)
		}
		b = append(b, "}\n\n"...)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}
