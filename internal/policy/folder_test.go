package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
)

// A rule or an answer that allows a command outside the sandbox by its words does not allow what
// another folder would make of them.
func TestFolderOfCommand(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"sub/nested/.git", "plain/src", "node_modules/x", ".cache/x", "empty", "unpacked/src"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tracks(t, root, "sub/a", "plain/src/a", "node_modules/x/a", ".cache/x/a")
	if err := os.WriteFile(filepath.Join(root, "unpacked", "Makefile"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "sub", "nested"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dir, line string
		want      Decision
	}{
		{"", "make", Allow},
		{"", "cd . && make", Allow},
		{"", "cd " + root + " && make", Allow},
		{"sub", "make", Allow},
		{"sub", "cd .. && make", Allow},
		{"", "cd sub && make", Allow},
		{"", "cd sub/nested && make", Ask},
		{"", "cd link && make", Ask},
		{"", "cd empty && make", Ask},
		{"", "cd unpacked && make", Ask},
		{"unpacked/src", "make", Ask},
		{"plain/src", "make", Allow},
		{"", "cd plain && npm test && cd ../new && npm test", Ask},
		{"", "cd node_modules/x && npm test", Ask},
		{".cache", "make", Ask},
		{"", "cd .. && make", Ask},
		{"", "(cd sub); make", Allow},
		{"sub", "cat x", Allow},
		{"", "cd unpacked && cat x", Allow},
		{"plain", "npm test", Allow},
		{"plain", "python3 x.py", Allow},
		{"plain", "./run.sh", Allow},
		{"plain", "git status", Allow},
		{"sub", "git status", Allow},
		{"sub/nested", "git status", Ask},
		{"sub/nested/deeper", "git status", Ask},
		{"", "cd / && git status", Ask},
		{"plain", "mytool check", Allow},
		{"plain", "/usr/bin/make", Allow},
	} {
		tool := commandTool(tt.line, tt.dir)
		p := &Policy{Workspace: filepath.ToSlash(root)}
		for _, command := range []string{"make", "/usr/bin/make", "cat", "npm test", "python3 x.py", "./run.sh", "git", "mytool check", "cd"} {
			p.Rules = append(p.Rules, Rule{Tool: "run_shell_command", Command: command, Decision: Allow})
		}
		v := p.Decide(t.Context(), tool, registry.Call{})
		if v.Decision != tt.want || v.Decision == Ask && !strings.Contains(v.Reason, "depends on its folder") {
			t.Errorf("%q in %q: %s (%s), want %s", tt.line, tt.dir, v.Decision, v.Reason, tt.want)
		}
	}

	for line, want := range map[string]Decision{
		"cd sub && make": Allow, "cd " + root + " && make": Allow, "cd sub && cd .. && make": Allow, "(cd sub); make": Allow,
		"cd /tmp; make": Ask, "cd empty; make": Ask, "cd link; make": Ask, "cd sub/nested; make": Ask, "cd; make": Ask, "cd -; make": Ask,
		"cd $x; make": Ask, "cd sub": Ask, "pushd sub; make": Ask,
	} {
		p := &Policy{Workspace: filepath.ToSlash(root), Rules: []Rule{{Command: "make", Decision: Allow}}}
		if v := p.Decide(t.Context(), commandTool(line, ""), registry.Call{}); v.Decision != want {
			t.Errorf("without a rule on cd, %q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}

	line := commandTool("make", "sub/nested")
	when, err := jq.Compile(`.directory == "sub/nested"`)
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range map[string]Rule{
		"it names the folder": {Tool: "run_shell_command", Command: "make", When: when, Decision: Allow},
		"it names no command": {Tool: "run_shell_command", Decision: Allow},
	} {
		p := &Policy{Workspace: filepath.ToSlash(root), Rules: []Rule{rule}}
		if v := p.Decide(t.Context(), line, registry.Call{Params: []byte(`{"directory": "sub/nested"}`)}); v.Decision != Allow {
			t.Errorf("%s: %s (%s)", name, v.Decision, v.Reason)
		}
	}

	p := &Policy{Workspace: filepath.ToSlash(root), Approvals: &Approvals{Dir: stateDir(t)}}
	if v := p.Decide(t.Context(), line, registry.Call{}); v.Decision != Ask || !strings.Contains(v.Reason, "category command") {
		t.Errorf("asked about in any folder: %s (%s)", v.Decision, v.Reason)
	}
	if err := p.Approvals.Remember(t.Context(), line, Scope{Kind: ScopeCommand, Values: []string{"make"}}); err != nil {
		t.Fatal(err)
	}
	v := p.Decide(t.Context(), line, registry.Call{})
	if v.Decision != Ask || len(v.Scopes) > 0 || !strings.Contains(v.Reason, "depends on its folder") {
		t.Errorf("always: %+v", v)
	}
	if v := p.Decide(t.Context(), commandTool("make", ""), registry.Call{}); v.Decision != Allow {
		t.Errorf("always, in the workspace: %+v", v)
	}
}

// tracks makes a folder a repository in which git tracks files.
func tracks(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{"init", "-q"}, append([]string{"add", "-f"}, names...)} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, argv...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", argv, err, out)
		}
	}
}

// Where git tracks nothing, only the workspace itself is known to be the project.
func TestFoldersWithoutRepository(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "web"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Policy{Workspace: filepath.ToSlash(root), Rules: entries(t, Allow, "run_shell_command(make)", "run_shell_command(cd)")}
	for line, want := range map[string]Decision{"make": Allow, "cd web && make": Ask} {
		if v := p.Decide(t.Context(), commandTool(line, ""), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s)", line, v.Decision, v.Reason)
		}
	}
	outer := filepath.Dir(root)
	tracks(t, outer, filepath.Base(root)+"/web/a")
	if v := p.Decide(t.Context(), commandTool("cd web && make", ""), registry.Call{}); v.Decision != Allow {
		t.Errorf("in a repository that holds the workspace: %s (%s)", v.Decision, v.Reason)
	}
}

// A rule on a program allows it in a folder of the project that an option names, as after a cd. In another
// folder only a rule with all words does.
func TestFolderInOption(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"web/src", "unpacked", "lib/.git"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tracks(t, root, "web/a", "web/src/a")
	for name, target := range map[string]string{"link": "web", "out": t.TempDir()} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	rules := entries(t, Allow, "run_shell_command(make)", "run_shell_command(git status)", "run_shell_command(git diff)", "run_shell_command(go test)", "run_shell_command(cd)")
	for line, want := range map[string]Decision{
		"make -C web":                            Allow,
		"make -C web html":                       Allow,
		"make --directory web/src -j4 html":      Allow,
		"cd web && make -C src":                  Allow,
		"env make -C web":                        Allow,
		"go -C web test ./...":                   Allow,
		"git -C web status -s":                   Allow,
		"git -C unpacked status":                 Allow, // in the same repository
		"make -C " + root + "/web":               Allow,
		"make -C web CC=x":                       Ask,
		"make -C web -C ../unpacked":             Ask,
		"make -C unpacked":                       Ask,
		"make -C link":                           Ask,
		"make -C out":                            Ask,
		"make -C out/../web":                     Ask,
		"make -C ..":                             Ask,
		"make -C /":                              Ask,
		"make -C ~":                              Ask,
		"make -C $x":                             Ask,
		"make -C 'we'*":                          Ask,
		"make -k -C web":                         Ask,
		"make -Cweb":                             Ask,
		"make -C":                                Ask,
		"./make -C web":                          Ask,
		"cd out && make -C web":                  Ask,
		"cd $x && make -C web":                   Ask,
		"git -C lib status":                      Ask,
		"git -C out status":                      Ask,
		"git -C web push":                        Ask,
		"git -C none status":                     Ask,
		"git -C web/a status":                    Ask,
		"git -C web -c core.pager=x status":      Ask,
		"go -C unpacked test":                    Ask,
		"go -C web test -exec x":                 Ask,
		"git -C web diff --output=/etc/x":        Ask,
		"git -C web diff --output=denied":        Deny,
		"cd web && git -C src diff --output=new": Deny,
	} {
		p := &Policy{Workspace: filepath.ToSlash(root), Rules: append([]Rule{{Path: "web/denied", Decision: Deny}, {Path: "web/src/new", Decision: Deny}}, rules...)}
		if v := p.Decide(t.Context(), commandTool(line, ""), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
	whole := &Policy{Workspace: filepath.ToSlash(root), Rules: entries(t, Allow, "run_shell_command(make -C unpacked all)")}
	if v := whole.Decide(t.Context(), commandTool("make -C unpacked all", ""), registry.Call{}); v.Decision != Allow {
		t.Errorf("a rule with all words: %s (%s)", v.Decision, v.Reason)
	}
	denied := &Policy{Workspace: filepath.ToSlash(root), Rules: append(entries(t, Deny, "run_shell_command(git diff)"), Rule{Decision: Allow})}
	if v := denied.Decide(t.Context(), commandTool("git -C web diff", ""), registry.Call{}); v.Decision != Deny {
		t.Errorf("a rule that denies: %s (%s)", v.Decision, v.Reason)
	}

	asking := &Policy{Workspace: filepath.ToSlash(root), Approvals: &Approvals{Dir: stateDir(t)}}
	v := asking.Decide(t.Context(), commandTool("git -C web status -s", ""), registry.Call{})
	if len(v.Scopes) != 1 || v.Scopes[0].Covers() != `"git status …"` {
		t.Fatalf("always is offered for %+v", v.Scopes)
	}
	if err := asking.Approvals.Remember(t.Context(), commandTool("", ""), v.Scopes[0]); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{"git status": Allow, "git -C web status": Allow, "git -C out status": Ask, "git -C web push": Ask} {
		if v := asking.Decide(t.Context(), commandTool(line, ""), registry.Call{}); v.Decision != want {
			t.Errorf("%q after always: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

func commandTool(line, dir string) *registry.Tool {
	return builtinTool("run_shell_command", registry.CategoryCommand, registry.Subject{Command: line, Directory: dir})
}

// A program that writes its operands into a folder asks if one of them would have a guarded name
// there.
func TestGuardedNamesInFolders(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "sub/hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]Decision{
		"cp x/.envrc sub":             Ask,
		"cp -t sub x/.envrc":          Ask,
		"ln -s x/.envrc sub/hooks/":   Ask,
		"ln -s x/.envrc":              Ask,
		"cd sub && cp x/.envrc hooks": Ask,
		"cp x/.envrc env":             Allow, // env is no folder
		"cp x/a sub":                  Allow,
	} {
		p := &Policy{Workspace: filepath.ToSlash(root), Guarded: func(path string) bool { return filepath.Base(path) == ".envrc" }}
		p.Rules = entries(t, Allow, "run_shell_command(cp)", "run_shell_command(ln)", "run_shell_command(cd)")
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}
