// Package initcmd implements the command init, which writes a first settings
// file.
package initcmd

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/ui"
)

//go:embed starter
var starters embed.FS

type options struct {
	user   bool
	format string
}

// New returns the command init.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented settings file as a starting point",
		Long: `Write a settings file of commented examples: .toolreg/settings.yaml in the project,
or your own with --user. An existing file is never overwritten. Where the system can
confine programs, one rule is in effect: shell commands run in the sandbox, without
questions.

The file settings.schema.json next to it lets editors complete and check the
settings.

Existing files of other programs with MCP servers are listed, with
the setting and the flag that import them. Nothing in them runs.

Exit codes: 0, 1, 2 (settings already exist), 5 (inside a tool's run).`,
		Example: `  toolreg init
  toolreg init --user --format json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), e, o) },
	}
	cmd.Flags().BoolVar(&o.user, "user", false, "write your own settings, for all projects")
	cmd.Flags().StringVar(&o.format, "format", "yaml", "`format` of the file: yaml or json")
	complete.Flag(cmd, "format", complete.Words("yaml", "json"))
	return cmd
}

// initDocument is the JSON of init.
type initDocument struct {
	Created string                 `json:"created"` // the settings file
	Schema  string                 `json:"schema"`  // settings.schema.json next to it
	Found   []settings.FoundImport `json:"found"`   // files of other programs with MCP servers
}

func run(ctx context.Context, e *cli.Env, o *options) error {
	if err := e.Config.RefuseInside("changing settings"); err != nil {
		return err
	}
	if o.format != "yaml" && o.format != "json" {
		return &cli.UsageError{Err: fmt.Errorf("unknown --format %q", o.format), Hint: "yaml or json"}
	}
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	place := place{root: s.ProjectRoot, dir: filepath.Join(s.ProjectRoot, ".toolreg"), mode: 0o666, folder: 0o777}
	if o.user {
		place.root, place.dir, place.mode, place.folder = "", settings.UserFolder(e.Config.Environ), 0o600, 0o700
	}
	found := slices.DeleteFunc(settings.FindImports(agents.Importer{}, s.ProjectRoot, e.Config.Environ), func(f settings.FoundImport) bool { return len(f.Entries) == 0 })
	d := initDocument{Found: cli.OrEmpty(found)}
	confined := canConfine(e, s)
	summary := "commented examples; they change no setting and run nothing"
	if confined {
		summary = "commented examples, and a rule that runs shell commands in the sandbox without asking"
	}
	if d.Created, err = createStarter(ctx, e, place, o.format, starter(o.format, programsOf(d.Found), confined), summary); err != nil {
		return err
	}
	d.Schema = filepath.Join(place.dir, schemaName)
	if e.IO.JSON {
		return e.IO.PrintJSON(d)
	}
	note, how := e.Config.GeminiSettings(s)
	return print(e.IO, d, note, how)
}

// canConfine reports whether shell commands in the workspace can be confined in full.
func canConfine(e *cli.Env, s *settings.Settings) bool {
	c := confine.New(confine.Options{Settings: s, Environ: e.Config.Environ, Env: func() []string { return nil }, Warn: e.IO.Warn})
	defer c.Close()
	m := c.Means(confine.Shell)
	return !m.Off && m.Missing() == ""
}

// place is where the settings are written.
type place struct {
	root, dir    string // nothing is written outside root; "" = no restriction
	mode, folder fs.FileMode
}

// createStarter writes the file unless the folder already has settings.
func createStarter(ctx context.Context, e *cli.Env, p place, format string, text []byte, summary string) (string, error) {
	if p.dir == "" {
		return "", errors.New("there is no folder for your settings: HOME is not set")
	}
	there, err := settings.FileIn(p.dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(p.dir); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder; move it away first", p.dir)
	}
	path := filepath.Join(p.dir, "settings."+format)
	if there == "" {
		_, err = settingsfile.Write(ctx, e, settingsfile.Change{
			File: path, New: text,
			Summary: fmt.Sprintf("%d lines of %s", bytes.Count(text, []byte("\n")), summary),
			Write: func() error {
				if err := edit.Create(p.root, path, text, p.mode, p.folder); err != nil {
					return err
				}
				return writeSchema(p)
			},
		})
		if !errors.Is(err, fs.ErrExist) {
			return path, err
		}
		there = path
	}
	return "", &cli.UsageError{Err: fmt.Errorf("%s already exists", there), Hint: "edit it, or move it away first"}
}

// schemaName is the file that the starter files refer to as $schema.
const schemaName = "settings.schema.json"

// writeSchema writes the schema of this version next to the settings.
func writeSchema(p place) error {
	path, text := filepath.Join(p.dir, schemaName), append(table.Schema(), '\n')
	err := edit.Create(p.root, path, text, p.mode, p.folder)
	if errors.Is(err, fs.ErrExist) {
		return edit.File(p.root, path, func([]byte) ([]byte, error) { return text, nil })
	}
	return err
}

// starter returns the first settings file; programs have servers to import. If
// confined is set, the rule for shell commands is in effect.
func starter(format string, programs []string, confined bool) []byte {
	text, err := starters.ReadFile("starter/settings." + format)
	if err != nil { // cannot happen: the files are embedded
		return nil
	}
	if len(programs) == 0 {
		programs = []string{"claude", "vscode"}
	}
	if format == "json" {
		programs = slices.Clone(programs)
		for i, p := range programs {
			programs[i] = strconv.Quote(p)
		}
	}
	out := strings.Replace(string(text), "IMPORTS", strings.Join(programs, ", "), 1)
	if confined {
		out = withSandboxRule(out)
	}
	return []byte(out)
}

// sandboxRule are the lines of the starter files, without their comment signs, that
// make up the rule for shell commands in the sandbox.
var sandboxRule = []string{
	"policy:", "  rules:", "    - {tool: run_shell_command, decision: sandbox}",
	`"policy": {`, `  "rules": [`, `    {"tool": "run_shell_command", "decision": "sandbox"},`, "  ],", "},",
}

// withSandboxRule removes the comment signs in front of the rule, which is in the
// last part of the file.
func withSandboxRule(text string) string {
	begin := strings.LastIndex(text, "# Which calls are allowed")
	lines := strings.Split(text[begin:], "\n")
	for i, line := range lines {
		for _, comment := range []string{"# ", "// "} {
			if indent, rest, ok := strings.Cut(line, comment); ok && strings.TrimSpace(indent) == "" && slices.Contains(sandboxRule, rest) {
				lines[i] = indent + rest
			}
		}
	}
	return text[:begin] + strings.Join(lines, "\n")
}

// programsOf returns the programs that have servers to import.
func programsOf(found []settings.FoundImport) []string {
	var out []string
	for _, f := range found {
		if f.Servers > 0 && !slices.Contains(out, f.Program) {
			out = append(out, f.Program)
		}
	}
	return out
}

func print(ios *cli.IO, d initDocument, note, how string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "created %s\n", ui.Line(d.Created))
	for _, f := range d.Found {
		fmt.Fprintf(&b, "found %s: %s, %s", f.Program, ui.Line(f.File), cli.Counted(f.Servers, "MCP server"))
		if f.Left > 0 {
			fmt.Fprintf(&b, ", and %d that cannot be imported", f.Left)
		}
		b.WriteString("\n")
	}
	if programs := programsOf(d.Found); len(programs) > 0 {
		fmt.Fprintf(&b, "to add them, uncomment \"imports: [%s]\" in the settings, or pass --import %s\n", strings.Join(programs, ", "), strings.Join(programs, ","))
	}
	if note != "" {
		fmt.Fprintf(&b, "%s: %s\n", ui.Line(note), ui.Line(how))
	}
	_, err := io.WriteString(ios.Out, b.String())
	return err
}
