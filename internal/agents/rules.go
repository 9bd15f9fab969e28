package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy/shellline"
)

// Rule is one entry of policy.rules, in the words of the settings.
type Rule struct {
	Tool     string   `json:"tool,omitempty"`
	Source   string   `json:"source,omitempty"`
	Server   string   `json:"server,omitempty"`
	Category string   `json:"category,omitempty"`
	Command  string   `json:"command,omitempty"`
	Path     string   `json:"path,omitempty"`
	When     string   `json:"when,omitempty"`
	Decision string   `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	Match    []string `json:"match,omitempty"` // shell lines
	NotMatch []string `json:"notMatch,omitempty"`
	From     string   `json:"from,omitempty"` // where it came from, for a comment
}

// ImportedRules is what the permissions of a program amount to.
type ImportedRules struct {
	Rules  []Rule   // in the order in which they count
	Unsaid []string // what could not be said exactly, each with its place
}

func (i *ImportedRules) unsaid(from, why string) { i.Unsaid = append(i.Unsaid, from+": "+why) }

// The decisions.
const (
	allow   = "allow"
	ask     = "ask"
	deny    = "deny"
	sandbox = "sandbox"
)

// The built-in tools that other programs have too.
const (
	shellTool = "run_shell_command"
	fetchTool = "web_fetch"
	builtin   = "builtin"
)

// RulesYAML renders rules as settings, each under a comment that says where it came from.
func RulesYAML(rules []Rule) string {
	if len(rules) == 0 {
		return "policy:\n  rules: []\n"
	}
	var b strings.Builder
	b.WriteString("policy:\n  rules:\n")
	for _, r := range rules {
		if r.From != "" {
			fmt.Fprintf(&b, "    # %s\n", strings.Join(strings.Fields(r.From), " "))
		}
		fmt.Fprintf(&b, "    - {%s}\n", strings.Join(r.fields(), ", "))
	}
	return b.String()
}

// matchesAll reports whether the rule has no condition.
func (r *Rule) matchesAll() bool {
	return r.Tool+r.Source+r.Server+r.Category+r.Command+r.Path+r.When == ""
}

// fields are the keys that are set, as RulesYAML.
func (r *Rule) fields() []string {
	var out []string
	add := func(key, value string) {
		if strings.TrimSpace(value) != "" {
			out = append(out, key+": "+jsonx.Quote(value))
		}
	}
	add("tool", r.Tool)
	add("source", r.Source)
	add("server", r.Server)
	add("category", r.Category)
	add("command", r.Command)
	add("path", r.Path)
	add("when", r.When)
	out = append(out, "decision: "+r.Decision)
	add("reason", r.Reason)
	examples := func(key string, lines []string) {
		if len(lines) > 0 {
			list, _ := json.Marshal(lines) // strings always encode
			out = append(out, key+": "+string(list))
		}
	}
	examples("match", r.Match)
	examples("notMatch", r.NotMatch)
	return out
}

// isLiteral reports whether a rule's command can name these words, which are no
// globs.
func isLiteral(words string) bool {
	return shellline.IsPlain(words) && !strings.ContainsAny(words, "*?[{")
}

// oneCommand is a condition on the shell line that keeps everything out that could
// be more than one simple command.
const oneCommand = "(.command | test(\"[;&|<>()$`\\\\n\\\\\\\\]\") | not)"

// isExactly is a condition that the shell line is a text.
func isExactly(line string) string { return ".command == " + jsonx.Quote(line) }

// holds is a condition that the shell line contains a text.
func holds(text string) string { return ".command | contains(" + jsonx.Quote(text) + ")" }

// tests is a condition that the shell line matches a regular expression.
func tests(expression string) string { return ".command | test(" + jsonx.Quote(expression) + ")" }

// wildcards turns a pattern in which * stands for any text into a regular
// expression.
func wildcards(pattern string) string {
	pieces := strings.Split(pattern, "*")
	for i, piece := range pieces {
		pieces[i] = regexp.QuoteMeta(piece)
	}
	return strings.Join(pieces, ".*")
}

// onHost is a condition that an address is on a host; deeper adds the hosts below
// it. A host may begin with "*.".
func onHost(host string, deeper bool) string {
	below, wild := strings.CutPrefix(host, "*.")
	prefix := ""
	switch {
	case deeper:
		prefix = `([^/?#]*[.@])?`
	case wild:
		prefix = `[a-z0-9_.-]+\.`
	}
	return ".url | test(" + jsonx.Quote(`(?i)^\s*https?://`+prefix+regexp.QuoteMeta(below)+`\.?(:[0-9]*)?([/?#]|$)`) + ")"
}
