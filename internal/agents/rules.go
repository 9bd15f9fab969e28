package agents

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/text"
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
// precedence, without those in unknown folders. It returns nil for an unknown program.
func RulePlaces(program, root string, environ []string) []RulePlace {
	env := expand.NewEnviron(environ)
	w := folders{root: root, home: env.Home(), env: env}
	var out []RulePlace
	switch program {
	case "claude":
		out = []RulePlace{{Path: systemPath("/Library/Application Support/ClaudeCode", "/etc/claude-code") +
			"/managed-settings.json"},
			{Path: w.project(nil, ".claude", "settings.local.json").Path},
			{Path: w.project(nil, ".claude", "settings.json").Path},
			{Path: w.user(nil, w.named("CLAUDE_CONFIG_DIR", ".claude"), "settings.json").Path}}
	case "gemini":
		out = []RulePlace{{Path: systemPath("/Library/Application Support/GeminiCli", "/etc/gemini-cli") + "/policies",
			Suffix: ".toml", Tier: 3},
			{Path: w.user(nil, w.named("GEMINI_CLI_HOME"), ".gemini", "policies").Path, Suffix: ".toml", Tier: 2},
			{Path: w.project(nil, ".gemini", "policies").Path, Suffix: ".toml", Tier: 1}}
	case "codex":
		out = []RulePlace{{Path: w.project(nil, ".codex", "rules").Path, Suffix: ".rules"},
			{Path: w.user(nil, w.named("CODEX_HOME", ".codex"), "rules").Path, Suffix: ".rules"}}
	}
	return slices.DeleteFunc(out, func(p RulePlace) bool { return p.Path == "" })
}

func systemPath(mac, other string) string {
	if runtime.GOOS == "darwin" {
		return mac
	}
	return other
}

// ImportRules reads the permissions of a program.
func ImportRules(ctx context.Context, program string, files []RuleFile, home string) (ImportedRules, error) {
	var got ImportedRules
	var err error
	files = slices.Clone(files)
	for i := range files {
		files[i].Data = text.WithoutMark(files[i].Data)
	}
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
			r.When, r.Reason}, r.Match, r.NotMatch),
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

// matchesNothing says why a rule on a command matches no call; "" if it may match. Policy looks
// through programs that run others, and decides on what they run.
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
