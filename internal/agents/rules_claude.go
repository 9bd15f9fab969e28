package agents

import (
	"cmp"
	"path"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// claudeReader reads the permissions of Claude Code.
type claudeReader struct {
	ImportedRules
	home  string
	lists map[string][]Rule // by decision
}

// readClaude reads the lists permissions.allow, ask and deny of Claude Code's
// settings files. As in Claude Code, deny takes precedence over ask, and ask over
// allow. home is the user's home folder. The error names the file that cannot be
// parsed.
func readClaude(files []RuleFile, home string) (ImportedRules, error) {
	r := &claudeReader{home: home, lists: map[string][]Rule{}}
	for _, f := range files {
		name := f.Path
		if !document.IsJSON(name) {
			name += ".json" // regardless of its name
		}
		doc, problems := document.ParseForeign(name, f.Data)
		if doc == nil {
			for i := range problems {
				problems[i].File = f.Path
			}
			return ImportedRules{}, document.NewError(problems)
		}
		if m := doc.Root.Get("sandbox"); m != nil {
			r.addNote(place(f.Path, int(m.Line)), "sandbox is not imported; see toolreg help sandbox")
		}
		for _, key := range []string{"allow", "ask", "deny", "permission", "allowedTools", "disallowedTools"} {
			if m := doc.Root.Get(key); m.Is(jsonx.Array) || m.Is(jsonx.Object) {
				r.addNote(place(f.Path, int(m.Line)),
					key+" is not read: Claude Code has its rules in permissions.allow, ask and deny")
			}
		}
		for _, m := range doc.Members("permissions") {
			switch m.Name {
			case allow, ask, deny:
				if m.Value.Kind != jsonx.Array {
					line, col := m.Place()
					return ImportedRules{}, document.NewError([]document.Problem{{
						File: f.Path, Line: line, Col: col,
						Message: "permissions." + m.Name + " is not a list",
					}})
				}
				r.readRules(f.Path, m.Name, m.Value)
			default:
				r.addNote(place(f.Path, int(m.Line)),
					"permissions."+m.Name+" is not a rule; see approvalMode and workspace")
			}
		}
	}
	for _, decision := range []string{deny, ask, allow} {
		r.Rules = append(r.Rules, r.lists[decision]...)
	}
	return r.ImportedRules, nil
}

func (r *claudeReader) readRules(file, decision string, list *jsonx.Value) {
	for _, n := range list.Items {
		from := place(file, int(n.Line)) + ": " + decision + " " + n.Text()
		if n.Kind != jsonx.String {
			r.addNote(place(file, int(n.Line)), "not a string")
			continue
		}
		rule, note := r.entry(decision, strings.TrimSpace(n.Text()))
		if note != "" {
			r.addNote(from, note)
		}
		if rule != nil {
			rule.Decision, rule.From = decision, from
			r.lists[decision] = append(r.lists[decision], *rule)
		}
	}
}

// notebooks are the files that NotebookEdit changes.
const notebooks = "**/*.ipynb"

// entry converts one entry such as Bash(npm run test:*). If there is no
// counterpart, or only an inexact one, the note says why.
func (r *claudeReader) entry(decision, entry string) (rule *Rule, note string) {
	name, spec, found := strings.Cut(entry, "(")
	if found {
		var ok bool
		if spec, ok = strings.CutSuffix(spec, ")"); !ok {
			return nil, leftOut + "the closing parenthesis is missing"
		}
		written := spec
		if spec = strings.TrimSpace(spec); spec == "" {
			return nil, leftOut + "Claude Code ignores empty parentheses"
		}
		if decision == allow && spec != written {
			return nil, leftOut + "blanks around the pattern are part of it in Claude Code"
		}
	}
	if server, ok := strings.CutPrefix(name, "mcp__"); ok {
		return mcpEntry(decision, server, found)
	}
	switch name {
	case "Bash":
		return bashEntry(decision, spec)
	case "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep", "LS":
		return r.fileEntry(decision, name, spec)
	case "WebFetch":
		return fetchEntry(decision, spec)
	case "TodoWrite":
		return &Rule{Tool: "todo_write"}, ""
	}
	return nil, leftOut + "toolreg has no tool " + name
}

// mcpEntry converts the name of a server, or server__tool.
func mcpEntry(decision, name string, params bool) (*Rule, string) {
	server, tool, named := strings.Cut(name, "__")
	switch {
	case strings.TrimSpace(server) == "":
		return nil, leftOut + "the name of the server is missing"
	case named && strings.TrimSpace(tool) == "":
		return nil, leftOut + "the name of the tool is missing"
	case decision == allow && (text.IsGlob(server) || text.IsGlob(strings.TrimSuffix(tool, "*"))):
		return nil, leftOut + "in allow, Claude Code supports * only at the end of the name of a tool"
	}
	if params && decision == allow {
		return nil, leftOut + "the condition on params has no counterpart"
	}
	rule := &Rule{Server: server, Tool: tool}
	if tool == "*" {
		rule.Tool = ""
	}
	if params {
		return rule, broader + "it applies to all params"
	}
	return rule, ""
}

func bashEntry(decision, spec string) (*Rule, string) {
	prefix, isPrefix := strings.CutSuffix(spec, ":*")
	if !isPrefix && strings.Count(spec, "*") == 1 {
		prefix, isPrefix = strings.CutSuffix(spec, " *")
	}
	switch {
	case spec == "" || spec == "*":
		return &Rule{Tool: shellTool}, ""
	case isPrefix && !strings.Contains(prefix, "*"):
		return prefixRule(decision, prefix)
	case strings.Contains(spec, "*"):
		return patternRule(decision, strings.ReplaceAll(spec, ":*", "*"))
	case decision == allow && isLiteral(spec):
		return &Rule{Tool: shellTool, Command: spec, When: ".command == " + jsonx.Quote(spec)}, ""
	case decision == allow:
		return nil, leftOut + "the command is more than plain words"
	}
	rule, note := prefixRule(decision, spec)
	note = cmp.Or(note, broader+"it applies to "+spec+" with more arguments too")
	return rule, note
}

// prefixRule returns a rule for commands that begin with words.
func prefixRule(decision, words string) (*Rule, string) {
	switch {
	case isLiteral(words) && decision == allow:
		note := ""
		if longer := shell.Read(shell.Bash, words+" ARGUMENT", "").Commands; len(longer) == 1 && longer[0].Exact != "" {
			note = "the rule is narrower: " + longer[0].Exact + ", so it asks with others"
		}
		return &Rule{Tool: shellTool, Command: words}, note
	case isLiteral(words):
		return &Rule{Tool: shellTool, Command: words}, ""
	case decision == allow:
		return nil, leftOut + "the command is more than plain words"
	}
	return &Rule{Tool: shellTool, When: ".command | contains(" + jsonx.Quote(words) + ")"},
		broader + "it applies to every line that contains the text"
}

// patternRule returns a rule for commands that match a pattern with wildcards.
func patternRule(decision, pattern string) (*Rule, string) {
	if decision != allow {
		command := strings.TrimSuffix(strings.ReplaceAll(pattern, " * -", " -"), " *")
		if at := len(command) - len(" -x*"); at > 0 && strings.HasPrefix(command[at:], " -") {
			command = strings.TrimSuffix(command, "*")
		}
		if isLiteral(command) {
			return &Rule{Tool: shellTool, Command: command},
				broader + "it applies to the options anywhere in a command and in every spelling"
		}
		return &Rule{Tool: shellTool, When: matchesExpression("(?s)" + wildcards(pattern))},
			broader + "it applies to every line that contains a match"
	}
	head := pattern[:strings.IndexByte(pattern, '*')]
	head = strings.TrimSpace(head[:strings.LastIndexByte(head, ' ')+1])
	if !isLiteral(head) {
		return nil, leftOut + "the wildcard also matches the program"
	}
	return &Rule{Tool: shellTool, Command: head, When: "(" + matchesExpression("^"+wildcards(pattern)+"$") + ") and " + oneCommand},
		"the rule is narrower: it applies only to single commands"
}

// fileEntry converts an entry for tools that read or write files.
func (r *claudeReader) fileEntry(decision, name, spec string) (*Rule, string) {
	own := map[string]string{
		"Read": "read_file", "Edit": "edit", "Write": "write_file", "MultiEdit": "edit",
		"NotebookEdit": "edit", "Glob": "glob", "Grep": "grep", "LS": "list_directory",
	}[name]
	category := map[string]string{"Read": "read", "Edit": "write"}[name]
	if name == "NotebookEdit" && (decision != allow || spec == "" || spec == "*" || spec == "**") {
		// Edit changes other files too.
		rule := &Rule{Tool: own, Path: notebooks}
		if decision != allow {
			rule = &Rule{Source: builtin, Category: "write", Path: notebooks}
		}
		if spec != "" && spec != "*" && spec != "**" {
			return rule, broader + "it applies to all notebooks"
		}
		return rule, ""
	}
	if spec == "" || spec == "*" || spec == "**" {
		if decision == allow || category == "" {
			return &Rule{Tool: own}, ""
		}
		return &Rule{Source: builtin, Category: category}, ""
	}
	glob, ok := r.glob(spec)
	switch {
	case decision != allow && !ok:
		return &Rule{Source: builtin, Category: category},
			broader + "the pattern has no counterpart, so it applies to all files"
	case !ok:
		return nil, leftOut + "the pattern has no counterpart"
	case decision == allow && category == "":
		return nil, leftOut + "Claude Code ignores paths of " + name
	case decision == allow:
		return &Rule{Source: builtin, Category: category, Path: glob}, ""
	case own != "edit" && own != "write_file":
		return &Rule{Source: builtin, Path: glob},
			broader + "it applies to writing too; shell commands that read these files are not covered"
	}
	return &Rule{Source: builtin, Category: "write", Path: glob}, ""
}

// glob converts a pattern in gitignore's syntax: //x is absolute, ~/x is in the
// home folder, /x and ./x are in the project, and a name without a slash matches at
// any depth.
func (r *claudeReader) glob(spec string) (string, bool) {
	if strings.ContainsAny(spec, "{}\\") || strings.HasPrefix(spec, "!") {
		return "", false
	}
	here, anchored := strings.CutPrefix(spec, "./")
	if strings.Trim(here, "/") == "" || strings.Trim(here, "/") == "~" && strings.Contains(here, "/") {
		return "", false // as in gitignore, it matches nothing
	}
	folder := strings.HasSuffix(here, "/")
	here = strings.TrimSuffix(here, "/")
	anchored = anchored || strings.Contains(here, "/")
	if folder {
		here += "/**"
	}
	switch {
	case strings.HasPrefix(here, "//"):
		return here[1:], true
	case strings.HasPrefix(here, "~/"):
		return path.Join(r.home, here[2:]), r.home != ""
	case strings.HasPrefix(here, "/"):
		return here[1:], len(here) > 1
	case !anchored:
		return "**/" + here, here != ""
	}
	return here, here != ""
}

func fetchEntry(decision, spec string) (*Rule, string) {
	host, ok := strings.CutPrefix(spec, "domain:")
	switch {
	case ok && strings.TrimPrefix(host, "*.") == "":
		return nil, leftOut + "the domain is missing"
	case spec == "" || spec == "*" || host == "*":
		return &Rule{Tool: fetchTool}, ""
	case ok && !strings.Contains(strings.TrimPrefix(host, "*."), "*"):
		return &Rule{Tool: fetchTool, When: onHost(host, decision != allow)}, ""
	case decision == allow:
		return nil, leftOut + "the condition has no counterpart"
	}
	return &Rule{Tool: fetchTool}, broader + "it applies to all addresses"
}
