package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// overPerson describes what a project's settings change about those of the system and of the
// person, for the question of trust: servers that they replace, questions where her defaults
// deny, and composites that call a tool which she has hidden.
func (l *loader) overPerson(project *layer) []string {
	if project == nil {
		return nil
	}
	own, both := merge(l.index, l.layers), merge(l.index, append(slices.Clip(l.layers), project))
	place := func(line int32) string { return fmt.Sprintf("%s:%d", project.file, line) }
	var out []string
	for _, key := range []string{serversKey, apisKey} {
		replaced := both.replaced(key)
		for _, n := range both.named(key) {
			if was, ok := replaced[n.Name]; ok {
				out = append(out, fmt.Sprintf("%s: %s.%s replaces the one of %s", n.Origin, key, document.Printable(n.Name), was.Origin))
			}
		}
	}
	for _, e := range project.entries {
		switch e.row.Name {
		case "policy.rules":
			if at := own.deniesByDefault(); at != "" {
				for _, rule := range e.node.Items {
					if rule.Get("decision").Text() == "ask" {
						out = append(out, fmt.Sprintf("%s: policy.rules = %s, also where the default of %s denies", place(rule.Line), e.row.Masked(rule), at))
					}
				}
			}
		case "composites":
			out = append(out, own.stepsOnHidden(e.node, place)...)
		}
	}
	return out
}

// deniesByDefault returns where a default for a category denies; "" if none does.
func (m *merged) deniesByDefault() string {
	for i := range m.index.Rows {
		if row := &m.index.Rows[i]; strings.HasPrefix(row.Name, "policy.defaults.") {
			if e, ok := m.last(row.Name); ok && e.node.Text() == "deny" {
				return e.origin.String()
			}
		}
	}
	return ""
}

// stepsOnHidden describes the steps of composites that call tools which an override hides.
func (m *merged) stepsOnHidden(composites *jsonx.Value, place func(line int32) string) []string {
	var out []string
	for _, n := range m.named(overridesKey) {
		if !n.Value.Get("hidden").Is(jsonx.True) {
			continue
		}
		for _, c := range composites.Members {
			steps := c.Value.Get("steps")
			if steps == nil {
				continue
			}
			for _, step := range steps.Items {
				if tool := step.Get("tool").Text(); sameTool(tool, n.Name) {
					out = append(out,
						fmt.Sprintf("%s: composites.%s calls %s, which the override of %s hides",
							place(step.Line), document.Printable(c.Name), document.Printable(tool), n.Origin))
				}
			}
		}
	}
	return out
}

// sameTool reports whether two names may be those of one tool: one of them may have its server
// before it.
func sameTool(a, b string) bool {
	a, b = strings.ToLower(strings.TrimSpace(a)), strings.ToLower(strings.TrimSpace(b))
	return a != "" && (a == b || strings.HasSuffix(a, "__"+b) || strings.HasSuffix(b, "__"+a))
}
