package declare

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Finding is one thing that lint noticed. Severity is error for what a provider
// would refuse, warning for what it would ignore or what had to be changed, and
// info for advice.
type Finding struct {
	Severity registry.Severity `json:"severity"`
	Code     string            `json:"code"`
	Formats  []string          `json:"formats,omitempty"` // none: it concerns every format
	Tool     string            `json:"tool,omitempty"`    // "": it concerns all tools together
	Pointer  string            `json:"pointer,omitempty"` // into the declared schema
	Message  string            `json:"message"`
	Hint     string            `json:"hint,omitempty"`
}

// Lint declares the definitions in each format and returns what was noticed:
// tools in their order, for each the worst first.
func Lint(formats []Format, defs []registry.Definition, opts Options) []Finding {
	opts.Strict = false
	var all []Finding
	for _, f := range formats {
		all = append(all, f.lint(defs, opts)...)
	}
	all = append(all, advice(defs)...)
	return sortedFindings(joinFormats(all, len(formats)), defs)
}

// joinFormats makes one finding of those that differ by format alone.
func joinFormats(all []Finding, formats int) []Finding {
	at := map[string]int{}
	var out []Finding
	for _, f := range all {
		key := strings.Join([]string{string(f.Severity), f.Code, f.Tool, f.Pointer, f.Message}, "\x00")
		if i, ok := at[key]; ok {
			out[i].Formats = append(out[i].Formats, f.Formats...)
			continue
		}
		at[key] = len(out)
		out = append(out, f)
	}
	for i := range out {
		if formats > 1 && len(out[i].Formats) == formats {
			out[i].Formats = nil
		}
	}
	return out
}

func sortedFindings(all []Finding, defs []registry.Definition) []Finding {
	place := make(map[string]int, len(defs))
	for i := range defs {
		place[defs[i].Name] = i + 1
	}
	grade := map[registry.Severity]int{registry.SeverityError: 0, registry.SeverityWarning: 1, registry.SeverityInfo: 2}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(place[a.Tool], place[b.Tool]), cmp.Compare(grade[a.Severity], grade[b.Severity]))
	})
	return all
}

// lint declares in one format and looks at what came of it.
func (f Format) lint(defs []registry.Definition, opts Options) []Finding {
	out, diags := f.Encode(defs, opts)
	found := make([]Finding, 0, len(diags))
	for _, d := range diags {
		found = append(found, f.diagnosed(d))
	}
	if limit := f.maxTools(); limit > 0 && len(out.Declarations) > limit {
		found = append(found, Finding{Severity: registry.SeverityError, Code: "too_many_tools", Formats: []string{f.Name},
			Message: fmt.Sprintf("%d tools are declared; the API takes %d", len(out.Declarations), limit),
			Hint:    "declare fewer: name tools, or use --source, --server, --category or excludeTools"})
	}
	described := make(map[string]string, len(defs))
	for i := range defs {
		described[defs[i].Name] = defs[i].Description
	}
	for _, d := range out.Declarations {
		c := checker{format: f.Name, tool: d.Tool}
		c.description(described[d.Tool])
		if schema, key := f.declaredSchema(d.Data); schema != nil && f.Name == "gemini" && key == "parameters" && len(schema.members) > 0 {
			c.gemini(schema, nil)
			c.geminiParams(schema)
		}
		if f.Name == "anthropic" && bytes.Contains(d.Data, []byte(`"$ref":`)) {
			c.add(registry.SeverityInfo, "ref_refused_by_some", "", "the schema holds references, which Anthropic's managed agents refuse (the Messages API takes them)", "")
		}
		found = append(found, c.found...)
	}
	return found
}

// diagnosed grades what Encode noticed: a tool that is left out would have been
// refused.
func (f Format) diagnosed(d registry.Diagnostic) Finding {
	severity := registry.SeverityWarning
	switch {
	case d.Code == "declaration_left_out":
		severity = registry.SeverityError
	case d.Code == "name_changed" && f.Text: // nobody refuses a text
		severity = registry.SeverityInfo
	}
	message := d.Message
	for _, with := range []string{" for " + f.Name + ":", "since " + f.Name + " does"} {
		message = strings.Replace(message, with, strings.Replace(with, f.Name, "it", 1), 1)
	}
	message = strings.Replace(message, " for it:", ":", 1)
	return Finding{Severity: severity, Code: d.Code, Formats: []string{f.Name}, Tool: d.Tool, Message: message, Hint: d.Hint}
}

// maxTools is how many tools an API takes in one request, 0 where it says
// nothing.
func (f Format) maxTools() int {
	switch f.Name {
	case "gemini":
		return 512
	case "openai", "openai-responses":
		return 128
	}
	return 0
}

// declaredSchema finds the schema of params in a declaration, and its key; nil
// in formats of text.
func (f Format) declaredSchema(data []byte) (*node, string) {
	if f.Text {
		return nil, ""
	}
	member := f.Name == "json-schema" // a key with its value
	if member {
		data = slices.Concat([]byte("{"), data, []byte("}"))
	}
	var p parser
	n, err := p.parse(data, registry.MaxDepth+10)
	if err != nil {
		return nil, ""
	}
	if member && len(n.members) == 1 {
		return n.members[0].value, ""
	}
	for _, wrapper := range []string{"function", "toolSpec"} {
		if inner := n.get(wrapper); inner != nil {
			n = inner
		}
	}
	if inner := n.get("inputSchema"); inner.get("json") != nil {
		return inner.get("json"), "json"
	}
	for _, key := range []string{"parameters", "parametersJsonSchema", "input_schema", "inputSchema"} {
		if schema := n.get(key); schema != nil {
			return schema, key
		}
	}
	return nil, ""
}

// checker looks at one declaration.
type checker struct {
	format, tool string
	found        []Finding
	refused      bool // an error is among them
	quick        bool // one error is enough, and nobody asks which
}

func (c *checker) add(severity registry.Severity, code, pointer, message, hint string) {
	c.found = append(c.found, Finding{Severity: severity, Code: code, Formats: []string{c.format}, Tool: c.tool, Pointer: pointer, Message: message, Hint: hint})
}

// maxOpenAIDescription is what OpenAI took until 2025, and what Azure and others
// that speak its API still do.
const maxOpenAIDescription = 1024

func (c *checker) description(text string) {
	if n := len([]rune(text)); n > maxOpenAIDescription && c.format == "openai" {
		c.add(registry.SeverityWarning, "description_long", "", fmt.Sprintf("the description has %d characters; older models, Azure and others of this API take %d", n, maxOpenAIDescription),
			"shorten it where the tool comes from")
	}
}
