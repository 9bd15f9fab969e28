package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// Limits above which there is a finding.
const (
	advisedTools = 40
	manyTokens   = 10_000
	fatTool      = 2_000 // tokens
)

// advice returns findings about the definitions themselves, regardless of the
// provider.
func advice(defs []registry.Definition) []Finding {
	var out []Finding
	total := 0
	for i := range defs {
		d := &defs[i]
		tokens := provider.Format{}.Tokens([]byte(d.Name + d.Description + string(d.InputSchema)))
		total += tokens
		out = append(out, adviseTool(d, tokens)...)
	}
	if len(defs) > advisedTools {
		out = append(out, Finding{Severity: registry.SeverityInfo, Code: "many_tools", Message: fmt.Sprintf("there are %d tools; models choose worse among many", len(defs)), Hint: "declare only those that the task needs, or let the model search for the others with toolreg schema --defer auto"})
	}
	if total > manyTokens {
		out = append(out, Finding{Severity: registry.SeverityInfo, Code: "many_tokens", Message: fmt.Sprintf("the declarations cost about %d tokens in every request", total), Hint: "toolreg list --cost shows the cost of each tool"})
	}
	return out
}

func adviseTool(d *registry.Definition, tokens int) []Finding {
	var out []Finding
	note := func(severity registry.Severity, code, message, hint string) {
		out = append(out, Finding{Severity: severity, Code: code, Tool: d.Name, Message: message, Hint: hint})
	}
	if strings.TrimSpace(d.Description) == "" {
		note(registry.SeverityInfo, "description_missing", "it has no description, but models need one to choose a tool", "")
	}
	text := d.Name + d.Description
	schema, err := jsonx.Parse(d.InputSchema, jsonx.Options{Depth: registry.MaxDepth})
	if err == nil {
		text += string(schema.AppendTo(nil))
	}
	if names := undescribed(schema); len(names) > 0 {
		note(registry.SeverityInfo, "param_description_missing", "params without a description: "+listNames(names), "")
	}
	if tokens > fatTool {
		note(registry.SeverityInfo, "tool_large", fmt.Sprintf("its declaration costs about %d tokens in every request", tokens), "toolreg list --cost shows all")
	}
	if r, ok := invisible(text); ok {
		note(registry.SeverityWarning, "text_invisible", fmt.Sprintf("its definition contains the invisible character %U, which models read but people cannot see", r), "inspect it with toolreg list "+d.Name)
	}
	return out
}

// undescribed returns the names of top-level params that have no description.
func undescribed(schema *jsonx.Value) []string {
	properties := schema.Get("properties")
	if properties == nil {
		return nil
	}
	var out []string
	for _, m := range properties.Members {
		if strings.TrimSpace(m.Value.Get("description").Text()) == "" {
			out = append(out, m.Name)
		}
	}
	return out
}

// invisible returns the first invisible character: a format character, or a control
// character other than white space.
func invisible(text string) (rune, bool) {
	for _, r := range text {
		if unicode.Is(unicode.Cf, r) && r != '\u200d' || unicode.IsControl(r) && !unicode.IsSpace(r) {
			return r, true
		}
	}
	return 0, false
}

// declaredSchema returns the schema of params in a declaration, and its key. It
// returns nil for text formats and if there is no declaration.
func declaredSchema(f provider.Format, data []byte) (schema *jsonx.Value, key string) {
	if f.Text {
		return nil, ""
	}
	isMember := f.Name == "json-schema" // a key with its value
	if isMember {
		data = slices.Concat([]byte("{"), data, []byte("}"))
	}
	n, err := jsonx.Parse(data, jsonx.Options{})
	if err != nil {
		return nil, ""
	}
	if isMember && len(n.Members) == 1 {
		return n.Members[0].Value, ""
	}
	return schemaIn(n)
}

// schemaIn returns the schema in a declaration of any format.
func schemaIn(n *jsonx.Value) (schema *jsonx.Value, key string) {
	for _, wrapper := range []string{"function", "toolSpec"} {
		if inner := n.Get(wrapper); inner != nil {
			n = inner
		}
	}
	if schema := n.Get("inputSchema").Get("json"); schema != nil {
		return schema, "json"
	}
	for _, key := range []string{"parameters", "parametersJsonSchema", "input_schema", "inputSchema"} {
		if schema := n.Get(key); schema != nil {
			return schema, key
		}
	}
	return nil, ""
}
