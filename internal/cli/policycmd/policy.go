// Package policycmd implements the command policy, which converts the permissions of
// other agents.
package policycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// New returns the command policy.
func New(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Annotations: map[string]string{cli.Topic: "rules"},
		Use:         "policy",
		Short:       "Convert permissions from and to other agents",
		Long: `Convert permissions of Claude Code, the Gemini CLI and Codex to policy rules, and
policy rules to permissions of these programs.

Exit codes: 0, 2.`,
		Example: "  toolreg policy import claude > rules.yaml\n  toolreg policy export gemini > ~/.gemini/policies/toolreg.toml",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImport(e), newExport(e))
	return cmd
}

func newImport(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "import claude|gemini|codex [FILE|-]",
		Short: "Print the permissions of another agent as policy rules",
		Long: `Print the permissions of another agent as policy rules in YAML, each under a
comment that says where it came from. What rules cannot express is listed on stderr.

Without FILE, the program's own files are read: those of the system, the project
and the user. - is stdin.

  claude   the lists permissions.allow, ask and deny of settings.json
  gemini   the rules of policies/*.toml
  codex    the prefix rules of rules/*.rules

The rules never allow more than the program does: what has no exact counterpart
becomes narrower if it allows, broader if it asks or denies, or is omitted. Read
them before you add them to your settings.

Exit codes: 0, 2 (a file cannot be read).`,
		Example: `  toolreg policy import claude
  toolreg policy import gemini ~/.gemini/policies/team.toml
  toolreg policy import codex - < default.rules`,
		Args:              cli.ArgsBetween(1, 2, "a program and at most one file"),
		ValidArgsFunction: complete.Args(complete.Words(agents.RulePrograms()...), complete.Files),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runImport(cmd.Context(), e, argv[0], argv[1:])
		},
	}
}

func newExport(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "export claude|gemini|codex",
		Short: "Print the policy rules as permissions of another agent",
		Long: `Print excludeTools, policy.rules and allowedTools of the settings as the permissions
of another agent. Rules that it cannot express are listed on stderr: rules that allow
are omitted, others become broader if possible.

Exit codes: 0, 2.`,
		Example: `  toolreg policy export claude
  toolreg policy export codex > ~/.codex/rules/toolreg.rules`,
		Args:              cli.ArgsBetween(1, 1, "a program"),
		ValidArgsFunction: complete.Arg(complete.Words(agents.RulePrograms()...)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runExport(cmd.Context(), e, argv[0])
		},
	}
}

func runExport(ctx context.Context, e *cli.Env, program string) error {
	if err := checkProgram(program); err != nil {
		return err
	}
	set, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	rules, err := rulesOf(set)
	if err != nil {
		return err
	}
	text, notes := agents.ExportRules(ctx, program, rules)
	return result(e.IO, text, exported{text, cli.OrEmpty(notes)}, notes)
}

// exported is the JSON of policy export, imported that of policy import.
type exported struct {
	Text  string   `json:"text"`
	Notes []string `json:"notes"`
}

type imported struct {
	Rules []agents.Rule `json:"rules"`
	Notes []string      `json:"notes"`
}

// result prints a text, and notes about what it does not express on stderr, or doc as
// JSON.
func result(ios *cli.IO, text string, doc any, notes []string) error {
	for _, line := range notes {
		ios.Notef("%s", line)
	}
	return ios.PrintText(doc, text)
}

// rulesOf returns the rules of the settings in order of precedence. They name built-in tools by their own
// names.
func rulesOf(set *settings.Settings) ([]agents.Rule, error) {
	var out []agents.Rule
	entries := func(list settings.List, decision string) error {
		for _, entry := range list.Entries {
			parsed, err := policy.ParseEntry(entry.Value)
			if err != nil {
				return document.NewError([]document.Problem{entry.Origin.Problem(err.Error(), "")})
			}
			out = append(out, agents.Rule{Tool: parsed.Tool, Command: parsed.Command,
				Decision: decision, From: entry.Origin.String()})
		}
		return nil
	}
	err := entries(set.ExcludeTools, "deny")
	for _, r := range set.Rules {
		out = append(out, agents.Rule{Tool: r.Tool, Source: r.Source, Server: r.Server,
			Category: r.Category, Annotations: r.Annotations, Command: r.Command,
			Path: r.Path, Client: r.Client, Group: r.Group, Profile: r.Profile, Prompt: r.Prompt,
			Resource: r.Resource, When: r.When, Decision: r.Decision, Reason: r.Reason,
			From: r.Origin.String()})
	}
	err = errors.Join(err, entries(set.AllowedTools, "allow"))
	canonical := builtin.Canonical()
	for i := range out {
		name := canonical(out[i].Tool)
		if out[i].Decision == "deny" || out[i].Decision == "ask" { // these ignore case
			name = builtin.Named(out[i].Tool)
		}
		out[i].Tool = cmp.Or(name, out[i].Tool)
	}
	return out, err
}

func checkProgram(program string) error {
	if slices.Contains(agents.RulePrograms(), program) {
		return nil
	}
	return cli.Usage(fmt.Sprintf("unknown program %q", program),
		"one of "+strings.Join(agents.RulePrograms(), ", "))
}

func runImport(ctx context.Context, e *cli.Env, program string, names []string) error {
	if err := checkProgram(program); err != nil {
		return err
	}
	files, err := readRuleFiles(e, program, names)
	if err != nil {
		return err
	}
	found, err := agents.ImportRules(ctx, program, files, expand.NewEnviron(e.Config.Environ).Home())
	if err != nil {
		return err
	}
	if len(files) == 0 {
		found.Notes = []string{program + " has no permissions here: none of its files exist"}
	}
	return result(e.IO, agents.RulesYAML(found.Rules),
		imported{cli.OrEmpty(found.Rules), cli.OrEmpty(found.Notes)}, found.Notes)
}

// readRuleFiles reads the named file or stdin, or without a name all files of the program.
func readRuleFiles(e *cli.Env, program string, names []string) ([]agents.RuleFile, error) {
	if len(names) == 1 && names[0] == "-" {
		data, err := io.ReadAll(io.LimitReader(e.IO.In, document.MaxFile+1))
		return []agents.RuleFile{{Path: "stdin", Data: data}}, err
	}
	root, err := e.Config.ProjectRoot() // also determines the working directory
	if err != nil {
		return nil, err
	}
	if len(names) == 1 {
		f, err := readFile(e.Config.Absolute(names[0]))
		return []agents.RuleFile{f}, err
	}
	var files []agents.RuleFile
	for _, place := range agents.RulePlaces(program, root, e.Config.Environ) {
		for _, path := range pathsOf(place) {
			f, err := readFile(path)
			if err != nil {
				return nil, err
			}
			f.Tier = place.Tier
			files = append(files, f)
		}
	}
	return files, nil
}

// pathsOf returns the existing files of a place.
func pathsOf(p agents.RulePlace) []string {
	if p.Suffix != "" {
		entries, _ := os.ReadDir(p.Path) // an unreadable folder is treated as empty
		var out []string
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), p.Suffix) {
				out = append(out, filepath.Join(p.Path, entry.Name()))
			}
		}
		return out
	}
	if _, err := os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{p.Path}
}

func readFile(path string) (agents.RuleFile, error) {
	f, err := trust.Read(path, document.MaxFile)
	if err != nil {
		return agents.RuleFile{}, document.NewError([]document.Problem{document.Unreadable(path, err)})
	}
	return agents.RuleFile{Path: path, Data: f.Data}, nil
}
