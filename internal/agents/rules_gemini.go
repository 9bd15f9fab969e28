package agents

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// geminiRule is a [[rule]] in Gemini CLI's policy files.
type geminiRule struct {
	ToolName        any      `toml:"toolName"`      // string or list
	CommandPrefix   any      `toml:"commandPrefix"` // string or list
	CommandRegex    string   `toml:"commandRegex"`
	ArgsPattern     string   `toml:"argsPattern"`
	MCPName         string   `toml:"mcpName"`
	Decision        string   `toml:"decision"`
	Priority        float64  `toml:"priority"`
	Modes           []string `toml:"modes"`
	DenyMessage     string   `toml:"denyMessage"`
	DenyReason      string   `toml:"deny_message"` // some releases spell it so
	Subagent        any      `toml:"subagent"`
	ToolAnnotations any      `toml:"toolAnnotations"`
	Interactive     *bool    `toml:"interactive"`

	tier int
	from string
}

type geminiReader struct{ ImportedRules }

// readGeminiRules reads Gemini CLI's policy files. As in Gemini CLI, rules of a
// higher tier and then of a higher priority take precedence; of rules with the same
// priority, the strictest applies.
func readGeminiRules(files []RuleFile) (ImportedRules, error) {
	var rules []geminiRule
	r := &geminiReader{}
	for _, f := range files {
		var file struct {
			Rules    []geminiRule `toml:"rule"`
			Checkers []any        `toml:"safety_checker"`
		}
		if err := document.NewError(unmarshalTOML(f.Path, f.Data, &file)); err != nil {
			return ImportedRules{}, err
		}
		if len(file.Checkers) > 0 {
			r.addNote(f.Path, leftOut+"safety checkers have no counterpart")
		}
		var all map[string]any
		if err := document.NewError(unmarshalTOML(f.Path, f.Data, &all)); err != nil {
			return ImportedRules{}, err
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if key != "rule" && key != "safety_checker" {
				r.addNote(f.Path, key+" is not read: rules of Gemini CLI are in tables [[rule]]")
			}
		}
		lines := ruleLines(f.Data)
		for i := range file.Rules {
			g := file.Rules[i]
			g.tier, g.from = f.Tier, f.Path
			if len(lines) == len(file.Rules) {
				g.from = place(f.Path, lines[i])
			}
			rules = append(rules, g)
		}
	}
	slices.SortStableFunc(rules, func(a, b geminiRule) int {
		return cmp.Or(cmp.Compare(b.tier, a.tier), cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(strictness(a.Decision), strictness(b.Decision)))
	})
	for i := range rules {
		r.rule(&rules[i])
	}
	return r.ImportedRules, nil
}

func ruleLines(data []byte) []int {
	var out []int
	for i, line := range bytes.Split(data, []byte("\n")) {
		if strings.ReplaceAll(strings.TrimSpace(string(line)), " ", "") == "[[rule]]" {
			out = append(out, i+1)
		}
	}
	return out
}

func strictness(decision string) int {
	return slices.Index([]string{"deny", "ask_user", "allow"}, decision)
}

func (r *geminiReader) rule(g *geminiRule) {
	decision := map[string]string{"allow": allow, "deny": deny, "ask_user": ask}[g.Decision]
	if decision == "" {
		r.addNote(g.from, fmt.Sprintf("%sunknown decision %q", leftOut, g.Decision))
		return
	}
	if note := g.limited(); note != "" && decision == allow {
		r.addNote(g.from, leftOut+note)
		return
	} else if note != "" {
		r.addNote(g.from, broader+note)
	}
	tools, ok := words(g.ToolName)
	prefixes, plain := words(g.CommandPrefix)
	if !ok || !plain {
		r.addNote(g.from, leftOut+"toolName and commandPrefix must be strings or lists of strings")
		return
	}
	switch {
	case g.ToolName != nil && len(tools) == 0, g.CommandPrefix != nil && len(prefixes) == 0:
		r.addNote(g.from, leftOut+"Gemini CLI ignores a rule with an empty list")
		return
	case len(tools) == 0:
		tools = []string{""}
	}
	if len(prefixes) > 0 || g.CommandRegex != "" {
		tools = []string{shellTool}
	}
	for _, tool := range tools {
		for _, rule := range r.commands(g, decision, tool, prefixes) {
			rule.Decision, rule.From = decision, g.from
			if decision == deny {
				rule.Reason = cmp.Or(g.DenyMessage, g.DenyReason)
			}
			r.Rules = append(r.Rules, rule)
		}
	}
}

// limited describes a condition of the rule that has no counterpart. It returns ""
// if there is none.
func (g *geminiRule) limited() string {
	switch {
	case len(g.Modes) > 0 && !(slices.Contains(g.Modes, "default") && slices.Contains(g.Modes, "autoEdit")):
		return "it applies only in some approval modes"
	case g.Interactive != nil:
		return "it applies only to interactive or only to non-interactive runs"
	case g.Subagent != nil:
		return "it applies only to a subagent"
	case g.ToolAnnotations != nil:
		return "it depends on annotations, which the server controls"
	}
	return ""
}

func words(v any) ([]string, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		var out []string
		for _, x := range v {
			s, ok := x.(string)
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	}
	return nil, false
}

func (r *geminiReader) commands(g *geminiRule, decision, tool string, prefixes []string) []Rule {
	note := func(rule *Rule, note string) []Rule {
		if note != "" {
			r.addNote(g.from, note)
		}
		if rule == nil {
			return nil
		}
		return []Rule{*rule}
	}
	switch {
	case len(prefixes) > 0:
		var out []Rule
		for _, prefix := range prefixes {
			out = append(out, note(prefixRule(decision, strings.TrimSpace(prefix)))...)
		}
		return out
	case g.CommandRegex != "":
		return note(regexRule(decision, g.CommandRegex))
	}
	rule := geminiTool(tool, g.MCPName)
	if rule != nil && decision == allow &&
		(text.IsGlob(strings.TrimSuffix(rule.Tool, "*")) || rule.Server != "*" && text.IsGlob(rule.Server)) {
		r.addNote(g.from, leftOut+"Gemini CLI supports * only for all servers and at the end of the name of a tool")
		return nil
	}
	if rule != nil && rule.Server+rule.Tool == "" && tool != "*" { // it would otherwise match every call
		rule = nil
	}
	if rule == nil {
		r.addNote(g.from, leftOut+"toolreg has no tool "+jsonx.Quote(tool))
		return nil
	}
	if g.ArgsPattern == "" {
		return []Rule{*rule}
	}
	return note(argsRule(decision, rule, g.ArgsPattern))
}

// geminiTool returns a rule that names a tool of Gemini CLI, or nil if toolreg does
// not have it.
func geminiTool(name, server string) *Rule {
	switch rest, isMCP := strings.CutPrefix(name, "mcp_"); {
	case server != "" && (name == "*" || name == ""):
		return &Rule{Server: server}
	case server != "":
		return &Rule{Server: server, Tool: name}
	case name == "*":
		return &Rule{}
	case isMCP:
		server, tool, _ := strings.Cut(rest, "_")
		if server == "" || tool == "" && server != "*" {
			return nil
		}
		if tool == "*" {
			tool = ""
		}
		return &Rule{Server: server, Tool: tool}
	}
	if own, ok := ownGeminiTool(name); ok {
		return &Rule{Tool: own}
	}
	if server, tool, found := strings.Cut(name, "__"); found && server != "" && tool != "" {
		return &Rule{Server: server, Tool: tool}
	}
	return nil
}

// ownGeminiTool returns the name in toolreg of a tool of Gemini CLI.
func ownGeminiTool(name string) (own string, ok bool) {
	switch name {
	case "replace":
		return "edit", true
	case "search_file_content", "grep_search":
		return "grep", true
	case "write_todos":
		return "todo_write", true
	case "list_directory", "read_file", "grep", "glob", "edit", "write_file",
		shellTool, "process", fetchTool, "apply_patch", "todo_read", "todo_write":
		return name, true
	}
	return "", false
}

// regexRule returns a rule for commands that begin with a match of an expression.
func regexRule(decision, expression string) (*Rule, string) {
	_, err := regexp.Compile(expression)
	switch {
	case err != nil && decision == allow, decision == allow && strings.ContainsAny(expression, "\"\x00"):
		return nil, leftOut + "the expression has no counterpart"
	case err != nil:
		return &Rule{Tool: shellTool}, broader + "the expression has no counterpart, so it applies to all commands"
	case decision == allow:
		return &Rule{
			Tool: shellTool, When: "(" + matchesExpression("^(?:"+expression+")") + ") and " + oneCommand,
		}, "the rule is narrower: it applies only to single commands"
	}
	return &Rule{Tool: shellTool, When: matchesExpression("(?s)" + expression)},
		broader + "it applies to every line that contains a match"
}

// argsRule adds a condition on the params as JSON.
func argsRule(decision string, rule *Rule, expression string) (*Rule, string) {
	_, err := regexp.Compile(expression)
	switch {
	case err != nil && decision == allow:
		return nil, leftOut + "the expression has no counterpart"
	case err != nil:
		return rule, broader + "the expression has no counterpart, so it applies to all params"
	}
	rule.When = "tojson | test(" + jsonx.Quote(expression) + ")"
	if rule.Tool == shellTool && decision == allow {
		rule.When = "(" + rule.When + ") and " + oneCommand
		return rule, "the rule is narrower: it applies only to single commands"
	}
	return rule, ""
}
