package shell_test

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// shellTool is a tool like the built-in shell tool.
func shellTool(command string) *registry.Tool {
	return &registry.Tool{
		Definition: registry.Definition{Name: "run_shell_command", Source: registry.SourceBuiltin, Category: registry.CategoryCommand},
		Behavior:   registry.Behavior{Subject: func(registry.Call) (registry.Subject, error) { return registry.Subject{Command: command}, nil }},
	}
}

func entries(t testing.TB, decision policy.Decision, values ...string) []policy.Rule {
	t.Helper()
	var out []policy.Rule
	for _, v := range values {
		r, err := policy.EntryRule(registry.Entry{Value: v, Setting: "settings.yaml:1"}, decision)
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

// shellPolicy is the policy for the lines of testdata/shell.txt.
func shellPolicy(t testing.TB) *policy.Policy {
	rules := entries(t, policy.Deny, "run_shell_command(git push)", "ShellTool(curl)")
	rules = append(rules, entries(t, policy.Allow, "run_shell_command(git status)", "run_shell_command(git log)", "ShellTool(ls)", "run_shell_command(echo)",
		"run_shell_command(cat)", "run_shell_command(npm run test)", "run_shell_command(true)")...)
	return &policy.Policy{
		Rules: rules, Banned: banned(),
		Canonical: func(name string) string {
			if name == "ShellTool" || name == "run_shell_command" {
				return "run_shell_command"
			}
			return ""
		},
		Approvals: &policy.Approvals{Dir: &state.Dir{Path: filepath.Join(t.TempDir(), "state")}},
	}
}

func TestShellLines(t *testing.T) {
	f, err := os.Open("testdata/shell.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := shellPolicy(t)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.SplitN(text, " ", 3)
		want, always, line := fields[0], fields[1], fields[2]
		if unquoted, err := strconv.Unquote(line); err == nil {
			line = unquoted
		}
		v := p.Decide(t.Context(), shellTool(line), registry.Call{})
		got := "-"
		if s, ok := v.Scope(policy.ScopeCommand); ok {
			got = strings.ReplaceAll(strings.Join(s.Values, ","), " ", "_")
		}
		if v.Decision.String() != want || got != always {
			t.Errorf("shell.txt:%d: %q: %s, always %s; want %s, always %s (%s)", n, line, v.Decision, got, want, always, v.Reason)
		}
		if v.Reason == "" || v.Origin == "" {
			t.Errorf("shell.txt:%d: %q: no reason or origin: %+v", n, line, v)
		}
	}
}

// TestOptions checks the decision of a rule that allows a whole program, for each
// line of testdata/options.txt.
func TestOptions(t *testing.T) {
	for _, row := range developerLines(t, "testdata/options.txt") {
		want, line, _ := strings.Cut(row, " ")
		program, _, _ := strings.Cut(line, " ")
		p := &policy.Policy{Rules: entries(t, policy.Allow, "run_shell_command("+program+")"), Banned: banned()}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision.String() != want {
			t.Errorf("%s: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}

// A rule that denies applies even to the last of very many commands.
func TestShellManyCommands(t *testing.T) {
	line := strings.Repeat("ls; ", 5000) + "rm x"
	if v := shellPolicy(t).Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Deny {
		t.Errorf("a banned program after 5000 commands: %s", v.Decision)
	}
}

// A line is denied if a wrapper could run too many of its words.
func TestManyWordsInWrappers(t *testing.T) {
	for _, line := range []string{"nice -Z " + strings.Repeat("a ", 60000), "nice -Z {1..9000}", "xargs -Z {1..9000}", "exec " + strings.Repeat("{1..90} ", 100), "exec " + strings.Repeat("a ", 3000)} {
		p := &policy.Policy{Mode: policy.ModeYolo}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != policy.Deny || !strings.Contains(v.Reason, "too many") {
			t.Errorf("%.30s: %s (%s)", line, v.Decision, v.Reason)
		}
	}
}

// A rule that allows a glob does not cover the same glob in a line, because its
// expansion is not known before the line runs.
func TestRuleDoesNotCoverGlobInLine(t *testing.T) {
	for line, want := range map[string]policy.Decision{
		"npm run test-all": policy.Allow,
		"npm run te*":      policy.Ask,
		"npm run te?t":     policy.Ask,
		"npm run te[sx]t":  policy.Ask,
		"npm run 'te*'":    policy.Allow, // quoted, it is not a glob
	} {
		p := shellPolicy(t)
		p.Rules = entries(t, policy.Allow, "run_shell_command(npm run te*)")
		if got := p.Decide(t.Context(), shellTool(line), registry.Call{}); got.Decision != want {
			t.Errorf("%s: %s, want %s", line, got.Decision, want)
		}
	}
}

func FuzzShell(f *testing.F) {
	for _, seed := range []string{"ls", "ls; id", "$(id)", "cat <<EOF\n$(id)\nEOF", "sh -c 'ls", "{ls,-l}", "`{a,\"b\\`c\"} {1..3}`", "export {a,'b=c'}=$x{1,2}", "$'\\x6cs'", "ls\r", "env -S ls", "find . -exec ls {} ;", "((((", "a[$(id)]=1", "A&00\x88"} {
		f.Add(seed)
	}
	p := shellPolicy(f)
	f.Fuzz(func(t *testing.T, line string) {
		v := p.Decide(context.WithoutCancel(t.Context()), shellTool(line), registry.Call{})
		if strings.HasPrefix(v.Reason, "the policy check failed") {
			t.Fatalf("%q: %s", line, v.Reason)
		}
		commands := shell.Read(shell.Bash, line, "").Commands
		unread := slices.ContainsFunc(commands, func(c shell.Command) bool { return c.Unread })
		if unread && v.Decision == policy.Allow {
			t.Fatalf("%q cannot be read but is allowed", line)
		}
		if v.Decision == policy.Allow && slices.ContainsFunc(commands, func(c shell.Command) bool { return c.Doubt != "" }) {
			t.Fatalf("%q is allowed despite a doubt", line)
		}
	})
}

func BenchmarkShell(b *testing.B) {
	p := shellPolicy(b)
	t := shellTool("git status --short && ls -la | cat && echo \"$(git log)\"")
	for b.Loop() {
		if v := p.Decide(b.Context(), t, registry.Call{}); v.Decision != policy.Allow {
			b.Fatal(v.Reason)
		}
	}
}
