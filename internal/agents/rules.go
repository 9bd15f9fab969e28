package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
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

// RulePrograms are the names of the programs that ImportRules knows.
func RulePrograms() []string { return []string{"claude", "gemini", "codex"} }

// RulePlace is the location of a program's permissions: a file, or all files in a
// folder with a suffix.
type RulePlace struct {
	Path   string
	Suffix string // "" if Path is a file
	Tier   int
}

// RulePlaces returns the locations of a program's permissions in order of
// precedence, without those in unknown folders. It returns nil for an unknown program.
func RulePlaces(program, root string, environ []string) []RulePlace {
	env := expand.NewEnviron(environ)
	w := folders{root: root, home: env.Home(), env: env}
	var out []RulePlace
	switch program {
	case "claude":
		out = []RulePlace{{Path: systemPath("/Library/Application Support/ClaudeCode", "/etc/claude-code") +
			"/managed-settings.json"},
			{Path: w.project(nil, ".claude", "settings.local.json").Path},
			{Path: w.project(nil, ".claude", "settings.json").Path},
			{Path: w.user(nil, w.named("CLAUDE_CONFIG_DIR", ".claude"), "settings.json").Path}}
	case "gemini":
		out = []RulePlace{{Path: systemPath("/Library/Application Support/GeminiCli", "/etc/gemini-cli") + "/policies",
			Suffix: ".toml", Tier: 3},
			{Path: w.user(nil, w.named("GEMINI_CLI_HOME"), ".gemini", "policies").Path, Suffix: ".toml", Tier: 2},
			{Path: w.project(nil, ".gemini", "policies").Path, Suffix: ".toml", Tier: 1}}
	case "codex":
		out = []RulePlace{{Path: w.project(nil, ".codex", "rules").Path, Suffix: ".rules"},
			{Path: w.user(nil, w.named("CODEX_HOME", ".codex"), "rules").Path, Suffix: ".rules"}}
	}
	return slices.DeleteFunc(out, func(p RulePlace) bool { return p.Path == "" })
}

func systemPath(mac, other string) string {
	if runtime.GOOS == "darwin" {
		return mac
	}
	return other
}

// ImportRules reads the permissions of a program.
func ImportRules(ctx context.Context, program string, files []RuleFile, home string) (ImportedRules, error) {
	var got ImportedRules
	var err error
	switch program {
	case "claude":
		got, err = readClaude(files, home)
	case "gemini":
		got, err = readGeminiRules(files)
	case "codex":
		got, err = readCodexRules(ctx, files)
	default:
		return got, fmt.Errorf("unknown program %q", program)
	}
	got.Rules = slices.DeleteFunc(got.Rules, func(r Rule) bool {
		nul := slices.ContainsFunc(slices.Concat([]string{r.Tool, r.Source, r.Server, r.Category, r.Command, r.Path,
			r.When, r.Reason}, r.Match, r.NotMatch),
			func(s string) bool { return strings.ContainsRune(s, 0) })
		if nul {
			got.addNote(r.From, "left out, because it contains a NUL character, which no call can contain")
		}
		return nul
	})
	for i := range got.Rules {
		if note := got.Rules[i].matchesNothing(); note != "" {
			got.addNote(got.Rules[i].From, note)
		}
	}
	return got, err
}

// matchesNothing says why a rule on a command matches no call; "" if it may match. Policy looks
// through programs that run others, and decides on what they run.
func (r *Rule) matchesNothing() string {
	if r.Command == "" {
		return ""
	}
	inner, begins := "", false
	for _, c := range shell.Read("", r.Command, "").Commands {
		if r.Decision != allow && c.Names(r.Command) != shell.No {
			return ""
		}
		if c.Begins(r.Command, r.Decision == sandbox) {
			begins = true
			continue
		}
		if cover := c.Cover(); cover != "" && cover != r.Command {
			inner = cover
		}
	}
	if inner == "" && begins {
		return ""
	}
	if inner == "" {
		return "the rule matches nothing: toolreg asks about a command that begins so"
	}
	return fmt.Sprintf(
		"the rule matches nothing: toolreg decides on the command that runs in it; write a rule on %q", inner)
}
