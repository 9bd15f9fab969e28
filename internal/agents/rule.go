package agents

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy/shell"
)

// Rule is an entry of policy.rules, with the keys of the settings.
type Rule struct {
	Tool        string          `json:"tool,omitempty"`
	Source      string          `json:"source,omitempty"`
	Server      string          `json:"server,omitempty"`
	Category    string          `json:"category,omitempty"`
	Annotations map[string]bool `json:"annotations,omitempty"`
	Command     string          `json:"command,omitempty"`
	Path        string          `json:"path,omitempty"`
	Client      string          `json:"client,omitempty"`
	Group       string          `json:"group,omitempty"`
	Profile     string          `json:"profile,omitempty"` // of serve, whose rule it is
	Prompt      string          `json:"prompt,omitempty"`
	Resource    string          `json:"resource,omitempty"`
	When        string          `json:"when,omitempty"`
	Decision    string          `json:"decision"`
	Reason      string          `json:"reason,omitempty"`
	Match       []string        `json:"match,omitempty"` // shell command lines
	NotMatch    []string        `json:"notMatch,omitempty"`
	From        string          `json:"from,omitempty"` // origin, for a comment
}

// ImportedRules are the permissions of a program, converted to rules.
type ImportedRules struct {
	Rules []Rule   // in order of precedence
	Notes []string // permissions without an exact counterpart, each with its place
}

func (i *ImportedRules) addNote(from, why string) { i.Notes = append(i.Notes, from+": "+why) }

// RuleFile is a file of another program.
type RuleFile struct {
	Path string
	Data []byte
	Tier int // higher tiers take precedence (Gemini CLI)
}

// The decisions.
const (
	allow   = "allow"
	ask     = "ask"
	deny    = "deny"
	sandbox = "sandbox"
)

const (
	leftOut = "left out: "
	broader = "the rule is broader: "
)

// Built-in tools that other programs also have.
const (
	shellTool = "run_shell_command"
	fetchTool = "web_fetch"
	builtin   = "builtin"
)

// RulesYAML renders imported rules as settings, each under a comment with its origin. They have no
// conditions on annotations, clients, prompts or resources.
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
	return escapeControls(b.String())
}

// escapeControls escapes the characters that YAML forbids and JSON does not escape. They occur
// only in texts in quotation marks.
func escapeControls(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fields returns the keys that are set, in YAML.
func (r *Rule) fields() []string {
	var out []string
	add := func(key, value string) {
		if value != "" { // a blank value matches nothing; leaving it out would widen the rule
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
			list, _ := json.Marshal(lines) // cannot fail for strings
			out = append(out, key+": "+string(list))
		}
	}
	examples("match", r.Match)
	examples("notMatch", r.NotMatch)
	return out
}

// isLiteral reports whether the words can be a rule's command without being taken for globs.
func isLiteral(words string) bool {
	return shell.IsPlain(words) && !strings.ContainsAny(words, "*?[{")
}

// oneCommand is a condition that excludes shell lines that may contain more than one simple
// command.
const oneCommand = "(.command | test(\"[;&|<>()$`\\\\n\\\\\\\\]\") | not)"

// matchesExpression returns the condition that the shell line matches a regular expression.
func matchesExpression(expression string) string {
	return ".command | test(" + jsonx.Quote(expression) + ")"
}

// wildcards converts a pattern, in which * matches any text, to a regular
// expression.
func wildcards(pattern string) string {
	pieces := strings.Split(pattern, "*")
	for i, piece := range pieces {
		pieces[i] = regexp.QuoteMeta(piece)
	}
	return strings.Join(pieces, ".*")
}

// onHost returns the condition that a URL is on a host. deeper also matches subdomains. A host may
// begin with "*.".
func onHost(host string, deeper bool) string {
	below, wild := strings.CutPrefix(host, "*.")
	prefix := ""
	switch {
	case deeper:
		prefix = `([^/?#]*[.@])?`
	case wild:
		prefix = `[a-z0-9_.-]+\.`
	}
	return ".url | test(" +
		jsonx.Quote(`(?i)^\s*https?://`+prefix+regexp.QuoteMeta(below)+`\.?(:[0-9]*)?([/?#]|$)`) + ")"
}

func place(file string, line int) string { return file + ":" + strconv.Itoa(line) }
