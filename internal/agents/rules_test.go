package agents

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/layers"
)

var update = flag.Bool("update", false, "rewrite the expected files")

var samples = map[string]string{"claude": "claude.json", "gemini": "gemini.toml", "codex": "default.rules"}

func importSample(t *testing.T, program string) ImportedRules {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "rules", samples[program]))
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte("\ufeff"), data...) // a byte order mark is skipped
	got, err := ImportRules(t.Context(), program, []RuleFile{{Path: samples[program], Data: data}}, "/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The examples of the programs' documentation become rules that are valid settings.
func TestImportRules(t *testing.T) {
	for _, program := range RulePrograms() {
		t.Run(program, func(t *testing.T) {
			got := importSample(t, program)
			yaml := RulesYAML(got.Rules)
			text := yaml + "# notes:\n# " + strings.Join(got.Notes, "\n# ") + "\n"
			golden := filepath.Join("testdata", "rules", program+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if unknown, err := layers.CheckFile("rules.yaml", []byte(yaml)); err != nil || len(unknown) > 0 {
				t.Errorf("not valid as settings: %v %v", err, unknown)
			}
		})
	}
}

func TestImportErrors(t *testing.T) {
	for _, tt := range []struct{ program, data, want string }{
		{"claude", `{"permissions": {"allow": [}`, "x:1"},
		{"claude", `{"permissions": {"deny": "Bash"}}`, "permissions.deny is not a list"},
		{"gemini", "[[rule]\n", "x:1"},
		{"codex", "x = 1\n", "x:1:1: expected a call"},
		{"codex", "\nprefix_rule(pattern = [f()])\n", "x:2:24: expected a string or a list"},
		{"codex", "prefix_rule(pattern = [\"a\" + \"b\"])", "values are read, not computed"},
		{"codex", "prefix_rule(pattern = [\"a)\n", "unexpected newline in string"},
		{"codex", "prefix_rule(pattern = " + strings.Repeat("[", 2000), "excessive nesting"},
		{"codex", "prefix_rule(pattern = [b\"a\", 1])", "expected a string or a list"},
		{"codex", "prefix_rule(pattern = [\"\xff\"])", "not valid UTF-8"},
		{"codex", "prefix_rule(pattern = \"a\", pattern = \"b\")", "pattern is given twice"},
		{"codex", "prefix_rule([\"a\"])", "expected an argument"},
		{"codex", "prefix_rule(**x)", "expected an argument"},
		{"codex", "x.prefix_rule()", "expected a call"},
		{"codex", "x = prefix_rule()", "expected a call"},
		{"codex", "load(\"x\", \"y\")", "expected a call"},
		{"other", "", `unknown program "other"`},
	} {
		_, err := ImportRules(t.Context(), tt.program, []RuleFile{{Path: "x", Data: []byte(tt.data)}}, "")
		if err == nil || !strings.Contains(err.Error(), strings.Replace(tt.want, "x:1", "x", 1)) && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: error %v, want %q", tt.program, tt.data, err, tt.want)
		}
	}
}

// Importing any file terminates, and the rules are valid settings.
func FuzzImport(f *testing.F) {
	for program, name := range samples {
		data, err := os.ReadFile(filepath.Join("testdata", "rules", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(program, data)
	}
	f.Fuzz(func(t *testing.T, program string, data []byte) {
		got, err := ImportRules(t.Context(), program, []RuleFile{{Path: "x", Data: data}}, "/home/ada")
		if err != nil || len(got.Rules) == 0 {
			return
		}
		if unknown, err := layers.CheckFile("rules.yaml", []byte(RulesYAML(got.Rules))); err != nil || len(unknown) > 0 {
			t.Errorf("%v %v\n%s", err, unknown, RulesYAML(got.Rules))
		}
	})
}

// A rule that settings cannot express is left out with a note; the others stay.
func TestRuleWithNUL(t *testing.T) {
	got, err := ImportRules(t.Context(), "claude", []RuleFile{{Path: "x", Data: []byte(`{"permissions": {"allow": ["Bash(a\u0000b)", "Bash(ls)"]}}`)}}, "/home/ada")
	if err != nil || len(got.Rules) != 1 || got.Rules[0].Command != "ls" || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "NUL") {
		t.Errorf("%+v, %v", got, err)
	}
}

// What YAML forbids is escaped.
func TestRuleWithControlCharacters(t *testing.T) {
	yaml := RulesYAML([]Rule{{Command: "a\x7f\u0080\ufeff\uffff\x1fb", Decision: allow, From: "x:1"}})
	if unknown, err := layers.CheckFile("rules.yaml", []byte(yaml)); err != nil || len(unknown) > 0 || !strings.Contains(yaml, `"a\u007f\u0080\ufeff\uffff\u001fb"`) {
		t.Errorf("%v %v\n%s", err, unknown, yaml)
	}
}

// What the program ignores allows nothing here either, and is reported.
func TestIgnoredEntriesAllowNothing(t *testing.T) {
	claude := func(entry string) string { return `{"permissions": {"allow": ["` + entry + `"]}}` }
	gemini := func(keys string) string { return "[[rule]]\ndecision = \"allow\"\npriority = 1\n" + keys }
	for _, tt := range []struct{ program, data string }{
		{"claude", claude("Bash()")},
		{"claude", claude("Bash( )")},
		{"claude", claude("Read( )")},
		{"claude", claude("Edit()")},
		{"claude", claude("WebFetch()")},
		{"claude", claude("WebFetch(domain:)")},
		{"claude", claude("WebFetch(domain:*.)")},
		{"claude", claude("Bash( *)")},
		{"claude", claude("Bash(* )")},
		{"claude", claude("Bash(:*)")},
		{"claude", claude("Bash(**)")},
		{"claude", claude("Edit(/)")},
		{"claude", claude("Edit(//)")},
		{"claude", claude("Edit(~/)")},
		{"claude", claude("mcp__*")},
		{"claude", claude("mcp__*__*")},
		{"claude", claude("mcp__a*__read")},
		{"claude", claude("mcp__{a,b}")},
		{"claude", claude("mcp__bank__?ay")},
		{"claude", claude("mcp__bank__")},
		{"claude", claude("mcp__ __pay")},
		{"gemini", gemini("toolName = []\nmcpName = \"bank\"")},
		{"gemini", gemini("toolName = \"run_shell_command\"\ncommandPrefix = []")},
		{"gemini", gemini("toolName = \"run_shell_command\"\ncommandPrefix = \" \"")},
		{"gemini", gemini("toolName = \"*\"\nmcpName = \"b*\"")},
		{"gemini", gemini("toolName = \"?ay\"\nmcpName = \"bank\"")},
		{"gemini", gemini("toolName = \"mcp_\"")},
		{"gemini", gemini("toolName = \"mcp_bank_\"")},
		{"gemini", gemini("toolName = \"__pay\"")},
		{"gemini", gemini("toolName = \"bank__\"")},
	} {
		got, err := ImportRules(t.Context(), tt.program, []RuleFile{{Path: "x", Data: []byte(tt.data)}}, "/home/ada")
		if err != nil || len(got.Rules) > 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], leftOut) {
			t.Errorf("%s: rules %+v, notes %q, %v", tt.data, got.Rules, got.Notes, err)
		}
	}
	// Patterns that the programs do support stay.
	for _, tt := range []struct {
		program, data string
		want          Rule
	}{
		{"claude", claude("Bash(*)"), Rule{Tool: shellTool}},
		{"claude", claude("mcp__bank__*"), Rule{Server: "bank"}},
		{"claude", claude("mcp__bank__get_*"), Rule{Server: "bank", Tool: "get_*"}},
		{"claude", `{"permissions": {"deny": ["mcp__*"]}}`, Rule{Server: "*"}},
		{"gemini", gemini("toolName = \"*\"\nmcpName = \"*\""), Rule{Server: "*"}},
		{"gemini", gemini("toolName = \"mcp_*\""), Rule{Server: "*"}},
	} {
		got, err := ImportRules(t.Context(), tt.program, []RuleFile{{Path: "x", Data: []byte(tt.data)}}, "/home/ada")
		if err != nil || len(got.Rules) != 1 || got.Rules[0].Server != tt.want.Server || got.Rules[0].Tool != tt.want.Tool {
			t.Errorf("%s: rules %+v, notes %q, %v", tt.data, got.Rules, got.Notes, err)
		}
	}
}

// What a rule would not do is said.
func TestNotesOfImportedRules(t *testing.T) {
	claude := func(list, entry string) string { return `{"permissions": {"` + list + `": ["` + entry + `"]}}` }
	for _, tt := range []struct{ program, data, rule, note string }{
		{"claude", claude("allow", "NotebookEdit"), `{tool: "edit", path: "**/*.ipynb", decision: allow}`, ""},
		{"claude", claude("deny", "NotebookEdit"), `{source: "builtin", category: "write", path: "**/*.ipynb", decision: deny}`, ""},
		{"claude", claude("ask", "NotebookEdit(docs/*)"), `{source: "builtin", category: "write", path: "**/*.ipynb", decision: ask}`, "it applies to all notebooks"},
		{"claude", claude("deny", "Grep(secrets/**)"), `{source: "builtin", path: "secrets/**", decision: deny}`, "it applies to writing too"},
		{"claude", claude("deny", "Write(secrets/**)"), `{source: "builtin", category: "write", path: "secrets/**", decision: deny}`, ""},
		{"claude", claude("allow", "NotebookEdit(docs/*)"), "", "Claude Code ignores paths of NotebookEdit"},
		{"claude", claude("allow", "Bash(timeout 60 npx tsc:*)"), `{tool: "run_shell_command", command: "timeout 60 npx tsc", decision: allow}`, `the rule matches nothing: toolreg decides on the command that runs in it; write a rule on "npx tsc"`},
		{"claude", claude("allow", "Bash(nice make:*)"), `{tool: "run_shell_command", command: "nice make", decision: allow}`, `write a rule on "make"`},
		{"claude", claude("allow", "Bash(env A=1 make:*)"), "", `write a rule on "make"`},
		{"claude", claude("deny", "Bash(timeout 60 npx tsc:*)"), `{tool: "run_shell_command", command: "timeout 60 npx tsc", decision: deny}`, ""},
		{"claude", claude("allow", "Bash(git status:*)"), `{tool: "run_shell_command", command: "git status", decision: allow}`, ""},
		{"claude", `{"allow": ["Bash(ls)"]}`, "", "x:1: allow is not read: Claude Code has its rules in permissions.allow, ask and deny"},
		{"claude", `{"permission": {"allow": ["Bash(ls)"]}}`, "", "permission is not read"},
		{"gemini", "[[rules]]\ntoolName = \"edit\"\ndecision = \"allow\"", "", "rules is not read: rules of Gemini CLI are in tables [[rule]]"},
		{"gemini", "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"timeout 5 make\"\ndecision = \"allow\"", `{tool: "run_shell_command", command: "timeout 5 make", decision: allow}`, `write a rule on "make"`},
	} {
		got, err := ImportRules(t.Context(), tt.program, []RuleFile{{Path: "x", Data: []byte(tt.data)}}, "/home/ada")
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(got.Notes, "\n"); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
			t.Errorf("%s: notes %q, want %q", tt.data, notes, tt.note)
		}
		if yaml := RulesYAML(got.Rules); tt.rule != "" && !strings.Contains(yaml, tt.rule) {
			t.Errorf("%s: %s, want %s", tt.data, yaml, tt.rule)
		}
	}
}

// Imported rules can be exported again without changing their meaning.
func TestRoundTrip(t *testing.T) {
	for _, program := range RulePrograms() {
		t.Run(program, func(t *testing.T) {
			want := importSample(t, program).Rules
			text, notes := ExportRules(t.Context(), program, want)
			for _, line := range notes {
				t.Errorf("not exported: %s", line)
			}
			again, err := ImportRules(t.Context(), program, []RuleFile{{Path: "x", Data: []byte(text)}}, "/home/ada")
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if len(again.Rules) != len(want) {
				t.Fatalf("%d rules became %d:\n%s", len(want), len(again.Rules), text)
			}
			for i := range want {
				if !sameRule(want[i], again.Rules[i]) {
					t.Errorf("rule %d: %+v became %+v", i, want[i], again.Rules[i])
				}
			}
		})
	}
}

// The command of a rule may have wildcards, and other programs compare words as they are.
func TestExportedCommands(t *testing.T) {
	for command, want := range map[string][3]string{ // of Claude Code, Codex and Gemini CLI
		"git push":    {"Bash(git push:*)", `pattern = ["git","push"]`, `commandPrefix = "git push"`},
		"git push *":  {"Bash(git push:*)", `pattern = ["git","push"]`, `commandPrefix = "git push"`},
		"git push:*":  {`"Bash"`, `pattern = ["git"]`, `commandPrefix = "git"`},
		"git pus* -f": {`"Bash"`, `pattern = ["git"]`, `commandPrefix = "git"`},
		"g* push":     {`"Bash"`, "", `"run_shell_command"`},
	} {
		for i, program := range []string{"claude", "codex", "gemini"} {
			text, _ := ExportRules(t.Context(), program, []Rule{{Tool: shellTool, Command: command, Decision: deny}})
			if !strings.Contains(text, want[i]) || strings.Contains(text, "pus*") || want[i] == "" && text != "" {
				t.Errorf("%s: %s: %s", program, command, text)
			}
			if alone, _ := ExportRules(t.Context(), program, []Rule{{Command: command, Decision: deny}}); alone != text {
				t.Errorf("%s: %s without a tool: %s", program, command, alone)
			}
			text, _ = ExportRules(t.Context(), program, []Rule{{Tool: shellTool, Command: command, Decision: allow}})
			if strings.ContainsAny(command, "*") && strings.Contains(text, "git") {
				t.Errorf("%s: %s is allowed: %s", program, command, text)
			}
		}
	}
	for tool, want := range map[string]string{"edit": "replace", "grep": "search_file_content", "glob": "glob"} {
		text, notes := ExportRules(t.Context(), "gemini", []Rule{{Tool: tool, Decision: deny}, {Server: "s", Tool: tool, Decision: ask}})
		if !strings.Contains(text, "\ntoolName = \""+want+"\"\n") || !strings.Contains(text, "mcpName = \"s\"\ntoolName = \""+tool) ||
			len(notes) > 0 {
			t.Errorf("%s: %s, %q", tool, text, notes)
		}
	}
}

// A rule that a program cannot express is omitted if it allows, and becomes broader
// otherwise.
func TestExportNeverLoosens(t *testing.T) {
	rules := []Rule{
		{Tool: shellTool, When: ".command | length < 10", Decision: allow, From: "s:1"},
		{Tool: shellTool, When: ".command | length > 10", Decision: deny, From: "s:2"},
		{Server: "bank", Tool: "pay", When: ".amount > 5", Decision: deny, From: "s:3"},
		{Source: "plugin:*", Decision: deny, From: "s:4"},
		{Tool: "a_discovered_tool", Decision: deny, From: "s:5"}, // says nothing about Read or Edit
	}
	text, notes := ExportRules(t.Context(), "claude", rules)
	want := `{"permissions":{"deny":["Bash","mcp__bank__pay"]}}`
	if got := strings.Join(strings.Fields(text), ""); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(notes) < 5 {
		t.Errorf("said: %q", notes)
	}
}

// Without a home folder the files of the user are unknown, rather than those of the working directory.
func TestRulePlacesAreAbsolute(t *testing.T) {
	for _, program := range RulePrograms() {
		for _, p := range RulePlaces(program, t.TempDir(), nil) {
			if !filepath.IsAbs(p.Path) {
				t.Errorf("%s: %s", program, p.Path)
			}
		}
	}
}
