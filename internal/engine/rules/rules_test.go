package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings"
)

// load reads a file that is given for the run, and the settings of a trusted project.
func load(t *testing.T, given, project string) *settings.Settings {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{filepath.Join(dir, "given.yaml"): given,
		filepath.Join(dir, ".toolreg", "settings.yaml"): project}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{filepath.Join(dir, "given.yaml")},
		NoUser: true, TrustProject: true, SystemDir: dir, Environ: []string{"HOME=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// What is excluded is denied before any rule allows it, and allowedTools come last. The rules of a project
// are not the person's.
func TestOrderOfRules(t *testing.T) {
	set := load(t, `
allowedTools: [glob]
excludeTools: [write_file, run_shell_command(rm)]
policy:
  rules:
    - {tool: edit, decision: ask}
    - {tool: "*", decision: allow}
`, `
excludeTools: [web_fetch]
policy:
  rules: [{tool: grep, decision: deny}]
`)
	compiled, err := Compile(set, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range compiled.All {
		whose := "project"
		if r.Personal {
			whose = "person"
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", whose, r.Decision, r.Tool, r.Command)))
	}
	want := []string{
		"project: deny web_fetch", "person: deny write_file", "person: deny run_shell_command rm",
		"person: ask edit", "person: allow *", "project: deny grep",
		"person: allow glob",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// All mistakes are reported at once, each at its place.
func TestMistakesInRules(t *testing.T) {
	set := load(t, `excludeTools:
  - run_shell_command(rm
policy:
  rules:
    - {tool: x, decision: allow, when: "("}
    - {tool: y, decision: allow}
    - {tool: read_file, decision: sandbox}
allowedTools:
  - x)
`, "")
	_, err := Compile(set, nil, nil)
	if err == nil {
		t.Fatal("the rules are compiled")
	}
	for _, want := range []string{
		`given.yaml:2:5: entry "run_shell_command(rm" lacks a closing parenthesis`,
		`given.yaml:5:7: when "(" is `,
		`given.yaml:7:7: decision sandbox does not apply here: the tool starts no program`,
		`given.yaml:9:5: entry "x)" has a closing parenthesis without an opening one`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

// A rule must do with its example calls what it says that it does.
func TestExamplesOfRules(t *testing.T) {
	for name, tt := range map[string]struct{ rule, wrong string }{
		"a line that matches":            {`command: git push, decision: ask, match: [git push origin]`, ""},
		"a line that does not match":     {`command: git push, decision: ask, match: [git pull]`, `match: the rule does not match "git pull"`},
		"a line that must not match":     {`command: git push, decision: ask, notMatch: [git pull]`, ""},
		"a line that must not, but does": {`command: git push, decision: ask, notMatch: [git pull, git push -f]`, `notMatch: the rule matches "git push -f"`},
		"an alias of a built-in tool":    {`path: "*.md", decision: deny, match: [{tool: read, params: {file_path: a.md}}]`, ""},
		"another path":                   {`path: "*.md", decision: deny, match: [{tool: read, params: {file_path: a.go}}]`, `match: the rule does not match "read`},
		"a tool of a server":             {`server: files, tool: get, decision: deny, match: [{tool: get}, {tool: files__get}]`, ""},
		"a tool of another server":       {`server: files, decision: deny, match: [{tool: mail__get}]`, `match: the rule does not match "mail__get"`},
		"a condition that is true":       {`tool: t, when: .n > 1, decision: allow, match: [{tool: t, params: {n: 2}}]`, ""},
		"a condition that cannot be met": {`tool: t, when: 'error("no")', decision: allow, match: [{tool: t}]`, `match: the rule cannot be checked with "t"`},
	} {
		t.Run(name, func(t *testing.T) {
			given := "excludeTools: [web_fetch]\nallowedTools: [glob]\npolicy: {rules: [{" + tt.rule + "}]}"
			compiled, err := Compile(load(t, given, ""), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var opts builtin.Options
			opts.Workspace.Dir = t.TempDir()
			tools := builtin.Source(opts)
			switch err := compiled.CheckExamples(t.Context(), tools, "bash"); {
			case tt.wrong == "" && err != nil:
				t.Error(err)
			case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
				t.Errorf("%v, want %q", err, tt.wrong)
			}
		})
	}
}

// What a variable contains is no glob, and ~ is the home folder at the beginning alone.
func TestPathsOfRules(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the home folder is that of USERPROFILE, and a path cannot be quoted")
	}
	environ := expand.NewEnviron([]string{"HOME=/home/[me]", "D=a*b", "EMPTY="})
	for path, want := range map[string]string{
		"~/x/**": `/home/\[me\]/x/**`, "~": `/home/\[me\]`, "$HOME/*": `/home/\[me\]/*`, "${D}/*": `a\*b/*`, "${EMPTY:-x}": "x",
		"x/~/y": "x/~/y", "~you/x": "~you/x", "a$$b": "a$b", "src/**": "src/**",
	} {
		set := load(t, "policy: {rules: [{path: '"+path+"', decision: deny}]}", "")
		compiled, err := Compile(set, environ.Lookup, nil)
		if err != nil || compiled.All[0].Path != want {
			t.Errorf("%s: %v, %v, want %s", path, compiled, err, want)
		}
	}
}
