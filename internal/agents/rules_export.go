package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy/shell"
)

// exporter converts rules to the format of another program. An entry is exact only
// if importing it returns the same rule.
type exporter struct {
	exact func(r Rule) []string                    // candidates for an exact counterpart
	wide  func(r Rule) []string                    // entries for a widened rule that asks or denies
	read  func(decision, entry string) []Rule      // imports an entry
	join  func(entries map[string][]string) string // renders entries, given by decision
	order bool                                     // the order of rules matters in the other program
}

// ExportRules converts rules to the format of a program. It also returns notes
// about rules that the program cannot express: rules that allow are omitted, others
// become broader if possible.
func ExportRules(ctx context.Context, program string, rules []Rule) (text string, notes []string) {
	x := exporters(ctx)[program]
	entries := map[string][]string{}
	var allowed bool
	for _, r := range rules {
		confined := r.Decision == sandbox
		if confined { // the result must not allow more
			r.Decision = ask
		}
		if r.Decision != allow {
			r.Command = shell.Beginning(r.Command)
		}
		if r.Command != "" && r.Tool+r.Server+r.Source+r.Category == "" {
			r.Tool = shellTool // the only tool with commands
		}
		decision := r.Decision
		allowed = allowed || decision == allow
		entry, note := x.entry(r)
		if confined && note == "" {
			note = "becomes a rule that asks, because the program has no decision sandbox"
		}
		if note != "" {
			notes = append(notes, r.From+": "+note)
		}
		if entry == "" {
			continue
		}
		if allowed && decision != allow && !x.order {
			notes = append(notes, r.From+": takes precedence over rules that allow, whatever their order")
		}
		key := decision
		if x.order {
			key = ""
		}
		entries[key] = append(entries[key], entry)
	}
	return x.join(entries), notes
}

func exporters(ctx context.Context) map[string]exporter {
	return map[string]exporter{
		"claude": {exact: claudeEntries, wide: claudeWide, join: claudeText, read: func(decision, entry string) []Rule {
			rule, _ := (&claudeReader{}).entry(decision, entry)
			if rule == nil {
				return nil
			}
			rule.Decision = decision
			return []Rule{*rule}
		}},
		"codex": {
			exact: codexEntries, wide: codexEntries, join: codexText, read: func(_, entry string) []Rule {
				got, _ := readCodexRules(ctx, []RuleFile{{Data: []byte(entry)}})
				return got.Rules
			},
		},
		"gemini": {order: true, exact: geminiEntries, wide: geminiEntries, join: geminiText, read: func(_, entry string) []Rule {
			got, _ := readGeminiRules([]RuleFile{{Data: []byte(entry)}})
			return got.Rules
		}},
	}
}

// widen returns a rule without its condition, and with its command cut before the first word that
// has a wildcard: other programs compare words literally.
func widen(r Rule) Rule {
	r.When = ""
	words := strings.Fields(r.Command)
	if i := slices.IndexFunc(words, func(w string) bool { return !isLiteral(w) }); i >= 0 {
		r.Command = strings.Join(words[:i], " ")
	}
	return r
}

// entry returns the entry for a rule, or "" if there is none, and a note about it.
func (x exporter) entry(r Rule) (entry, note string) {
	if r.Client+r.Group+r.Profile+r.Prompt+r.Resource != "" {
		return "", leftOut + "it is about clients of serve, or prompts or resources"
	}
	server, tool, ok := strings.Cut(r.Tool, "__")
	if ok && r.Server == "" {
		r.Server, r.Tool = server, tool
	}
	for _, candidate := range x.exact(r) {
		if got := x.read(r.Decision, candidate); len(got) == 1 && sameRule(got[0], r) {
			return candidate, ""
		}
	}
	if r.Decision != allow {
		for _, candidate := range x.wide(widen(r)) {
			if len(x.read(r.Decision, candidate)) > 0 {
				return candidate, broader + strings.Join(strings.Fields(candidate), " ")
			}
		}
	}
	return "", leftOut + "the program has no counterpart"
}

// sameRule reports whether two rules match the same calls and decide the same.
func sameRule(a, b Rule) bool {
	a.From, a.Reason, a.Match, a.NotMatch = "", "", nil, nil
	b.From, b.Reason, b.Match, b.NotMatch = "", "", nil, nil
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// claudeEntries returns candidates for entries of Claude Code's lists that express
// a rule.
func claudeEntries(r Rule) []string {
	name := claudeTool(r.Tool)
	switch {
	case r.Server != "" && r.Tool != "":
		return []string{"mcp__" + r.Server + "__" + r.Tool}
	case r.Server != "":
		return []string{"mcp__" + r.Server}
	case r.Tool == shellTool:
		return bashEntries(r)
	case r.Path != "":
		spec := claudeGlob(r.Path)
		return []string{"Edit(" + spec + ")", "Read(" + spec + ")"}
	case r.Tool == fetchTool && r.When != "":
		return []string{"WebFetch(domain:" + hostOf(r.When) + ")"}
	case name != "":
		return []string{name}
	}
	return []string{"Read", "Edit"}
}

// claudeTool returns Claude Code's name for a built-in tool, or "".
func claudeTool(tool string) string {
	return map[string]string{"read_file": "Read", "write_file": "Write", "edit": "Edit", "glob": "Glob", "grep": "Grep",
		"list_directory": "LS", shellTool: "Bash", fetchTool: "WebFetch", "todo_write": "TodoWrite"}[tool]
}

func bashEntries(r Rule) []string {
	var out []string
	for _, text := range []string{r.Command, literalIn(r.When), patternIn(r.When)} {
		if text != "" {
			out = append(out, "Bash("+text+":*)", "Bash("+text+")")
		}
	}
	return append(out, "Bash")
}

func claudeGlob(glob string) string {
	if rest, ok := strings.CutPrefix(glob, "**/"); ok {
		return rest
	}
	switch {
	case strings.HasPrefix(glob, "/"):
		return "/" + glob
	case !strings.Contains(glob, "/"):
		return "./" + glob
	}
	return glob
}

// claudeWide returns the entry for a whole tool or server.
func claudeWide(r Rule) []string {
	if r.Server != "" {
		return claudeEntries(r)
	}
	if name := claudeTool(r.Tool); name != "" {
		return []string{name}
	}
	return nil
}

func claudeText(entries map[string][]string) string {
	data, _ := json.MarshalIndent(map[string]any{"permissions": entries}, "", "  ") // strings always encode
	return string(data) + "\n"
}

// quotedIn returns the first JSON string after a mark, or "".
func quotedIn(text, mark string) string {
	_, rest, found := strings.Cut(text, mark)
	var out string
	if !found || json.NewDecoder(strings.NewReader(rest)).Decode(&out) != nil {
		return ""
	}
	return out
}

// literalIn returns the text that a condition compares with the line.
func literalIn(when string) string {
	if text := quotedIn(when, ".command == "); text != "" {
		return text
	}
	return quotedIn(when, "contains(")
}

// patternIn returns the pattern with wildcards that a condition tests.
func patternIn(when string) string {
	expression := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(quotedIn(when, "test("), "(?s)"), "^"), "$")
	return unquoted(strings.ReplaceAll(expression, ".*", "*"))
}

// unquoted is the inverse of regexp.QuoteMeta.
func unquoted(expression string) string {
	return regexp.MustCompile(`\\(.)`).ReplaceAllString(expression, "$1")
}

// hostOf returns the host in a condition from onHost.
func hostOf(when string) string {
	host := strings.TrimSuffix(strings.TrimPrefix(quotedIn(when, "test("), `(?i)^\s*https?://`),
		`\.?(:[0-9]*)?([/?#]|$)`)
	if below, ok := strings.CutPrefix(host, `[a-z0-9_.-]+\.`); ok {
		return "*." + unquoted(below)
	}
	return unquoted(strings.TrimPrefix(host, `([^/?#]*[.@])?`))
}

// codexEntries returns candidates for prefix rules that express a rule.
func codexEntries(r Rule) []string {
	if r.Tool != shellTool || r.Command == "" || strings.ContainsAny(r.Command, `'"\`) {
		return nil
	}
	decision := map[string]string{allow: "allow", ask: "prompt", deny: "forbidden"}[r.Decision]
	pattern, _ := json.Marshal(strings.Fields(r.Command)) // strings always encode
	entry := fmt.Sprintf("prefix_rule(pattern = %s, decision = %q", pattern, decision)
	if r.Reason != "" {
		entry += ", justification = " + jsonx.Quote(r.Reason)
	}
	return []string{entry + ")"}
}

func codexText(entries map[string][]string) string {
	var b strings.Builder
	for _, decision := range []string{deny, ask, allow} {
		for _, entry := range entries[decision] {
			b.WriteString(entry + "\n")
		}
	}
	return b.String()
}

// geminiEntries returns candidates for Gemini CLI rules, without a priority, that
// express a rule.
func geminiEntries(r Rule) []string {
	decision := map[string]string{allow: "allow", ask: "ask_user", deny: "deny"}[r.Decision]
	base := "[[rule]]\n"
	add := func(key, value string) {
		if value != "" {
			base += key + " = " + jsonx.Quote(value) + "\n"
		}
	}
	add("mcpName", r.Server)
	if r.Command == "" && r.Server+r.Tool+r.Source+r.Category+r.Path+r.When == "" && len(r.Annotations) == 0 {
		r.Tool = "*"
	}
	if r.Server == "" {
		r.Tool = cmp.Or(map[string]string{"edit": "replace", "grep": "search_file_content", "todo_write": "write_todos"}[r.Tool], r.Tool)
	}
	add("toolName", r.Tool)
	add("decision", decision)
	if r.Decision == deny {
		add("denyMessage", r.Reason)
	}
	expression := quotedIn(r.When, "test(")
	begin := strings.TrimSuffix(strings.TrimPrefix(expression, "^(?:"), ")")
	var out []string
	for _, field := range [][2]string{
		{"commandPrefix", r.Command}, {"commandRegex", begin},
		{"commandRegex", strings.TrimPrefix(expression, "(?s)")}, {"argsPattern", expression},
	} {
		if field[1] != "" {
			out = append(out, base+field[0]+" = "+jsonx.Quote(field[1])+"\n")
		}
	}
	return append(out, base)
}

func geminiText(entries map[string][]string) string {
	var b strings.Builder
	for i, entry := range entries[""] {
		fmt.Fprintf(&b, "%spriority = %d\n\n", entry, max(999-i, 0))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
