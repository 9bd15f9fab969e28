package serverscmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

func newImportCommand(e *cli.Env) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "import PROGRAM [NAME…]",
		Short: "Copy MCP servers from another program",
		Long: editHelp(`Copy MCP servers from the files of another program into a settings file, your own by
default.

PROGRAM is gemini, antigravity, claude, claude-desktop, vscode, cursor, codex,
windsurf, opencode, zed or mcporter. Each NAME is a server or a glob. Without NAME,
toolreg asks about each server at the terminal. It always asks about servers in
files of the project, which globs do not match. toolreg connects to each copied
server at once, as servers add does.

It says which secrets are copied and whether trust is. A secret of your own that
is the value of an environment variable is copied as a reference to that.

The setting imports and the flag --import use a program's servers without copying
them.`, editCodes),
		Example: `  toolreg servers import claude
  toolreg servers import cursor '*' --no-test`,
		Args:              cli.ArgsBetween(1, -1, "a PROGRAM"),
		ValidArgsFunction: complete.Args(complete.Words((agents.Importer{}).Programs()...), completeImports(e)),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runImport(cmd.Context(), e, t, argv[0], argv[1:])
		},
	}
	t.flags(cmd)
	return cmd
}

func completeImports(e *cli.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, argv []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return e.Complete().Settings(func(_ context.Context, s *settings.Settings) []cobra.Completion {
			var out []cobra.Completion
			for _, f := range imports.Find(agents.Importer{}, s.ProjectRoot, e.Config.Environ) {
				for _, server := range f.Entries {
					if f.Program == argv[0] && server.Problem == "" {
						entry, _ := jsonx.Parse(server.JSON, jsonx.Options{})
						out = append(out, cobra.CompletionWithDesc(server.Name,
							reach(table.NewIndex().Row(table.ServersKey).Masked(entry))))
					}
				}
			}
			return out
		})(cmd, argv, word)
	}
}

// matches reports whether a NAME on the command line selects the server. Servers of the
// project must be named exactly, or confirmed.
func matches(f install.Import, pattern string) bool {
	return f.Name == pattern || !f.Foreign && text.MatchName(pattern, f.Name)
}

func runImport(ctx context.Context, e *cli.Env, t *target, program string, names []string) error {
	if known := (agents.Importer{}).Programs(); !slices.Contains(known, program) {
		return cli.Usage(fmt.Sprintf("unknown program %q", program), "one of "+strings.Join(known, ", "))
	}
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	chosen, err := toImport(ctx, e, t, s, program, names)
	if err != nil {
		return err
	}
	return t.addServers(ctx, e, chosen, true)
}

// toImport returns the servers to copy. If there are none, it prints the reason.
func toImport(ctx context.Context, e *cli.Env, t *target,
	s *settings.Settings, program string, names []string) ([]edit.Change, error) {
	servers := serversOf(e, s, program, func(imports.Found) bool { return true })
	if len(servers) == 0 && !slices.ContainsFunc(names, func(name string) bool { return !text.IsGlob(name) }) {
		e.IO.Notef("%s has no MCP servers that can be copied", program)
		return nil, nil
	}
	file, err := settingsfile.Path(e, t.scope)
	if err != nil {
		return nil, err
	}
	if servers, err = matching(program, servers, names); err != nil {
		return nil, err
	}
	if servers, err = withoutExisting(e.IO, servers, file); err != nil || len(servers) == 0 {
		return nil, err
	}
	return chooseImports(ctx, e, program, servers, len(names) > 0)
}

// Copy is a server of another program, to be added to a settings file.
type Copy struct {
	edit.Change
	Program string
	Also    []string // other programs with a different server of this name
	Notes   []string // about its secrets and trust
}

// Copies returns the servers in the user's own files of other programs or, if project is
// set, in the project's. The first program with a server of a name wins. It reports why others
// cannot be copied.
func Copies(e *cli.Env, s *settings.Settings, programs []string, project bool) []Copy {
	var out []Copy
	for _, program := range programs {
		for _, f := range serversOf(e, s, program, func(f imports.Found) bool { return f.Project == project }) {
			i := slices.IndexFunc(out, func(c Copy) bool { return c.Name == f.Name })
			switch {
			case i < 0:
				out = append(out, Copy{edit.Change{Name: f.Name, Entry: f.JSON}, program, nil, f.Notes})
			case !bytes.Equal(out[i].Entry, f.JSON):
				out[i].Also = append(out[i].Also, program)
			}
		}
	}
	return out
}

// serversOf returns the servers of a program that can be copied, and reports why others cannot.
func serversOf(e *cli.Env, s *settings.Settings, program string, from func(imports.Found) bool) []install.Import {
	servers, diags := installer(e, s).Imports(program, from)
	e.IO.Diagnose(diags)
	return servers
}

// withoutExisting removes the servers whose names a settings file already has, and
// reports them.
func withoutExisting(ios *cli.IO, servers []install.Import, file string) ([]install.Import, error) {
	data, err := edit.Read(file)
	if err != nil {
		return nil, err
	}
	var out []install.Import
	for _, f := range servers {
		_, err := edit.Entry(file, data, f.Name)
		switch {
		case err == nil:
			ios.Notef("server %q already exists in %s", f.Name, file)
		case errors.Is(err, edit.ErrNoServer):
			out = append(out, f)
		default:
			return nil, err
		}
	}
	return out, nil
}

// matching returns the servers that match names, or all without names. A name that
// matches none is an error.
func matching(program string, servers []install.Import, names []string) ([]install.Import, error) {
	if len(names) == 0 {
		return servers, nil
	}
	known := []string{}
	for _, f := range servers {
		known = append(known, f.Name)
	}
	for _, pattern := range names {
		if !slices.ContainsFunc(servers, func(f install.Import) bool { return matches(f, pattern) }) {
			hint := "it has " + cmp.Or(strings.Join(known, ", "), "none")
			if slices.ContainsFunc(servers, func(f install.Import) bool { return f.Foreign }) {
				hint += "; globs do not match servers in files of the project"
			}
			return nil, &registry.Failure{Text: fmt.Sprintf("%s has no server %q to copy", program, pattern),
				Kind: registry.ErrNotFound, Help: hint}
		}
	}
	return slices.DeleteFunc(servers, func(f install.Import) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return matches(f, name) })
	}), nil
}

// chooseImports returns the servers that the person named or, when asked, wants.
func chooseImports(ctx context.Context, e *cli.Env, program string,
	servers []install.Import, named bool) ([]edit.Change, error) {
	var out []edit.Change
	var asked []install.Import
	for _, f := range servers {
		if !named || f.Foreign {
			asked = append(asked, f)
			continue
		}
		out = append(out, edit.Change{Name: f.Name, Entry: f.JSON})
		for _, note := range f.Notes { // a question would say so
			e.IO.Notef("server %q: %s", f.Name, note)
		}
	}
	if len(asked) == 0 {
		return out, nil
	}
	wanted, err := askImports(ctx, e.Person, program, asked)
	return append(out, wanted...), err
}

func askImports(ctx context.Context, person *cli.Person,
	program string, servers []install.Import) ([]edit.Change, error) {
	tty, err := person.Require(cli.NoTerminal("choosing servers",
		"toolreg servers import "+program+" NAME…; '*' is all of the user's own"))
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	var out []edit.Change
	for i, f := range servers {
		// The command is shown in full, as in the question of trust: what looks like a secret may
		// be code.
		about := fmt.Sprintf("%d of %d: %s: %s (%s:%d)\n",
			i+1, len(servers), ui.Line(f.Name), ui.Line(reach(f.JSON)), ui.Line(f.File), f.Pos.Line)
		for _, note := range f.Notes {
			about += "  " + ui.Line(note) + "\n"
		}
		yes, err := cli.AskYes(ctx, tty, ui.Query{
			About:    about,
			Question: "Copy it?",
		})
		if err != nil {
			return nil, err
		}
		if yes {
			out = append(out, edit.Change{Name: f.Name, Entry: f.JSON})
		}
	}
	return out, nil
}

// reach returns the command line of an entry, or its URL without secrets.
func reach(entry json.RawMessage) string {
	var e struct {
		Command, URL, HTTPURL string
		Args                  []string
	}
	if json.Unmarshal(entry, &e) != nil || e.Command == "" {
		return secret.Text(e.HTTPURL+e.URL, nil)
	}
	return strings.Join(append([]string{e.Command}, e.Args...), " ")
}
