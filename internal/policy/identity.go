package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// identity is what rules can say about a tool, regardless of what a call does.
type identity struct {
	tool      *registry.Tool
	category  registry.Category        // see [categoryOf]
	bears     *registry.Namesake       // see [registry.Definition.Bears]; nil if the tool has a name of its own
	canonical func(name string) string // see [Policy.Canonical]

	spellings, names fact[[]string] // in lower case for strict rules, exact for rules that loosen
}

// ruleNames reports whether a rule for this caller applies to the tool, regardless of commands,
// paths and params.
func (n *identity) ruleNames(r *Rule) bool { return n.unmetName(r) == "" }

// unmetName returns the first condition of a rule that this tool does not meet.
func (n *identity) unmetName(r *Rule) string {
	switch {
	case r.Prompt != "":
		return conditionPrompt
	case r.Resource != "":
		return conditionResource
	}
	match, t := r.matcher(), n.tool
	switch {
	case r.Category != "" && !n.ruleCategory(r):
		return conditionCategory
	case !n.ruleAnnotations(r):
		return conditionAnnotations
	case r.Source != "" && !match(r.Source, t.Source):
		return conditionSource
	case r.Server != "" && (!t.OfServer() || !match(r.Server, t.Server)):
		return conditionServer
	case r.isNarrow() && r.Personal && n.tool.Replaces && r.Tool+r.Server+r.Source != "":
		return conditionServer
	case r.Tool == "" || r.Tool == "*" || r.isNarrow() && n.allowsTool(r) || !r.isNarrow() && n.namesTool(r):
		return ""
	}
	return conditionTool
}

func (n *identity) ruleCategory(r *Rule) bool {
	if r.isNarrow() {
		return r.Category == string(n.category)
	}
	if n.bears != nil && strings.EqualFold(r.Category, string(n.bears.Category)) {
		return true
	}
	return strings.EqualFold(r.Category, string(n.tool.Category)) || strings.EqualFold(r.Category, string(n.category))
}

// namesTool reports whether a rule's glob matches any name of the tool, ignoring case.
func (n *identity) namesTool(r *Rule) bool {
	t := n.tool
	spellings := n.spellings.get(func() (out []string) {
		for _, name := range t.Called() {
			out = append(out, strings.ToLower(name))
		}
		return out
	})
	for _, name := range spellings {
		if text.MatchNameFold(r.Tool, name) {
			return true
		}
	}
	return t.Source == registry.SourceBuiltin && n.canonical(r.Tool) == t.OriginalName()
}

func (n *identity) allowsTool(r *Rule) bool {
	t := n.tool.Named()
	if r.Server != "" && text.MatchName(r.Tool, t.PlainName()) {
		return true
	}
	if builtin := n.canonical(r.Tool); builtin != "" {
		// The name of a built-in tool never refers to a server's tool of that name.
		return t.Source == registry.SourceBuiltin && t.Name == builtin
	}
	if n.bears != nil {
		return false // the name means the built-in tool
	}
	return slices.ContainsFunc(n.names.get(n.unambiguousNames),
		func(name string) bool { return text.MatchName(r.Tool, name) })
}

// unambiguousNames returns the names that can only mean this tool. A rule with Server and
// Tool can allow one whose name is not clear.
func (n *identity) unambiguousNames() []string {
	t := n.tool.Named()
	if !t.OfServer() {
		if n.tool.Lent {
			return []string{}
		}
		if t.Version != "" {
			return []string{t.Name, t.Name + "@" + t.Version}
		}
		return []string{t.Name}
	}
	var out []string
	if !strings.Contains(t.Name, "__") && !n.tool.Lent {
		out = append(out, t.Name)
	}
	if t.IsClear() {
		out = append(out, t.Server+"__"+t.PlainName())
		if t.Name == t.Qualified() || strings.HasPrefix(t.Name, t.Qualified()+"_") {
			out = append(out, t.Name)
		}
	}
	return out
}

// ruleAnnotations reports whether the tool has the annotations of the rule. For a rule that
// loosens, the server must have sent each of them. For other rules, an absent or non-boolean
// annotation of a server's tool has MCP's default value; other tools must have it.
func (n *identity) ruleAnnotations(r *Rule) bool {
	if len(r.Annotations) == 0 {
		return true
	}
	var sent map[string]any
	_ = json.Unmarshal(n.tool.Annotations, &sent) // annotations that are not an object count as none
	for name, want := range r.Annotations {
		got, ok := sent[name].(bool)
		if !ok && (r.isNarrow() || !n.tool.OfServer()) {
			return false
		}
		if !ok {
			got, _ = absentHint(name)
			if readOnly, _ := sent["readOnlyHint"].(bool); readOnly && name == "destructiveHint" {
				got = false // only tools that change something have it
			}
		}
		if got != want {
			return false
		}
	}
	return true
}

// isBlindTo reports whether a rule has a condition on a path or command that the built-in tool
// could meet whose name this tool has taken. What this tool touches is unknown, so a rule that
// denies or asks applies, and a rule that loosens does not.
func (n *identity) isBlindTo(r *Rule) bool {
	if n.bears == nil || r.Path == "" && r.Command == "" {
		return false
	}
	switch n.bears.Category {
	case registry.CategoryCommand:
		return true
	case registry.CategoryRead, registry.CategoryWrite:
		return r.Command == ""
	}
	return false
}

// underName adds to a reason that it comes from the built-in tool whose name the tool has taken.
func (n *identity) underName(reason string) string {
	return fmt.Sprintf("%s; it has the name of the built-in tool %s, and what it touches is not known",
		reason, n.bears.Name)
}

// isPlain reports whether a rule can match without an analysis of commands.
func (n *identity) isPlain(r *Rule) bool { return r.Command == "" || n.isBlindTo(r) && !r.isNarrow() }
