package policy

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/trust"
)

// shellTool is a tool like the built-in shell tool.
func shellTool(command string) *registry.Tool {
	return &registry.Tool{
		Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin, Category: registry.CategoryCommand},
		Behavior:   registry.Behavior{Subject: func(registry.Call) (registry.Subject, error) { return registry.Subject{Command: command}, nil }},
	}
}

func entries(t testing.TB, decision Decision, values ...string) []Rule {
	t.Helper()
	var out []Rule
	for _, v := range values {
		r, err := EntryRule(registry.Entry{Value: v, Setting: "settings.yaml:1"}, decision)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func banned() []registry.Entry {
	var out []registry.Entry
	for _, b := range []string{"sudo", "su", "doas", "rm", "mkfs", "mkfs.*", "dd", "shutdown", "reboot"} {
		out = append(out, registry.Entry{Value: b, Setting: "default"})
	}
	return out
}

// shellPolicy is a policy with rules on some commands.
func shellPolicy(t testing.TB) *Policy {
	rules := entries(t, Deny, "run_shell_command(git push)")
	return &Policy{Rules: append(rules, entries(t, Allow, "run_shell_command(ls)", "run_shell_command(echo)")...), Banned: banned()}
}

func TestShellModes(t *testing.T) {
	tests := []struct {
		name, line string
		change     func(*Policy)
		want       Decision
		reason     string
	}{
		{"yolo allows what would ask", "make", func(p *Policy) { p.Mode = ModeYolo }, Allow, "approval mode"},
		{"yolo keeps what is banned", "env rm x", func(p *Policy) { p.Mode = ModeYolo }, Deny, "shell.banned"},
		{"yolo keeps what a rule denies", "git push", func(p *Policy) { p.Mode = ModeYolo }, Deny, "git push"},
		{"yolo does not run what cannot be read", "make\n)", func(p *Policy) { p.Mode = ModeYolo }, Deny, "cannot be read"},
		{"yolo does not run a program that a variable names", "$X foo", func(p *Policy) { p.Mode = ModeYolo }, Deny, "banned commands cannot be ruled out"},
		{"yolo does not run text that a variable holds", `eval "$Y"`, func(p *Policy) { p.Mode = ModeYolo }, Deny, "banned commands cannot be ruled out"},
		{"yolo runs it where nothing is banned", "$X foo", func(p *Policy) { p.Mode, p.Banned, p.Rules = ModeYolo, nil, nil }, Allow, "approval mode"},
		{"yolo does not run it where a rule allows the tool", "$X foo", func(p *Policy) { allowTool(p); p.Mode = ModeYolo }, Deny, "banned commands cannot be ruled out"},
		{"a rule that asks about the tool is obeyed", "ls", func(p *Policy) {
			p.Rules = append([]Rule{{Tool: "run_shell_command", Decision: Ask, Reason: "ours"}}, p.Rules...)
		}, Ask, "ours"},
		{"yolo cannot read it, and nothing is banned", "make\n)", func(p *Policy) { p.Mode, p.Banned, p.Rules, p.AskCatastrophic = ModeYolo, nil, nil, true }, Allow, "approval mode"},
		{"yolo does not run a continued line, and only what is catastrophic is denied", "echo a\\\nb", func(p *Policy) { p.Mode, p.Banned, p.Rules = ModeYolo, nil, nil }, Deny, "commands that setting shell.catastrophic denies"},
		{"yolo cannot read it, and only what is catastrophic is denied", "make\n)", func(p *Policy) { p.Mode, p.Banned, p.Rules = ModeYolo, nil, nil }, Deny, "commands that setting shell.catastrophic denies cannot be ruled out"},
		{"yolo cannot read it, and a program is banned", "make\n)", func(p *Policy) { p.Mode, p.Rules, p.AskCatastrophic = ModeYolo, nil, true }, Deny, "cannot be read"},
		{"yolo cannot read it, and a rule denies a command", "make\n)", func(p *Policy) { p.Mode, p.Banned, p.AskCatastrophic = ModeYolo, nil, true }, Deny, "commands that rules deny cannot be ruled out"},
		{"yolo cannot read it, and rules only deny", "make\n)", func(p *Policy) { p.Mode, p.Banned, p.AskCatastrophic, p.Rules = ModeYolo, nil, true, p.Rules[:1] }, Deny, "commands that rules deny cannot be ruled out"},
		{"yolo cannot read it, and rules only allow", "make\n)", func(p *Policy) { p.Mode, p.Banned, p.AskCatastrophic, p.Rules = ModeYolo, nil, true, p.Rules[1:] }, Allow, "approval mode"},
		{"yolo cannot read it, and a rule denies another tool", "make\n)", func(p *Policy) {
			p.Mode, p.Banned, p.AskCatastrophic, p.Rules = ModeYolo, nil, true, []Rule{{Tool: "edit", Decision: Deny}}
		}, Allow, "approval mode"},
		{"the reason of what cannot be read is given first", "make; echo a\\\nb", func(*Policy) {}, Ask, "continue"},
		{"a command that changed since", "make all", func(p *Policy) {
			p.Approvals = &Approvals{Dir: stateDir(t)}
			if err := p.Approvals.Remember(t.Context(), &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin, Description: "older"}}, Scope{Kind: ScopeCommand, Values: []string{"make"}}); err != nil {
				t.Fatal(err)
			}
		}, Ask, "its description changed since you allowed it"},
		{"code among the words needs a rule with all of them", "python -c 'print(1)'", allowCommand("python"), Ask, "so a rule must have all words of the command"},
		{"code among the words, where the default allows it", "python -c 'print(1)'", func(p *Policy) {
			allowCommand("python")(p)
			p.Defaults = map[registry.Category]Rule{registry.CategoryCommand: {Decision: Allow, Reason: "ours"}}
		}, Allow, "ours"},
		{"a rule with all words", "python -c 'print(1)'", allowCommand("python -c 'print(1)'"), Allow, "a rule allows it"},
		{"a rule on another program", "python -c 'print(1)'", allowCommand("node"), Ask, "category command"},
		{"a rule on the program for another tool", "python -c 'print(1)'", func(p *Policy) { p.Rules = []Rule{{Tool: "other", Command: "python", Decision: Allow}} }, Ask, "category command"},
		{"a command without code", "make all", allowCommand("ninja"), Ask, "category command"},
		{"plan denies commands", "make", func(p *Policy) { p.Mode = ModePlan }, Deny, "plan mode"},
		{"plan denies allowed commands", "ls", func(p *Policy) { p.Mode = ModePlan }, Deny, "plan mode"},
		{"auto-edit asks about commands", "make", func(p *Policy) { p.Mode = ModeAutoEdit }, Ask, "category command"},
		{"a rule on the tool covers writes", "echo x > y", allowTool, Allow, "allowedTools"},
		{"a rule on the tool covers wrappers", "env FOO=1 make", allowTool, Allow, "allowedTools"},
		{"a rule on the tool covers no banned program", "make; rm x", allowTool, Deny, "shell.banned"},
		{"a rule on the tool covers no unknown program", "$x -rf y", allowTool, Ask, "shell.banned cannot be checked"},
		{"a rule on the tool covers nothing unreadable", "make\n)", allowTool, Ask, "cannot be read"},
		{"a rule on the tool covers no guarded file", "echo x > .git/hooks/pre-commit", allowTool, Ask, ".git/hooks"},
		{"a rule on mv covers no move onto a guarded file", "mv x .git/hooks/pre-commit", allowCommand("mv"), Ask, ".git/hooks/pre-commit"},
		{"a rule on mv covers no move of a guarded file", "mv .git/hooks/pre-commit x", allowCommand("mv"), Ask, ".git/hooks/pre-commit"},
		{"a rule on cp covers no copy onto a guarded file", "cp -f x .git/hooks/pre-commit", allowCommand("cp"), Ask, ".git/hooks/pre-commit"},
		{"a rule on cp covers a copy of a guarded file", "cp .git/hooks/pre-commit x", allowCommand("cp"), Allow, "a rule allows it"},
		{"a rule on cp covers no guarded folder in an option", "cp -t .git/hooks pre-commit", allowCommand("cp"), Ask, ".git/hooks"},
		{"a rule on touch covers no guarded file in braces", "touch .git/{hooks,x}/pre-commit", allowCommand("touch"), Ask, ".git/hooks/pre-commit"},
		{"a rule on mv covers no target that is known only at run time", "mv x \"a$y\"", allowCommand("mv"), Ask, "what mv writes is not known"},
		{"a rule on gzip covers no guarded file", "gzip .git/hooks/pre-commit", allowCommand("gzip"), Ask, ".git/hooks/pre-commit"},
		{"a rule on zip covers no archive with a guarded name", "zip .git/hooks/pre-commit x", allowCommand("zip"), Ask, ".git/hooks/pre-commit"},
		{"a rule on mv covers other files", "mv a b", allowCommand("mv"), Allow, "a rule allows it"},
		{"posix: &> means something else", "echo hi &>/dev/null rm -rf x", func(p *Policy) { p.Shell = shell.POSIX }, Ask, "cannot be read"},
		{"bash: &> is a redirection", "echo hi &>/dev/null rm -rf x", func(*Policy) {}, Allow, "echo"},
		{"another grammar is never allowed", "ls", func(p *Policy) { p.Shell = "powershell" }, Ask, "powershell"},
		{"another grammar may be denied", "ls; rm x", func(p *Policy) { p.Shell = "powershell" }, Deny, "rm"},
		{"too long", "ls " + strings.Repeat("a", 128<<10), func(p *Policy) { p.Mode = ModeYolo }, Deny, "over the limit"},
		{"too many shells", strings.Repeat("eval ", 40) + "ls", func(p *Policy) { p.Mode = ModeYolo }, Deny, "nested deeper"},
		{"too many wrappers", strings.Repeat("nohup ", 40) + "ls", func(p *Policy) { p.Mode = ModeYolo }, Deny, "nested deeper"},
		{"too many parentheses", strings.Repeat("(", 100), func(p *Policy) { p.Mode = ModeYolo }, Deny, "parentheses"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := shellPolicy(t)
			p.Guarded = func(path string) bool { return strings.HasPrefix(path, ".git/hooks") }
			tt.change(p)
			v := p.Decide(t.Context(), shellTool(tt.line), registry.Call{})
			if v.Decision != tt.want || !strings.Contains(v.Reason, tt.reason) {
				t.Errorf("got %s (%s), want %s with %q", v.Decision, v.Reason, tt.want, tt.reason)
			}
		})
	}
}

func allowTool(p *Policy) {
	p.Rules = []Rule{{Tool: "run_shell_command", Decision: Allow, Reason: "allowedTools", Origin: "settings.yaml:2"}}
}

func allowCommand(command string) func(*Policy) {
	return func(p *Policy) {
		p.Rules = []Rule{{Tool: "run_shell_command", Command: command, Decision: Allow, Origin: "settings.yaml:2"}}
	}
}

// A command that would run unasked asks if a sandboxed program may have changed what it starts
// with, and only then its question offers to accept the change.
func TestChangedFilesAsk(t *testing.T) {
	var accepted []string
	p := &Policy{Workspace: "/w", Rules: []Rule{{Tool: "run_shell_command", Command: "old", Decision: Allow}, {Tool: "run_shell_command", Command: "new", Decision: Allow}}}
	p.Means = func(string) Means {
		return Means{
			Missing: func() string { return "" },
			Changed: func(argv []string, _ string) []string {
				if argv[0] == "old" {
					return nil
				}
				return []string{"/w/" + argv[0]}
			},
			Accept: func(_ context.Context, paths []string, _ time.Time) error { accepted = paths; return nil },
		}
	}
	for line, want := range map[string]struct {
		decision Decision
		reason   string
		accept   []string
	}{
		"old":        {Allow, "a rule allows it", nil},
		"new":        {Ask, "a sandboxed program may have changed /w/new", []string{"/w/new"}},
		"old && new": {Ask, "a sandboxed program may have changed /w/new", []string{"/w/new"}},
		"ninja":      {Ask, "category command", nil}, // asks anyway
		"$X":         {Ask, "", nil},                 // starts with nothing that is known
	} {
		accepted = nil
		tool := shellTool(line)
		tool.Program = "shell"
		v := p.Decide(t.Context(), tool, registry.Call{})
		if v.Decision != want.decision || !strings.Contains(v.Reason, want.reason) || (v.Accept != nil) != (want.accept != nil) {
			t.Errorf("%s: %s (%s), with an offer: %t", line, v.Decision, v.Reason, v.Accept != nil)
		} else if v.Accept != nil {
			if err := v.Accept(t.Context()); err != nil || !slices.Equal(accepted, want.accept) {
				t.Errorf("%s: accepted %q, %v", line, accepted, err)
			}
		}
	}
	allowTool(p)
	tool := shellTool("A=b")
	tool.Program = "shell"
	if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != Allow {
		t.Errorf("a line that starts nothing: %s (%s)", v.Decision, v.Reason)
	}
}

func TestShellBannedNamesSetting(t *testing.T) {
	p := shellPolicy(t)
	p.Banned = []registry.Entry{{Value: "terraform", Setting: "/home/u/settings.yaml:12"}}
	v := p.Decide(t.Context(), shellTool("terraform apply"), registry.Call{})
	if v.Decision != Deny || v.Origin != "/home/u/settings.yaml:12" || !strings.Contains(v.Reason, "shell.banned") {
		t.Errorf("got %+v", v)
	}
	if roots := v.Roots(); !slices.Equal(roots, []string{"terraform"}) {
		t.Errorf("roots %q", roots)
	}
}

// A rule on a path applies to a file that a line writes through a link or after
// changing the folder.
func TestShellWritesElsewhere(t *testing.T) {
	workspace := trust.Real(t.TempDir())
	if err := os.Mkdir(filepath.Join(workspace, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "secret", "dangling": "link/new", "parent": "link/.."} {
		if err := os.Symlink(target, filepath.Join(workspace, link)); err != nil {
			t.Skip(err)
		}
	}
	p := &Policy{Workspace: workspace, Mode: ModeYolo, Rules: []Rule{{Path: "secret/**", Decision: Deny, Origin: "settings.yaml:1"}}}
	for line, want := range map[string]Decision{
		"echo x > secret/a":           Deny,
		"echo x > link/a":             Deny,
		"echo x > link":               Deny,
		"echo x > link/new/a":         Deny,
		"echo x > dangling":           Deny,
		"echo x > parent/secret/a":    Deny,
		"echo x > parent/a":           Allow,
		"cd secret && echo x > a":     Deny,
		"cd link; sort -o a b":        Deny,
		"(cd secret); echo x > a":     Allow,
		"cd secret/.. && echo x > a":  Allow,
		"cd secret && echo x > ../a":  Allow,
		"cd secret && echo x > /tmp/": Allow,
	} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}

// In a shell, ~ and $HOME are the home folder, which a rule on a path may name.
func TestShellWritesInHome(t *testing.T) {
	for line, want := range map[string]Decision{
		"cd; echo x > secret/a":              Deny,
		"cd ~ && cp /etc/hosts secret/a":     Deny,
		"cd ~/secret && echo x > a":          Deny,
		"cd $HOME; sort -o secret/a b":       Deny,
		"cp b ~/secret/a":                    Deny,
		"echo x > ~/secret/a":                Deny,
		"cd ~/other && echo x > secret/a":    Allow,
		"cd ~ && cd /w; echo x > /w/secret/": Allow,
	} {
		p := &Policy{Workspace: "/w", ShellHome: "/home/me", Rules: []Rule{
			{Path: "/home/me/secret/**", Decision: Deny}, {Tool: "run_shell_command", Decision: Allow}}}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}

// What a rule on a path denies is not moved or removed with the folder that has it.
func TestMovedWithTheirFolder(t *testing.T) {
	workspace := trust.Real(t.TempDir())
	for _, dir := range []string{"a/b", "other"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := &Policy{Workspace: workspace, Mode: ModeYolo, Rules: []Rule{
		{Path: "a/b/**", Decision: Deny}, {Path: "other/*.pem", Decision: Deny}, {Path: "none/x", Decision: Deny}}}
	for line, want := range map[string]Decision{
		"mv a x":                   Deny,
		"mv ./A/ x":                Deny,
		"git mv a x":               Deny,
		"cd a && mv ../a ../x":     Deny,
		"rm -rf a":                 Deny,
		"rm -r .":                  Deny,
		"rm -rf other":             Deny,
		"cd nowhere; mv a x":       Deny,
		"cd nowhere && mv a x":     Allow,
		"mv other x":               Deny,
		"git rm -r a":              Deny,
		"git rm a/b/c":             Deny,
		"git rm 'other/*'":         Deny,
		"git rm $x":                Deny,
		"git rm :/a":               Deny,
		"git checkout a":           Deny,
		"git checkout m a/b/c":     Deny,
		"git restore a":            Deny,
		"git clean -fd a":          Deny,
		"cd nowhere; git rm a":     Deny,
		"find a -delete":           Deny,
		"find $x -delete":          Deny,
		"patch a/b/c <d":           Deny,
		"find a/b -name c -delete": Deny,
		"find a -name c -delete":   Allow,
		"find a -name c":           Allow,
		"git checkout .":           Allow,
		"git checkout m":           Allow,
		"git rm other/x":           Allow,
		"git clean -fd":            Allow,
		"mv a/c x":                 Allow,
		"rm a":                     Allow,
		"mv none x":                Allow,
		"mv x a":                   Allow,
		"cp -r x a":                Allow,
		"ln -s a x":                Allow,
		"rm -r abc":                Allow,
		"cd nowhere; cp x a":       Allow,
	} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}

	// A path of a rule counts from the project root and from the workspace, and may be in one of them.
	p = &Policy{Root: workspace, Workspace: filepath.Join(workspace, "a"), Mode: ModeYolo, Rules: []Rule{
		{Command: "ls", Path: "x", Decision: Deny}, {Path: "b/**", Decision: Deny}, {Path: "other/x", Decision: Deny}, {Path: "other", Decision: Deny}}}
	for line, want := range map[string]Decision{"rm -r .": Deny, "rm -r ../other": Deny, "rm -r ../x": Allow} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("in a: %q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}

// A rule that denies a path is found also behind others that say nothing about it.
func TestFallbackThatALaterRuleDenies(t *testing.T) {
	p := &Policy{Workspace: "/w", Mode: ModeYolo, Rules: []Rule{
		{Path: "other/**", Decision: Allow}, {Path: "secret/**", Decision: Deny}}}
	if v := p.Decide(t.Context(), shellTool("cd x; sort -o secret/a b"), registry.Call{}); v.Decision != Deny {
		t.Errorf("%s (%s)", v.Decision, v.Reason)
	}
}

// A rule that allows a path holds only if the line writes there whether a cd in it succeeds or not.
func TestAllowedPathAfterCd(t *testing.T) {
	p := &Policy{Workspace: "/w", Shell: "bash", Rules: []Rule{
		{Command: "cp", Path: "build/**", Decision: Allow}, {Command: "ls", Decision: Allow}, {Command: "cd", Decision: Allow},
		{Command: "popd", Decision: Allow}, {Command: "pushd", Decision: Allow}}}
	for line, want := range map[string]Decision{
		"cp a build/x":                   Allow,
		"cd build && cp a x":             Allow,
		"cd build && ls && cp a x":       Allow,
		"(cd build && ls); cp a build/x": Allow,
		"cd build; cp a x":               Ask,
		"cp a build/x; cd sub; cp a y":   Ask,
		"cd sub; cp a ../build/x":        Ask,
		"cd -; cp a build/x":             Ask,
		"pushd a; popd; cp a build/x":    Ask,
	} {
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}

// A rule that allows a path allows no command that happens to write there.
func TestAllowedPathAllowsNoCommand(t *testing.T) {
	for _, tool := range []string{"", "run_shell_command"} {
		p := &Policy{Workspace: "/w", Shell: "bash", Rules: []Rule{
			{Tool: tool, Path: "docs/**", Decision: Allow}, {Command: "echo", Decision: Allow}}}
		for line, want := range map[string]Decision{
			"echo x > docs/a":              Allow,
			"echo x > docs/a; echo >> b":   Ask,
			"touch docs/a":                 Ask,
			"touch docs/a; curl evil.test": Ask,
			"make > docs/a":                Ask,
			"> docs/a":                     Allow,
		} {
			if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
				t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
			}
		}
	}
}

// A line that may write a file which a rule denies is asked about, although a rule allows the line, and denied if nobody is
// asked. Files that are named are denied.
func TestWritesThatAreNotKnown(t *testing.T) {
	rules := []Rule{{Path: "secrets/**", Decision: Deny}, {Tool: "run_shell_command", Decision: Allow}}
	for line, want := range map[string]Decision{
		`echo x > ~+/secrets/x`: Ask, `echo x > secret?/x`: Ask, `echo x > $d/x`: Ask, `cd $d && echo x > x`: Ask, `cd $d; cp a x`: Ask,
		`cp -t $d a`: Ask, `mv a ~+/secrets`: Ask, `tee $d/x`: Ask, `touch secret[s]/x`: Ask, `mkdir $d`: Ask, `sort -o $d/x a`: Ask,
		`truncate -s0 $d`: Ask, `install a $d/x`: Ask, `install -t $d a`: Ask, `install --target-directory=$d a`: Ask, `sed -i s/a/b/ $f`: Ask, `dd of=$d`: Ask, `dd if=a "$d"`: Ask, `rm $d/x`: Ask,
		`echo a | xargs truncate -s0`: Ask, `find . -exec truncate -s0 {} \;`: Ask, `perl -i -pe s/a/b/ $f`: Ask,
		`echo x > $PWD/secrets/x`: Deny, `cp a "$PWD"/secrets/x`: Deny, `echo x > $PWD/x`: Allow, `cd $d; echo x >$PWD/x`: Ask, `PWD=$d; echo x > $PWD/x`: Ask,
		`truncate -s0 secrets/x`: Deny, `install a secrets/x`: Deny, `install -t secrets a`: Deny, `sed -i s/a/b/ secrets/x`: Deny, `sed -i -e s/a/b/ secrets/x`: Deny,
		`sed --in-place s/a/b/ secrets/x`: Deny, `dd if=a of=secrets/x`: Deny, `rm -r secrets/`: Deny, `shred secrets/x`: Deny, `gshred secrets/x`: Deny, `gcd /tmp; touch secrets/x`: Deny, `cd secrets && truncate -s0 x`: Deny, `perl -i -pe s/a/b/ secrets/x`: Deny,
		`cd x; echo x > secrets/x`: Ask, `cd x || :; cp a secrets/x`: Ask, `cd secrets; cd ..; echo x > x`: Ask,
		`cd - && echo x > x`: Ask, `pushd x; popd; echo x > x`: Ask, `cd ~u && echo x > x`: Ask, `cd s* && echo x > x`: Ask,
		`cd x && echo x > secrets/x`: Allow, `cd x; echo x > b`: Allow, `(cd x); echo x > b`: Allow,
		`echo $d`: Allow, `cat $d/x`: Allow, `ls *`: Allow, `echo x > b`: Allow, `cp a b`: Allow, `cd $d && echo x > /w/b`: Allow, `sed s/a/b/ $f`: Allow, `perl -e 1 $f`: Allow, `truncate -s0 b`: Allow,
		`echo x > /dev/null`: Allow, `dd if="$d"`: Allow, `tee`: Allow, `sed -i s/secrets/b/ a`: Allow,
	} {
		p := Policy{Shell: "bash", Workspace: "/w", Rules: rules}
		decide := func() Decision { return p.Decide(t.Context(), shellTool(line), registry.Call{}).Decision }
		if got := decide(); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		p.Mode = ModeYolo
		if got := decide(); (got == Deny) != (want != Allow) {
			t.Errorf("%s: %s in yolo mode", line, got)
		}
		for name, other := range map[string]Rule{
			"asks": {Path: "secrets/**", Decision: Ask}, "of another tool": {Tool: "read_file", Path: "secrets/**", Decision: Deny},
			"of other calls": {Path: "secrets/**", When: when(t, "false"), Decision: Deny}, "of another command": {Path: "secrets/**", Command: "curl", Decision: Deny},
		} {
			p := Policy{Shell: "bash", Workspace: "/w", Rules: []Rule{other, rules[1]}}
			if got := p.Decide(t.Context(), shellTool(line), registry.Call{}).Decision; want == Ask && got != Allow {
				t.Errorf("%s with a rule that %s: %s", line, name, got)
			}
		}
	}
}
