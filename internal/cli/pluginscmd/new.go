package pluginscmd

import (
	"bytes"
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
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
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
		Short: "Create a plugin from an example or from a script of yours",
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
			if err := o.checkArgs(argv[0]); err != nil {
				return err
			}
			if len(argv) == 1 {
				return runNew(cmd.Context(), e, o, argv[0])
			}
			if cmd.Flags().Changed("lang") {
				return cli.Usage("--lang is for an example; a script has its own language", "")
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

func (o *newOptions) checkArgs(name string) error {
	switch {
	case !discover.IsPluginID(name):
		return cli.Usage(fmt.Sprintf("%q cannot be the name of a plugin", name),
			"letters, digits, _ . and -, at most 63, a letter or digit first")
	case builtin.Named(name) != "":
		return &cli.UsageError{Err: fmt.Errorf("%q is the name of a built-in tool, which a plugin must not use", name)}
	case !slices.Contains(scaffoldLanguages(), o.lang):
		return cli.Usage(fmt.Sprintf("unknown language %q", o.lang),
			"one of "+strings.Join(scaffoldLanguages(), ", "))
	case o.user && o.dir != "":
		return cli.Usage("--user and --dir cannot be used together", "")
	}
	return nil
}

func runNew(ctx context.Context, e *cli.Env, o *newOptions, name string) error {
	folder, err := newPluginDir(ctx, e.Config, o)
	if err != nil {
		return err
	}
	dir := filepath.Join(folder.path, name)
	files, err := writeScaffold(folder.root, dir, o.lang, name)
	if err != nil {
		return err
	}
	return printNew(e.IO, newPlugin{name, dir, files},
		folder.next+"  toolreg call "+toolPrefix(name)+"_greet name=Ann\n")
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
	path    string
	root    string // nothing is written outside it
	next    string // what to do before the tool can be called
	project string // the project's root
}

func newPluginDir(ctx context.Context, config *cli.Config, o *newOptions) (f pluginsFolder, err error) {
	s, err := config.Settings(ctx)
	if err != nil {
		return f, err
	}
	f.project = s.ProjectRoot
	switch {
	case o.user:
		if err := config.RefuseInside("writing your own plugins"); err != nil {
			return f, err
		}
		user, err := config.UserFolder()
		if err != nil {
			return f, err
		}
		f.path, f.next = filepath.Join(user, "plugins"), "next:\n"
	case o.dir != "":
		f.path, f.next = config.Absolute(o.dir), "next: name the folder in plugins.paths, then\n"
	default:
		f.path, f.root = filepath.Join(f.project, ".toolreg", "plugins"), f.project
		f.next = "next:\n  toolreg trust grant\n"
		return f, nil
	}
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return f, fmt.Errorf("creating %s: %w", f.path, text.Cause(err))
	}
	f.root = f.path
	return f, nil
}

// toolPrefix converts the name of a plugin to a prefix that every provider accepts in
// tool names.
func toolPrefix(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// writeScaffold writes the files of a language to a folder that must not exist,
// and returns their paths.
func writeScaffold(root, dir, lang, id string) (files []string, err error) {
	folder, rel, err := newFolder(root, dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
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
		if err := writeTemplate(path.Join("scaffold", lang, e.Name()),
			folder, filepath.Join(rel, name), names); err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(dir, name))
	}
	return files, nil
}

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

func runNewScript(ctx context.Context, e *cli.Env, o *newOptions, name, script string) error {
	folder, err := newPluginDir(ctx, e.Config, o)
	if err != nil {
		return err
	}
	script = e.Config.Absolute(script)
	argv, err := interpreted(script)
	if err != nil {
		return err
	}
	dir := filepath.Join(folder.path, name)
	shared := trust.Within(trust.Real(folder.path), trust.Real(folder.project)) // the plugin is part of the project
	if shared && !trust.Within(trust.Real(script), trust.Real(folder.project)) {
		return cli.Usage(fmt.Sprintf("%s is outside the project", script),
			"copy it into the project, or use --user, which makes a plugin of your own")
	}
	help := helpOf(ctx, append(argv, script), folder.project, e.Config.Environ)
	word := script
	if shared {
		from := dir
		if len(argv) > 0 { // the interpreter looks it up where it runs
			from = folder.project
		}
		if word, err = filepath.Rel(from, script); err != nil {
			return err
		}
		word = filepath.ToSlash(word)
	}
	file := filepath.Join(dir, "plugin.yaml")
	if _, err := os.Lstat(dir); err == nil {
		return cli.Usage(fmt.Sprintf("%s already exists", dir), "choose another name, or remove it")
	}
	content := manifest(name, toolPrefix(name), "Runs "+filepath.Base(script)+".", append(argv, word), help)
	_, err = settingsfile.Write(ctx, e,
		settingsfile.Change{File: file, New: content, Ask: e.Person.AtKeyboard(), Write: func() error {
			above, rel, err := newFolder(folder.root, dir)
			if err != nil {
				return err
			}
			defer above.Close()
			return above.WriteFile(filepath.Join(rel, "plugin.yaml"), content, 0o644)
		}})
	if err != nil {
		return err
	}
	return printNew(e.IO, newPlugin{name, dir, []string{file}},
		folder.next+"  toolreg call "+toolPrefix(name)+" --help\n")
}

// newFolder creates a plugin's folder, which must not exist. It returns root, opened, and the
// path of the folder from there.
func newFolder(root, dir string) (above *os.Root, rel string, err error) {
	if rel, err = filepath.Rel(root, dir); err == nil {
		above, err = os.OpenRoot(root)
	}
	if err != nil {
		return nil, "", err
	}
	if err = above.MkdirAll(filepath.Dir(rel), 0o755); err == nil {
		err = above.Mkdir(rel, 0o755)
	}
	if err == nil {
		return above, rel, nil
	}
	above.Close()
	if errors.Is(err, fs.ErrExist) {
		return nil, "", cli.Usage(fmt.Sprintf("%s already exists", dir), "choose another name, or remove it")
	}
	return nil, "", fmt.Errorf("creating %s: %w", dir, text.Cause(err))
}

// interpreted returns the program that runs a script: none if it is executable, else that
// of its extension.
func interpreted(script string) ([]string, error) {
	info, err := os.Stat(script)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &cli.UsageError{Err: fmt.Errorf("%s does not exist", script)}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &cli.UsageError{Err: fmt.Errorf("%s is not a file", script)}
	case info.Mode()&0o111 != 0:
		return nil, nil
	}
	program, ok := map[string]string{
		".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node",
		".rb": "ruby", ".pl": "perl",
	}[filepath.Ext(script)]
	if !ok {
		return nil, cli.Usage(fmt.Sprintf("%s is not executable", script), "chmod +x makes a script executable")
	}
	return []string{program}, nil
}

const (
	helpTimeout = 10 * time.Second
	maxHelp     = 256 << 10
	maxRead     = 64 << 20 // a program in Go or Rust is a script too
)

// helpOf returns what a script prints with --help. It is run only if its text mentions
// that option or a library that provides it, because another script would do its work.
func helpOf(ctx context.Context, argv []string, dir string, environ []string) *scriptHelp {
	script := argv[len(argv)-1]
	if info, err := os.Stat(script); err != nil || info.Size() > maxRead {
		return &scriptHelp{}
	}
	source, err := os.ReadFile(script)
	knows := func(word string) bool { return bytes.Contains(source, []byte(word)) }
	if err != nil || !knows("--help") && !knows("argparse") && !knows("import click") && !knows("import typer") &&
		!knows("commander") && !knows("yargs") && !knows("OptionParser") {
		return &scriptHelp{}
	}
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	out, err := process.Run(ctx, process.Spec{
		Argv: append(argv, "--help"), Dir: dir,
		Env:       append(process.BaseEnv(environ), process.ChildDepth(environ), "COLUMNS=200"),
		MaxOutput: maxHelp,
	})
	if err != nil {
		return &scriptHelp{}
	}
	text := out.Stdout
	if len(bytes.TrimSpace(text)) == 0 {
		text = out.Stderr
	}
	return readHelp(string(text))
}

// manifest returns the content of plugin.yaml. Text of the script is quoted.
func manifest(id, tool, description string, argv []string, help *scriptHelp) []byte {
	quote := jsonx.Quote
	list := func(words []string) string {
		quoted := make([]string, len(words))
		for i, word := range words {
			quoted[i] = quote(word)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	var b strings.Builder
	if help.description != "" {
		description = help.description
	}
	fmt.Fprintf(&b, "id: %s\nversion: 0.1.0\ntools:\n  - name: %s\n    description: %s\n", id, tool, quote(description))
	b.WriteString("    category: other # read, write, command, network or other; policy rules use it\n")
	b.WriteString("    parameters:\n      type: object\n      additionalProperties: false\n")
	var args, required []string
	if len(help.params) == 0 {
		b.WriteString("      properties: {} # such as {file: {type: string, description: The file to read.}}\n")
	} else {
		b.WriteString("      properties:\n")
	}
	for _, p := range help.params {
		fmt.Fprintf(&b, "        %s: {type: %s", quote(p.name), p.kind)
		if len(p.values) > 0 {
			fmt.Fprintf(&b, ", enum: %s", list(p.values))
		}
		if p.description != "" {
			fmt.Fprintf(&b, ", description: %s", quote(p.description))
		}
		b.WriteString("}\n")
		if args = append(args, p.arg); p.required {
			required = append(required, p.name)
		}
	}
	if len(required) > 0 {
		fmt.Fprintf(&b, "      required: %s\n", list(required))
	}
	fmt.Fprintf(&b, "    command: %s\n", list(argv))
	fmt.Fprintf(&b, "    args: %s", list(args))
	if len(args) == 0 {
		b.WriteString(` # such as ["{{file}}", "--lines={{lines}}"]; one whose param is absent is left out`)
	}
	b.WriteString("\n    cwd: project\n")
	return []byte(b.String())
}
