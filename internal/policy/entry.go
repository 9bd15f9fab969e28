package policy

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// Entry is one parsed element of allowedTools or excludeTools: "read_file",
// "mcp_*", "run_shell_command(git status)", "ShellTool(rm)".
type Entry struct {
	Tool    string // name, alias or glob
	Command string // the text in parentheses; "" if there are none
}

// ParseEntry parses one element of allowedTools or excludeTools. It accepts ":*"
// at the end of the text in parentheses, as other programs write it, and ignores
// it.
func ParseEntry(text string) (Entry, error) {
	text = strings.TrimSpace(text)
	name, rest, found := strings.Cut(text, "(")
	e := Entry{Tool: registry.NameIn(name)}
	if e.Tool == "" {
		return Entry{}, fmt.Errorf("entry %q does not name a tool", text)
	}
	if !found {
		if strings.ContainsRune(text, ')') {
			return Entry{}, fmt.Errorf("entry %q has a closing parenthesis without an opening one", text)
		}
		return e, nil
	}
	args, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return Entry{}, fmt.Errorf("entry %q lacks a closing parenthesis", text)
	}
	e.Command = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(args), ":*"))
	if e.Command == "*" {
		e.Command = ""
		return e, nil
	}
	if e.Command == "" {
		return Entry{}, fmt.Errorf("entry %q has empty parentheses; leave them out to mean the tool itself", text)
	}
	if !shell.IsPlain(e.Command) {
		return Entry{}, fmt.Errorf("entry %q: the command must be plain words, the beginning of a simple command", text)
	}
	return e, nil
}

// EntryRule returns the rule for an element of allowedTools (decision Allow) or of
// excludeTools (decision Deny).
func EntryRule(entry registry.Entry, decision Decision) (Rule, error) {
	e, err := ParseEntry(entry.Value)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Tool: e.Tool, Command: e.Command, Decision: decision, Origin: entry.Setting}
	switch decision {
	case Allow:
		r.Reason = fmt.Sprintf("allowedTools names %q", entry.Value)
	case Deny:
		r.Reason = fmt.Sprintf("excludeTools names %q", entry.Value)
	}
	return r, nil
}
