//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// hintStates are the folders in which commands of TestHintsCanBePasted run.
const hintStates = `
-- servers/home/.config/toolreg/settings.yaml --
mcpServers:
  good: {command: mcp-testserver}
  gone: {command: /nonexistent/server}
  ends: {command: "false"}
  two words: {command: absent-program}
  off: {command: mcp-testserver, disabled: true}
-- project/work/.toolreg/settings.yaml --
mcpServers:
  srv: {command: mcp-testserver}
-- claude/home/.claude.json --
{"mcpServers": {"notes": {"command": "mcp-testserver"}}}
-- wrong/home/.config/toolreg/settings.yaml --
toolDiscoveryTimout: 3s
toolDiscoveryCommand: [absent-program]
excludeTools: [glob]
policy: {rules: [{tool: write_file, decision: deny, reason: none}]}
-- empty/work/README.md --
# Hello
`

// The commands in hints and messages are accepted where they were printed: in the same
// folder, with the same environment.
func TestHintsCanBePasted(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	t.Cleanup(func() {
		if n := tried.Load(); n < 50 {
			t.Errorf("only %d commands were found in messages", n)
		}
	})
	for _, c := range []struct {
		state, command string
	}{
		{"servers", "doctor"}, {"servers", "discover"}, {"servers", "servers"}, {"servers", "servers test gone"}, {"servers", "servers test ends"},
		{"servers", "list --strict"}, {"servers", "why gone__x"}, {"servers", "call gone__x"}, {"servers", "servers get 'two words'"},
		{"servers", "servers remove nothing"}, {"servers", "call off__echo"}, {"servers", "--cached list"}, {"servers", "schema --format nope"},
		{"project", "doctor"}, {"project", "discover"}, {"project", "list"}, {"project", "call srv__echo"}, {"project", "why srv__echo"},
		{"project", "servers"}, {"project", "lock --check"}, {"project", "init"}, {"project", "serve </dev/null"},
		{"claude", "doctor"}, {"claude", "servers"}, {"claude", "servers import"}, {"claude", "init entry"}, {"claude", "list"}, {"claude", "--import claude list"},
		{"wrong", "doctor"}, {"wrong", "discover"}, {"wrong", "call glob pattern=x"}, {"wrong", "why glob"}, {"wrong", "call write_file file_path=a content=b"},
		{"empty", "lst"}, {"empty", "servers ad"}, {"empty", "list --chek"}, {"empty", "call read_fil"}, {"empty", "call read_file README.md"},
		{"empty", "call read_file --params @README.md"}, {"empty", "call read_file nothing=1"}, {"empty", "call read_file"},
		{"empty", "call write_file file_path=a content=b"}, {"empty", "call run_shell_command command=true"}, {"empty", "why Bash"}, {"empty", "why nothing"},
		{"empty", "lock --check"}, {"empty", "plugins"}, {"empty", "plugins new"}, {"empty", "plugins new tools"}, {"empty", "servers"}, {"empty", "servers add"},
		{"empty", "servers add-json '{\"command\":\"x\"}'"}, {"empty", "servers edit x"}, {"empty", "servers login x"}, {"empty", "settings get nope"},
		{"empty", "settings set nope 1"}, {"empty", "trust status"}, {"empty", "trust grant"}, {"empty", "approvals answer x"}, {"empty", "audit --last x"},
		{"empty", "run nothing.star"}, {"empty", "schema --baseline x"}, {"empty", "init"}, {"empty", "init ci"}, {"empty", "init team"},
		{"empty", "serve --print-config nope"}, {"empty", "serve --print-config claude"}, {"empty", "completion"}, {"empty", "cache clear x"}, {"empty", "tasks x"},
		{"empty", "search xyzzy"}, {"empty", "list xyzzy"}, {"empty", "policy import nope"},
	} {
		t.Run(c.state+"/"+c.command, func(t *testing.T) {
			t.Parallel()
			_, out := newHintState(t, c.state).run(t, "toolreg "+c.command)
			before, next, _ := strings.Cut(out, "\nnext:\n")
			steps := [][]string{strings.Split(strings.TrimSpace(next), "\n")}
			if next == "" {
				steps = nil
			}
			for _, hint := range pasted(before) {
				steps = append(steps, []string{hint})
			}
			tried.Add(int32(len(steps)))
			for _, lines := range steps {
				s := newHintState(t, c.state)
				s.run(t, "toolreg "+c.command)
				for _, line := range lines {
					if code, shown := s.run(t, line); code == 2 || code > 100 {
						t.Errorf("%q was printed and ends with exit code %d:\n%s\nit was printed in:\n%s", line, code, shown, out)
					}
				}
			}
		})
	}
}

// hintState is a new copy of a state.
type hintState struct {
	dir     string
	environ []string
}

func newHintState(t *testing.T, name string) *hintState {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"home", "work/.git"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range txtar.Parse([]byte(hintStates)).Files {
		file, ok := strings.CutPrefix(f.Name, name+"/")
		if !ok {
			continue
		}
		file = filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, f.Data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return &hintState{filepath.Join(root, "work"), []string{"HOME=" + filepath.Join(root, "home"), "PATH=" + os.Getenv("PATH"), "TERM=dumb"}}
}

// run runs a command line as a person would paste it, without a terminal.
func (s *hintState) run(t *testing.T, line string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = s.dir, append(s.environ, "PWD="+s.dir)
	shown, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(shown)
}

// Commands in messages begin with "toolreg" and a command, and end where the sentence goes
// on. What has a word such as NAME is a form to fill in.
// Compiled when first used, as what a test of the start counts.
var (
	inMessage = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?m)(?:^|[ \\t\"`:(])(toolreg (?:-|[a-z])[^\\n\\t\"`]*)")
	})
	goesOn = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[;,:]( |$)|\.( |$)|\)( |$)| \(|  | (allows|adds|answers|checks|clears|compares|creates|disables|enables|explains|gives|grants|has|ignores|imports|is|keeps|lists|logs|prints|records|removes|renames|requires|takes|reads|restarts|runs|says|sets|shows|starts|stops|switches|tries|trusts|updates|works|writes|and|or|if|for|with|without|to|in|does|would|once|first|after|before|which|instead|then|again|as|here|there|from)( |$)`)
	})
	nearName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`did you mean .*|toolreg.* (requires|takes no) .*`) })
	toBeFilled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z][A-Z_]+\b|…`) })
)

// pasted returns the commands in messages that can be run as they are. Those that are near
// to a mistake may need more words.
func pasted(out string) []string {
	var found []string
	for _, m := range inMessage().FindAllStringSubmatch(nearName().ReplaceAllString(out, ""), -1) {
		line := m[1]
		if at := goesOn().FindStringIndex(line); at != nil {
			line = line[:at[0]]
		}
		if word := strings.Fields(line); len(word) > 1 && !toBeFilled().MatchString(line) && !slices.Contains(found, line) && isCommand(word[1]) {
			found = append(found, line)
		}
	}
	return found
}

// isCommand reports whether a word after "toolreg" begins a command, and no sentence.
func isCommand(word string) bool {
	return strings.HasPrefix(word, "-") || slices.Contains([]string{"approvals", "audit", "cache", "call", "completion", "discover", "doctor", "help", "init", "list", "lock",
		"plugins", "policy", "rpc", "run", "schema", "search", "serve", "servers", "settings", "stats", "tasks", "trust", "version", "why"}, word)
}
