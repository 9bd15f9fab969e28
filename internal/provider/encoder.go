package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
)

// changed reports changes to a tool's schema, if there are any.
func (e *encoder) changed(t *tool, changes []string) {
	if len(changes) > 0 {
		e.diagnose(registry.SeverityInfo, "schema_changed", t,
			fmt.Sprintf("schema changed for %s: %s", e.format.Name, strings.Join(changes, "; ")),
			"calls are still checked against the tool's own schema")
	}
}

func (e *encoder) diagnose(severity registry.Severity, code string, t *tool, message, hint string) {
	e.diags = append(e.diags, registry.Diagnostic{
		Severity: severity, Code: code, Source: t.def.Source, Tool: t.def.Name, Message: message, Hint: hint,
	})
}

// flattened makes the root of a tool's schema a plain object, without the keywords that APIs reject there and without the given
// further ones. It returns the changes.
func flattened(t *tool, further ...string) []string {
	return slices.Concat(
		rewrite.InlineRoot(t.schema),
		rewrite.FlattenRoot(t.schema, further...),
		rewrite.DropDeadRefs(t.schema, t.def.InputSchema), // last, because a target may have been flattened
		rewrite.TypeRoot(t.schema),
	)
}

// named begins an object with name and description.
func (e *encoder) named(t *tool) {
	e.raw(`{"name":`)
	e.string(t.name)
	e.raw(`,"description":`)
	e.string(t.def.Description)
}

// noStrict reports once that the format does not support --strict. Anthropic and
// Bedrock have strict tools, but reject requests with many of them.
func (e *encoder) noStrict() {
	if !e.opts.Strict {
		return
	}
	e.opts.Strict = false
	e.diags = append(e.diags, registry.Diagnostic{
		Severity: registry.SeverityWarning, Code: "strict_ignored",
		Message: "--strict has no effect with format " + e.format.Name + "",
		Hint:    "it applies to formats openai and openai-responses",
	})
}

// raw writes text unchanged.
func (e *encoder) raw(s string) { e.out = append(e.out, s...) }

// string writes a JSON string.
func (e *encoder) string(s string) { e.out = jsonx.AppendQuote(e.out, s) }

// value writes a JSON value.
func (e *encoder) value(n *jsonx.Value) { e.out = n.AppendTo(e.out) }
