// Package initcmd implements the command init, which sets up one use of toolreg.
package initcmd

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/serverscmd"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// starters holds the first settings of each way that has some.
//
//go:embed starter
var starters embed.FS

// way is a use case that init sets up.
type way struct {
	name, does string
	file       string   // the name of its settings file; "" if it needs none
	user       bool     // the file is in the user's folder, not the project's
	copies     bool     // copy the servers of other programs' files in the same scope
	next       []string // the commands to continue with; PROGRAM stands for a program that was found
}

func ways() []way {
	return []way{
		{name: "look", does: "see which tools my agent gets, and what they cost",
			next: []string{"toolreg --import PROGRAM list --cost"}},
		{name: "entry", does: "give my agent all tools through one entry", file: "settings.yaml",
			user: true, copies: true, next: []string{"toolreg serve --print-config PROGRAM"}},
		{name: "loop", does: "write an agent loop", file: "settings.yaml",
			next: []string{"toolreg schema --format anthropic --request >tools.json",
				"toolreg call --format anthropic <response.json"}},
		{name: "ci", does: "use tools in CI", file: "ci.yaml",
			next: []string{"toolreg lock", "TOOLREG_SETTINGS=.toolreg/ci.yaml toolreg lock --check"}},
		{name: "team", does: "share the tools of a project with a team", file: "settings.yaml", copies: true,
			next: []string{"toolreg lock"}},
	}
}

func names() []string {
	var out []string
	for _, w := range ways() {
		out = append(out, w.name)
	}
	return out
}

// New returns the command init.
func New(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "init [look | entry | loop | ci | team]",
		Short: "Set up toolreg for what you want to do",
		Long: `Set up toolreg for what you want to do, and print the next commands:

  look    see which tools your agent gets: nothing is written
  entry   give your agent all tools through one entry: your own settings, with the
          MCP servers in your files of other programs
  loop    write an agent loop: .toolreg/settings.yaml in the project
  ci      use tools in CI: .toolreg/ci.yaml in the project
  team    share tools with a team: .toolreg/settings.yaml, with the MCP servers in
          the project's files of other programs

Without an argument, init asks which. --import PROGRAM copies only from that program.
Files of other programs are read; nothing in them runs. An existing file is never
overwritten. Where the system can confine programs, the settings of loop and team run
shell commands in the sandbox, without questions.

toolreg settings schema prints a JSON Schema that editors can use to complete and
check settings.

Exit codes: 0, 1, 2 (the settings already exist, or nobody can be asked which use), 5
(you said no, or inside a tool's run).`,
		Example: `  toolreg init
  toolreg init entry`,
		Args:              cli.ArgsBetween(0, 1, "at most one use"),
		ValidArgsFunction: complete.Arg(complete.Words(names()...)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			name := ""
			if len(argv) > 0 {
				name = argv[0]
			}
			return run(cmd.Context(), e, name)
		},
	}
}

// initDocument is the JSON of init.
type initDocument struct {
	Way     string          `json:"way"`
	Created string          `json:"created,omitempty"` // the settings file
	Found   []imports.Found `json:"found"`             // files of other programs with MCP servers
	Copied  []string        `json:"copied,omitempty"`  // the servers that were copied from them
	Next    []string        `json:"next"`              // commands

	from []string // Copied, each with its program
}

func run(ctx context.Context, e *cli.Env, name string) error {
	if err := e.Config.RefuseInside("changing settings"); err != nil {
		return err
	}
	w, err := choose(ctx, e.Person, name)
	if err != nil {
		return err
	}
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	only := e.Config.Globals.Imports
	seen := map[string]bool{} // files that several programs read
	found := slices.DeleteFunc(imports.Find(agents.Importer{}, s.ProjectRoot, e.Config.Environ),
		func(f imports.Found) bool {
			if len(f.Entries) == 0 || len(only) > 0 && !slices.Contains(only, f.Program) || seen[f.File] {
				return true
			}
			seen[f.File] = true
			return false
		})
	d := initDocument{Way: w.name, Found: cli.OrEmpty(found)}
	if w.file != "" {
		if err := create(ctx, e, s, w, &d); err != nil {
			return err
		}
	}
	programs := programsOf(d.Found)
	for _, command := range w.next {
		switch {
		case len(programs) == 0 && w.name == "look":
			d.Next = append(d.Next, "toolreg list --cost")
		case len(programs) == 0:
			d.Next = append(d.Next, strings.ReplaceAll(command, "PROGRAM", "claude"))
		case strings.Contains(command, "PROGRAM"):
			for _, program := range programs {
				d.Next = append(d.Next, strings.ReplaceAll(command, "PROGRAM", program))
			}
		default:
			d.Next = append(d.Next, command)
		}
	}
	note, how := e.Config.GeminiSettings(s)
	shown := d
	if w.file != "" && !w.copies {
		shown.Found = nil // only other ways use them
	}
	return e.IO.PrintText(d, documentText(shown, note, how))
}

func choose(ctx context.Context, person *cli.Person, name string) (way, error) {
	all := ways()
	if name != "" {
		i := slices.Index(names(), name)
		if i < 0 {
			return way{}, cli.Usage(fmt.Sprintf("unknown use %q", name),
				"one of "+strings.Join(names(), ", "))
		}
		return all[i], nil
	}
	tty, err := person.Open()
	if err != nil {
		return way{}, cli.Usage("nobody can be asked what to set up",
			"toolreg init "+names()[0]+", or one of "+strings.Join(names()[1:], ", ")+" instead")
	}
	defer tty.Close()
	q := ui.Query{About: "What do you want to do?\n", Question: "Which one?"}
	for i, w := range all {
		q.About += fmt.Sprintf("  %d  %s\n", i+1, w.does)
		q.Answers = append(q.Answers, fmt.Sprint(i+1))
	}
	q.Answers = append(q.Answers, "no")
	chosen, err := tty.Choose(ctx, q)
	if err != nil {
		return way{}, err
	}
	if i := slices.Index(q.Answers, chosen.Word); i < len(all) {
		return all[i], nil
	}
	return way{}, fmt.Errorf("%w: you said no; nothing was written", registry.ErrDenied)
}

func create(ctx context.Context, e *cli.Env, s *settings.Settings, w way, d *initDocument) error {
	p := place{root: s.ProjectRoot, dir: filepath.Join(s.ProjectRoot, ".toolreg"), mode: 0o666, folder: 0o777}
	if w.user {
		dir, err := e.Config.UserFolder()
		if err != nil {
			return err
		}
		p = place{dir: dir, mode: 0o600, folder: 0o700}
	}
	path, err := p.free(w.file)
	if err != nil {
		return err
	}
	text, err := starters.ReadFile("starter/" + w.name + ".yaml")
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("SHELL"), shellRule(e, s))
	var notes []string
	if w.copies {
		for _, c := range serverscmd.Copies(e, s, programsOf(d.Found), !w.user) {
			if text, err = c.Apply(path, text); err != nil {
				return err
			}
			d.Copied = append(d.Copied, c.Name)
			d.from = append(d.from, c.Name+" of "+c.Program)
			if len(c.Also) > 0 {
				notes = append(notes,
					fmt.Sprintf("server %q is copied from %s, not from %s; `toolreg --import %s init %s` copies only those of %[4]s",
						c.Name, c.Program, strings.Join(c.Also, ", "), c.Also[0], w.name))
			}
			for _, note := range c.Notes {
				notes = append(notes, fmt.Sprintf("server %q: %s", c.Name, note))
			}
		}
	}
	granted, err := settingsfile.Write(ctx, e, settingsfile.Change{File: path, New: text, Write: func() error {
		return edit.Create(p.root, path, text, p.mode, p.folder)
	}})
	if errors.Is(err, fs.ErrExist) {
		return errExists(path)
	}
	for _, note := range notes {
		e.IO.Notef("%s", note)
	}
	d.Created = path
	if !w.user && w.file == "settings.yaml" && !granted { // otherwise nothing in it has an effect
		d.Next = append(d.Next, "toolreg trust grant")
	}
	return err
}

// shellRule returns the rule for shell commands: in the sandbox where they can be confined
// in full.
func shellRule(e *cli.Env, s *settings.Settings) []byte {
	c := confine.New(confine.Options{Settings: s, Environ: e.Config.Environ,
		Env: func() []string { return nil }, Warn: e.IO.Warn})
	defer c.Close()
	if m := c.Means(confine.Shell); m.Off || m.Missing() != "" {
		return []byte("{tool: run_shell_command, command: git status, decision: allow}")
	}
	return []byte("{tool: run_shell_command, decision: sandbox}")
}

type place struct {
	root, dir    string // nothing is written outside root; "" means no restriction
	mode, folder fs.FileMode
}

// free returns the path of a new settings file, or an error if the folder has settings.
func (p *place) free(name string) (string, error) {
	if info, err := os.Stat(p.dir); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder; move it away first", p.dir)
	}
	path := filepath.Join(p.dir, name)
	if name != "settings.yaml" {
		return path, nil
	}
	there, err := settings.FileIn(p.dir)
	if there != "" {
		return "", errExists(there)
	}
	return path, err
}

func errExists(path string) error {
	return cli.Usage(fmt.Sprintf("%s already exists", path), "edit it, or move it away first")
}

func programsOf(found []imports.Found) []string {
	var out []string
	for _, f := range found {
		if f.Servers > 0 && !slices.Contains(out, f.Program) {
			out = append(out, f.Program)
		}
	}
	return out
}

func documentText(d initDocument, note, how string) string {
	var b strings.Builder
	if d.Created != "" {
		fmt.Fprintf(&b, "created %s\n", ui.Line(d.Created))
	}
	for _, f := range d.Found {
		fmt.Fprintf(&b, "found %s: %s, %s", f.Program, ui.Line(f.File), text.Count(f.Servers, "MCP server"))
		if f.Left > 0 {
			fmt.Fprintf(&b, ", and %d that cannot be imported", f.Left)
		}
		b.WriteString("\n")
	}
	if len(d.Copied) > 0 {
		fmt.Fprintf(&b, "copied %s\n", ui.Line(strings.Join(d.from, ", ")))
	}
	if note != "" {
		fmt.Fprintf(&b, "%s: %s\n", ui.Line(note), ui.Line(how))
	}
	b.WriteString("next:\n  " + strings.Join(d.Next, "\n  ") + "\n")
	return b.String()
}
