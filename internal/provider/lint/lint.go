// Package lint reports parts of declarations that a provider would reject or
// ignore, or that cost more than necessary. It encodes declarations with package
// provider and checks the result.
package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/registry"
)

// Lint encodes the definitions in each format and returns the findings in the order
// of the tools, for each tool the most severe first.
func Lint(formats []provider.Format, defs []registry.Definition, opts provider.Options) []Finding {
	opts.Strict = false
	var all []Finding
	for _, f := range formats {
		all = append(all, lintFormat(f, defs, opts)...)
	}
	all = append(all, advice(defs)...)
	return sortedFindings(joinFormats(all, len(formats)), defs)
}

// joinFormats combines findings that differ only in their format.
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

// lintFormat encodes the definitions in one format and checks the result.
func lintFormat(f provider.Format, defs []registry.Definition, opts provider.Options) []Finding {
	out, diags := f.Encode(defs, opts)
	found := make([]Finding, 0, len(diags))
	for _, d := range diags {
		found = append(found, diagnosed(f, d))
	}
	if limit := maxTools(f.Name); limit > 0 && len(out.Declarations) > limit {
		found = append(found, Finding{Severity: registry.SeverityError,
			Code: "too_many_tools", Formats: []string{f.Name},
			Message: fmt.Sprintf("%d tools are declared, but the API accepts %d", len(out.Declarations), limit),
			Hint:    "declare fewer: give names of tools, or use --source, --server, --category or excludeTools"})
	}
	described := make(map[string]string, len(defs))
	for i := range defs {
		described[defs[i].Name] = defs[i].Description
	}
	for _, d := range out.Declarations {
		found = append(found, lintDeclaration(f, d, described[d.Tool])...)
	}
	return found
}

// diagnosed converts a diagnostic of Encode to a finding. A tool that was omitted
// is an error, because the provider would reject it.
func diagnosed(f provider.Format, d registry.Diagnostic) Finding {
	severity := registry.SeverityWarning
	switch {
	case d.Code == "declaration_left_out":
		severity = registry.SeverityError
	case d.Code == "name_changed" && f.Text: // text is never rejected
		severity = registry.SeverityInfo
	}
	message := d.Message
	for _, with := range []string{" for " + f.Name + ":", "since " + f.Name + " does"} {
		message = strings.Replace(message, with, strings.Replace(with, f.Name, "it", 1), 1)
	}
	message = strings.Replace(message, " for it:", ":", 1)
	return Finding{
		Severity: severity,
		Code:     d.Code,
		Formats:  []string{f.Name},
		Tool:     d.Tool,
		Message:  message,
		Hint:     d.Hint,
	}
}

// maxTools returns the maximum number of tools in a request of a format's API, or 0
// if it is not documented.
func maxTools(format string) int {
	switch format {
	case "gemini", "gemini-interactions":
		return 512
	case "openai", "openai-responses":
		return 128
	}
	return 0
}

// maxOpenAIDescription is the maximum length of a description in characters. It
// applied to OpenAI until 2025, and still applies to Azure and other APIs.
const maxOpenAIDescription = 1024

func lintDeclaration(f provider.Format, d provider.Declaration, description string) []Finding {
	var found []Finding
	note := func(severity registry.Severity, code, pointer, message, hint string) {
		found = append(found, Finding{
			Severity: severity,
			Code:     code,
			Formats:  []string{f.Name},
			Tool:     d.Tool,
			Pointer:  pointer,
			Message:  message,
			Hint:     hint,
		})
	}
	switch f.Name {
	case "openai":
		if n := utf8.RuneCountInString(description); n > maxOpenAIDescription {
			note(registry.SeverityWarning, "description_long", "",
				fmt.Sprintf("the description has %d characters; older models, Azure and others with this API accept %d",
					n, maxOpenAIDescription),
				"shorten it at the source of the tool")
		}
	case "anthropic":
		if bytes.Contains(d.Data, []byte(`"$ref":`)) {
			note(registry.SeverityInfo, "ref_refused_by_some", "",
				"the schema contains references, which Anthropic's managed agents reject (the Messages API accepts them)",
				"")
		}
	case "gemini":
		schema, key := declaredSchema(f, d.Data)
		if schema == nil || key != "parameters" || len(schema.Members) == 0 {
			break
		}
		for _, p := range gemini.Check(schema) {
			note(registry.SeverityError, p.Code, p.Pointer, p.Message,
				"exclude the tool, fix its schema, or provide the tool by an MCP server, which is declared with parametersJsonSchema")
		}
		if odd := gemini.OddNames(schema); len(odd) > 0 {
			note(registry.SeverityInfo, "param_name_odd", "",
				"param names that Vertex AI's documentation does not allow: "+listNames(odd), "")
		}
	}
	return found
}

// Finding is a finding of [Lint]. Severity is error if a provider would reject the
// declaration, warning if a part would be ignored or had to be changed, and info
// for advice.
type Finding struct {
	Severity registry.Severity `json:"severity"`
	Code     string            `json:"code"`
	Formats  []string          `json:"formats,omitempty"` // if empty, the finding applies to every format
	Tool     string            `json:"tool,omitempty"`    // if empty, the finding applies to all tools together
	Pointer  string            `json:"pointer,omitempty"` // into the declared schema
	Message  string            `json:"message"`
	Hint     string            `json:"hint,omitempty"`
}

// New returns the findings that are not known. A finding is known if another with the
// same tool, code, place and message covers its formats, whatever its severity.
func New(found, known []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool {
		return slices.ContainsFunc(known, func(k Finding) bool {
			return k.Tool == f.Tool && k.Code == f.Code && k.Pointer == f.Pointer &&
				k.Message == f.Message && coversFormats(k.Formats, f.Formats)
		})
	})
}

// coversFormats reports whether a list of formats, in which none means all, has the others.
func coversFormats(formats, others []string) bool {
	return len(formats) == 0 ||
		len(others) > 0 && !slices.ContainsFunc(others, func(o string) bool { return !slices.Contains(formats, o) })
}

// listNames returns a list of names as text. It has only the first ten if there are many.
func listNames(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

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
		out = append(out, Finding{
			Severity: registry.SeverityInfo, Code: "many_tools",
			Message: fmt.Sprintf("there are %d tools; models choose worse among many", len(defs)),
			Hint:    "declare only those that the task needs, or let the model search for the others with toolreg schema --defer auto",
		})
	}
	if total > manyTokens {
		out = append(out, Finding{
			Severity: registry.SeverityInfo, Code: "many_tokens",
			Message: fmt.Sprintf("the declarations cost about %d tokens in every request", total),
			Hint:    "toolreg list --cost shows the cost of each tool",
		})
	}
	return out
}

func adviseTool(d *registry.Definition, tokens int) []Finding {
	var out []Finding
	note := func(severity registry.Severity, code, message, hint string) {
		out = append(out, Finding{Severity: severity, Code: code, Tool: d.Name, Message: message, Hint: hint})
	}
	if strings.TrimSpace(d.Description) == "" {
		note(registry.SeverityInfo, "description_missing",
			"it has no description, but models need one to choose a tool", "")
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
		note(registry.SeverityInfo, "tool_large",
			fmt.Sprintf("its declaration costs about %d tokens in every request", tokens),
			"toolreg list --cost shows all")
	}
	if r, ok := invisible(text); ok {
		note(registry.SeverityWarning, "text_invisible",
			fmt.Sprintf("its definition contains the invisible character %U, which models read but people cannot see", r),
			"inspect it with toolreg list "+d.Name)
	}
	return out
}

// undescribed returns the names of top-level params that have no description.
func undescribed(schema *jsonx.Value) []string {
	var out []string
	for _, m := range schema.Get("properties").Fields() {
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
