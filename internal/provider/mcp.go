package provider

import (
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
)

// mcp writes the result of tools/list (MCP revision 2025-11-25): inputSchema
// and outputSchema of type object, names of 1 to 128 letters, digits,
// underscores, dashes and dots.
func mcp() Format {
	return Format{
		Name:    "mcp",
		Summary: "an MCP tools/list result",
		expects: "a tools/call request, its params, or a list of these",
		decode:  decodeMCP,
		reply:   replyMCP,
		rule:    nameRule{extra: ".-", max: 128},
		layout: func(Options) layout {
			return layout{open: `{"tools":[`, between: ",", close: "]}", empty: `{"tools":[]}`}
		},
		prepare: func(e *encoder, t *tool) {
			e.noStrict()
			e.changed(t, slices.Concat(rewrite.TypeRoot(t.schema), rewrite.ObjectProperties(t.schema)))
		},
		write: func(e *encoder, t *tool) {
			e.raw(`{"name":`)
			e.string(t.name)
			if title := t.def.Title(); title != "" && title != t.name {
				e.raw(`,"title":`)
				e.string(title)
			}
			if t.def.Description != "" {
				e.raw(`,"description":`)
				e.string(t.def.Description)
			}
			e.raw(`,"inputSchema":`)
			e.value(t.schema)
			e.further(t, "outputSchema", t.def.MCPOutputSchema(), e.outputSchema)
			e.further(t, "annotations", t.def.Annotations, e.object)
			e.further(t, "execution", t.def.MCP.Execution, e.object)
			e.further(t, "icons", t.def.MCP.Icons, e.array)
			e.further(t, "_meta", t.def.MCP.Meta, e.object)
			e.raw("}")
		},
	}
}

// further writes another value of a definition, or reports why it is omitted. The
// tool's schema must not be used afterwards.
func (e *encoder) further(t *tool, key string, raw []byte, read func([]byte) (*jsonx.Value, error)) {
	if jsonx.IsNull(raw) {
		return
	}
	n, err := read(raw)
	if err != nil {
		e.diagnose(registry.SeverityWarning, "declaration_partly_left_out", t,
			fmt.Sprintf("declared without its %s: %v", key, err), "fix it at the source of the tool")
		return
	}
	e.raw(`,"` + key + `":`)
	e.value(n)
}
