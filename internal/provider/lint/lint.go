package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

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
		found = append(found, Finding{Severity: registry.SeverityError, Code: "too_many_tools", Formats: []string{f.Name},
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
	return Finding{Severity: severity, Code: d.Code, Formats: []string{f.Name}, Tool: d.Tool, Message: message, Hint: d.Hint}
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

// lintDeclaration checks the declaration of one tool.
func lintDeclaration(f provider.Format, d provider.Declaration, description string) []Finding {
	var found []Finding
	note := func(severity registry.Severity, code, pointer, message, hint string) {
		found = append(found, Finding{Severity: severity, Code: code, Formats: []string{f.Name}, Tool: d.Tool, Pointer: pointer, Message: message, Hint: hint})
	}
	switch f.Name {
	case "openai":
		if n := utf8.RuneCountInString(description); n > maxOpenAIDescription {
			note(registry.SeverityWarning, "description_long", "", fmt.Sprintf("the description has %d characters; older models, Azure and others with this API accept %d", n, maxOpenAIDescription),
				"shorten it at the source of the tool")
		}
	case "anthropic":
		if bytes.Contains(d.Data, []byte(`"$ref":`)) {
			note(registry.SeverityInfo, "ref_refused_by_some", "", "the schema contains references, which Anthropic's managed agents reject (the Messages API accepts them)", "")
		}
	case "gemini":
		schema, key := declaredSchema(f, d.Data)
		if schema == nil || key != "parameters" || len(schema.Members) == 0 {
			break
		}
		for _, p := range gemini.Check(schema) {
			note(registry.SeverityError, p.Code, p.Pointer, p.Message, "exclude the tool, fix its schema, or provide the tool by an MCP server, which is declared with parametersJsonSchema")
		}
		if odd := gemini.OddNames(schema); len(odd) > 0 {
			note(registry.SeverityInfo, "param_name_odd", "", "param names that Vertex AI's documentation does not allow: "+listNames(odd), "")
		}
	}
	return found
}
