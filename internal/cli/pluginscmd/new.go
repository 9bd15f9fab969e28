package pluginscmd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/settings"
)

// scaffold holds, for each language, the files of a new plugin.
//
//go:embed scaffold
var scaffold embed.FS

type newOptions struct {
	lang string
	dir  string
	user bool
}

func newNewCommand(e *cli.Env) *cobra.Command {
	o := &newOptions{}
	cmd := &cobra.Command{
		Use:   "new NAME [SCRIPT]",
		Short: "Write a plugin: a working example, or one for a script that you have",
		Long: `Write a plugin with one tool and its test: into .toolreg/plugins of the project,
into your own plugins with --user, or into a folder of your choice with --dir.
Existing files are never overwritten.

With SCRIPT the plugin is a manifest for that file, which stays where it is: its
options and arguments become params of the tool. If the script has a --help, it is
run with that to read them. At a terminal the manifest is shown first.

Exit codes: 0, 1 (it cannot be written), 2, 5 (you said no).`,
		Example: `  toolreg plugins new weather --lang python
  toolreg plugins new word_count scripts/words.sh`,
		Args:              cli.ArgsBetween(1, 2, "the name of the plugin"),
		ValidArgsFunction: complete.Args(cobra.NoFileCompletions, complete.Files, cobra.NoFileCompletions),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := o.check(argv[0]); err != nil {
				return err
			}
			if len(argv) == 1 {
				return runNew(cmd.Context(), e, o, argv[0])
			}
			if cmd.Flags().Changed("lang") {
				return &cli.UsageError{Err: errors.New("--lang is for an example; a script has its own language")}
			}
			return runNewScript(cmd.Context(), e, o, argv[0], argv[1])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.lang, "lang", "sh", "`language`: "+strings.Join(scaffoldLanguages(), ", "))
	f.StringVar(&o.dir, "dir", "", "`folder` in which to create the plugin's folder")
	complete.Flag(cmd, "lang", complete.Words(scaffoldLanguages()...))
	complete.Flag(cmd, "dir", complete.Dirs)
	f.BoolVar(&o.user, "user", false, "for all your projects, not just this one")
	return cmd
}

func scaffoldLanguages() []string { return []string{"sh", "python"} }

// newPlugin is the JSON of plugins new.
type newPlugin struct {
	ID    string   `json:"id"`
	Path  string   `json:"path"`
	Files []string `json:"files"`
}

// check returns the mistakes in the arguments.
func (o *newOptions) check(name string) error {
	switch {
	case !discover.IsPluginID(name):
		return &cli.UsageError{Err: fmt.Errorf("%q cannot be the name of a plugin", name), Hint: "letters, digits, _ . and -, at most 63, a letter or digit first"}
	case builtin.Named(name) != "":
		return &cli.UsageError{Err: fmt.Errorf("%q is the name of a built-in tool, which a plugin must not use", name)}
	case !slices.Contains(scaffoldLanguages(), o.lang):
		return &cli.UsageError{Err: fmt.Errorf("unknown language %q", o.lang), Hint: "one of " + strings.Join(scaffoldLanguages(), ", ")}
	case o.user && o.dir != "":
		return &cli.UsageError{Err: errors.New("--user and --dir cannot be used together")}
	}
	return nil
}

func runNew(ctx context.Context, e *cli.Env, o *newOptions, name string) error {
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	folder, err := newPluginDir(e.Config, s, o)
	if err != nil {
		return err
	}
	dir := filepath.Join(folder.path, name)
	files, err := writeScaffold(folder.root, dir, o.lang, name)
	if err != nil {
		return err
	}
	return printNew(e.IO, newPlugin{name, dir, files}, folder.next+"  toolreg call "+toolPrefix(name)+"_greet name=Ann\n")
}

// printNew prints the files of a new plugin and what to do next.
func printNew(ios *cli.IO, p newPlugin, next string) error {
	if ios.JSON {
		return ios.PrintJSON(p)
	}
	if _, err := fmt.Fprintln(ios.Out, strings.Join(p.Files, "\n")); err != nil {
		return err
	}
	ios.Note(next)
	return nil
}

// pluginsFolder is where a new plugin's folder goes.
type pluginsFolder struct {
	path string
	root string // nothing is written outside it
	next string // what to do before the tool can be called
}

// newPluginDir returns the folder for the plugin's folder.
func newPluginDir(config *cli.Config, s *settings.Settings, o *newOptions) (pluginsFolder, error) {
	switch {
	case o.user:
		user := settings.UserFolder(config.Environ)
		if user == "" {
			return pluginsFolder{}, &cli.UsageError{Err: errors.New("there is no folder for your settings"), Hint: "set HOME or XDG_CONFIG_HOME"}
		}
		dir := filepath.Join(user, "plugins")
		return pluginsFolder{dir, dir, "next:\n"}, os.MkdirAll(dir, 0o755)
	case o.dir != "":
		dir := config.Absolute(o.dir)
		return pluginsFolder{dir, dir, "next: name the folder in plugins.paths, then\n"}, os.MkdirAll(dir, 0o755)
	}
	return pluginsFolder{filepath.Join(s.ProjectRoot, ".toolreg", "plugins"), s.ProjectRoot, "next:\n  toolreg trust grant\n"}, nil
}

// toolPrefix converts the name of a plugin to a prefix that every provider accepts in
// tool names.
func toolPrefix(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// writeScaffold writes the files of a language to a folder that must not exist,
// and returns their paths.
func writeScaffold(root, dir, lang, id string) (files []string, err error) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("creating the plugin's folder: %w", err)
	}
	defer folder.Close()
	if err := folder.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return nil, fmt.Errorf("creating the plugin's folder: %w", err)
	}
	if err := folder.Mkdir(rel, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, &cli.UsageError{Err: fmt.Errorf("%s already exists", dir), Hint: "choose another name, or remove it"}
		}
		return nil, fmt.Errorf("creating the plugin's folder: %w", err)
	}
	defer func() {
		if err != nil {
			_ = folder.RemoveAll(rel) // remove the incomplete plugin
		}
	}()
	entries, err := scaffold.ReadDir(path.Join("scaffold", lang))
	if err != nil {
		return nil, err
	}
	names := strings.NewReplacer("{{.ID}}", id, "{{.Tool}}", toolPrefix(id))
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".tmpl")
		if err := writeTemplate(path.Join("scaffold", lang, e.Name()), folder, filepath.Join(rel, name), names); err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(dir, name))
	}
	return files, nil
}

// writeTemplate writes a file of the scaffold and fills in the names.
func writeTemplate(from string, folder *os.Root, to string, names *strings.Replacer) error {
	text, err := scaffold.ReadFile(from)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasSuffix(to, ".sh") {
		mode = 0o755
	}
	f, err := folder.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("writing the plugin: %w", err)
	}
	_, err = names.WriteString(f, string(text))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
