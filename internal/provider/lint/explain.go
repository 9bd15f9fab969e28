package lint

import (
	"bytes"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// Explanation describes the differences between a tool and its declaration.
type Explanation struct {
	Tool  string `json:"tool"`
	Name  string `json:"name,omitempty"`  // declared name
	Field string `json:"field,omitempty"` // field of the declaration that has the schema
	// Changes describes the changes. It is empty if only the syntax differs.
	Changes []string `json:"changes"`
	// LeftOut is the reason why the tool is not declared, or "".
	LeftOut string `json:"leftOut,omitempty"`
	// Own and Declared are the tool's own schema and the declared one, indented.
	Own      string `json:"-"`
	Declared string `json:"-"`
}

// Explain encodes the definitions and describes the changes to each.
func Explain(f provider.Format, defs []registry.Definition, opts provider.Options) []Explanation {
	out, diags := f.Encode(defs, opts)
	declared := make(map[string]provider.Declaration, len(out.Declarations))
	for _, d := range out.Declarations {
		declared[d.Tool] = d
	}
	list := make([]Explanation, len(defs))
	for i := range defs {
		d := declared[defs[i].Name]
		e := Explanation{Tool: defs[i].Name, Name: d.Name, Changes: []string{}, Own: pretty(defs[i].InputSchema)}
		if schema, field := declaredSchema(f, d.Data); schema != nil {
			e.Field, e.Declared = field, pretty(schema.AppendTo(nil))
		}
		e.addAll(diags)
		list[i] = e
	}
	return list
}

// addAll adds the diagnostics about the tool.
func (e *Explanation) addAll(diags []registry.Diagnostic) {
	for _, d := range diags {
		switch {
		case d.Tool != e.Tool:
		case d.Code == "declaration_left_out":
			e.LeftOut = d.Message
		default:
			e.Changes = append(e.Changes, d.Message)
		}
	}
}

func pretty(schema []byte) string {
	var b bytes.Buffer
	if len(schema) == 0 || json.Indent(&b, schema, "", "  ") != nil {
		return string(schema)
	}
	return b.String() + "\n"
}
