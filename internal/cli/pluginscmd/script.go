package pluginscmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/trust"
)

// runNewScript writes a plugin whose tool is an existing script.
func runNewScript(ctx context.Context, e *cli.Env, o *newOptions, name, script string) error {
	if o.user {
		if err := e.Config.RefuseInside("writing your own plugins"); err != nil {
			return err
		}
	}
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	folder, err := newPluginDir(e.Config, s, o)
	if err != nil {
		return err
	}
	script = e.Config.Absolute(script)
	argv, err := interpreted(script)
	if err != nil {
		return err
	}
	dir := filepath.Join(folder.path, name)
	shared := trust.Within(trust.Real(folder.path), trust.Real(s.ProjectRoot)) // the plugin is part of the project
	if shared && !trust.Within(trust.Real(script), trust.Real(s.ProjectRoot)) {
		return &cli.UsageError{Err: fmt.Errorf("%s is outside the project", script), Hint: "copy it into the project, or use --user, which makes a plugin of your own"}
	}
	help := helpOf(ctx, append(argv, script), s.ProjectRoot, e.Config.Environ)
	word := script
	if shared {
		from := dir
		if len(argv) > 0 { // the interpreter looks it up where it runs
			from = s.ProjectRoot
		}
		if word, err = filepath.Rel(from, script); err != nil {
			return err
		}
		word = filepath.ToSlash(word)
	}
	file := filepath.Join(dir, "plugin.yaml")
	if _, err := os.Lstat(dir); err == nil {
		return &cli.UsageError{Err: fmt.Errorf("%s already exists", dir), Hint: "choose another name, or remove it"}
	}
	text := manifest(name, toolPrefix(name), "Runs "+filepath.Base(script)+".", append(argv, word), help)
	_, err = settingsfile.Write(ctx, e, settingsfile.Change{File: file, New: text, Ask: e.Person.AtKeyboard(), Write: func() error {
		return createFile(folder.root, dir, "plugin.yaml", text)
	}})
	if err != nil {
		return err
	}
	return printNew(e.IO, newPlugin{name, dir, []string{file}}, folder.next+"  toolreg call "+toolPrefix(name)+" --help\n")
}

// createFile creates a file in a folder that must not exist, below root.
func createFile(root, dir, name string, content []byte) error {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return err
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return fmt.Errorf("creating the plugin's folder: %w", err)
	}
	defer folder.Close()
	if err := folder.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return fmt.Errorf("creating the plugin's folder: %w", err)
	}
	if err := folder.Mkdir(rel, 0o755); err != nil {
		return fmt.Errorf("creating the plugin's folder: %w", err)
	}
	return folder.WriteFile(filepath.Join(rel, name), content, 0o644)
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
	program, ok := map[string]string{".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby", ".pl": "perl"}[filepath.Ext(script)]
	if !ok {
		return nil, &cli.UsageError{Err: fmt.Errorf("%s is not executable", script), Hint: "chmod +x makes a script executable"}
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
	if err != nil || !knows("--help") && !knows("argparse") && !knows("import click") && !knows("import typer") && !knows("commander") && !knows("yargs") && !knows("OptionParser") {
		return &scriptHelp{}
	}
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	out, err := process.Run(ctx, process.Spec{Argv: append(argv, "--help"), Dir: dir, Env: append(process.BaseEnv(environ), process.ChildDepth(environ), "COLUMNS=200"), MaxOutput: maxHelp})
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
