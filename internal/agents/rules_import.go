package agents

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/policy/shell"
)

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
// precedence. It returns nil for an unknown program.
func RulePlaces(program, root string, environ []string) []RulePlace {
	env := expand.NewEnviron(environ)
	home := env.Home()
	folder := func(variable, name string) string {
		if dir := env.Get(variable); filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(home, name)
	}
	switch program {
	case "claude":
		return []RulePlace{{Path: system("/Library/Application Support/ClaudeCode", "/etc/claude-code") +
			"/managed-settings.json"},
			{Path: filepath.Join(root, ".claude", "settings.local.json")},
			{Path: filepath.Join(root, ".claude", "settings.json")},
			{Path: filepath.Join(folder("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")}}
	case "gemini":
		return []RulePlace{{Path: system("/Library/Application Support/GeminiCli", "/etc/gemini-cli") + "/policies",
			Suffix: ".toml", Tier: 3},
			{Path: filepath.Join(folder("GEMINI_CLI_HOME", ""), ".gemini", "policies"), Suffix: ".toml", Tier: 2},
			{Path: filepath.Join(root, ".gemini", "policies"), Suffix: ".toml", Tier: 1}}
	case "codex":
		return []RulePlace{{Path: filepath.Join(root, ".codex", "rules"), Suffix: ".rules"},
			{Path: filepath.Join(folder("CODEX_HOME", ".codex"), "rules"), Suffix: ".rules"}}
	}
	return nil
}

func system(mac, other string) string {
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
			r.Client, r.Group, r.Prompt, r.Resource, r.When, r.Reason}, r.Match, r.NotMatch),
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

// matchesNothing says why a rule on a command matches no call, or returns "". Policy
// looks through programs that run others, and decides on what they run.
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
