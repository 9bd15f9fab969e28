package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Plugin is a plugin found on disk. Its manifest has been read, but none of its
// programs has run. A single script is a plugin too; its id is the file name
// without extension.
type Plugin struct {
	ID          string
	Version     string
	Author      string
	Description string
	Dir         string // absolute path where its commands run
	Path        string // absolute path of the manifest or script, or else Dir
	Sum         string // SHA-256 of the manifest in hex; "" for a script
	Root        string // absolute path of the project whose trust covers it; "" if none does
	// Problems are the mistakes in the plugin as a whole, in order of position. A
	// plugin that has some provides no tools. Mistakes in one tool affect only that
	// tool.
	Problems []document.Problem

	script  bool                       // Path is a script that declares its tools if run with --toolreg-describe
	factory []string                   // argv; may be nil
	call    []string                   // argv to which the tool's name is appended; may be nil
	timeout time.Duration              // for tools without their own
	tools   []object                   // declared in the manifest; an element that is not an object is nil
	bad     map[int][]document.Problem // mistakes in tools, by index
}

// Tools returns the number of tools that the manifest declares, and whether a
// factory or script may declare more.
func (p *Plugin) Tools() (n int, more bool) { return len(p.tools), p.script || p.factory != nil }

// PluginOptions are the options of a plugin's source.
type PluginOptions struct {
	Options
	// Settings returns the plugin's own settings as JSON when they are needed. If
	// Settings or its result is nil, the plugin has no settings.
	Settings func(context.Context) (json.RawMessage, error)
	// Disabled prevents factories and scripts from running; only tools of the
	// manifest are declared.
	Disabled bool
}

// NewPlugin returns the source of a plugin's tools. Its name is "plugin:ID". It
// holds no resources and starts nothing before Discover. A plugin with problems
// fails with all of them, one per line.
func NewPlugin(p *Plugin, opts PluginOptions) registry.Source {
	opts.Limits = opts.Limits.orDefault()
	return &plugin{Plugin: p, opts: opts}
}

type plugin struct {
	*Plugin
	opts PluginOptions
}

// Name returns "plugin:ID".
func (p *plugin) Name() string { return registry.PluginPrefix + p.ID }

func (p *plugin) fail(cause error) error {
	return sourceFailed(cause, "%s (%s): %s", p.Name(), p.Path, cause)
}

// reads reads the command and the other fields that say how a tool runs.
func (p *plugin) reads(d *declaration) (argv []string, m mapping, r running, err error) {
	if argv, err = p.command(d); err != nil {
		return nil, m, r, err
	}
	if m, _, err = readMapping(d.fields); err != nil {
		return nil, m, r, err
	}
	r, err = readRunning(d.fields, p.timeout, p.opts.Evaluator)
	return argv, m, r, err
}

// command returns the argv that runs a tool: its own, or the plugin's followed
// by the tool's name.
func (p *plugin) command(d *declaration) ([]string, error) {
	if raw := d.fields["command"]; present(raw) {
		var argv []string
		if json.Unmarshal(raw, &argv) != nil || len(argv) == 0 || argv[0] == "" {
			return nil, fmt.Errorf("its command is not a list of words")
		}
		if d.printed {
			// Trust does not cover programs outside the folder that a factory names.
			if i := slices.IndexFunc(argv, leadsOutside); i >= 0 {
				return nil, fmt.Errorf("its command: %q leads outside the plugin's folder", argv[i])
			}
		}
		return argv, nil
	}
	if p.call == nil {
		return nil, fmt.Errorf("it has no command, and the plugin has no call command")
	}
	return append(p.call[:len(p.call):len(p.call)], d.original), nil
}

// identity returns the identity of a tool of this plugin, so that an approval
// applies only to this command in this folder. A folder in the project is relative
// to its root, so that a lock file is valid for every copy of the project.
func (p *plugin) identity(argv []string, fields object) json.RawMessage {
	dir := p.Dir
	if rel, err := filepath.Rel(p.opts.ProjectRoot, dir); err == nil && filepath.IsLocal(rel) {
		dir = rel
	}
	if p.script && len(argv) > 0 && argv[0] == p.Path {
		argv = append([]string{filepath.Base(p.Path)}, argv[1:]...)
	}
	return encode(struct {
		Plugin  string          `json:"plugin"`
		Dir     string          `json:"dir"`
		Command []string        `json:"command"`
		Args    json.RawMessage `json:"args,omitempty"`
		Env     json.RawMessage `json:"env,omitempty"`
		Cwd     json.RawMessage `json:"cwd,omitempty"`
	}{p.ID, filepath.ToSlash(dir), argv, fields["args"], fields["env"], fields["cwd"]})
}

// leadsOutside reports whether a word of a command is a relative path that
// leaves the folder.
func leadsOutside(word string) bool {
	return strings.Contains(word, "..") && strings.ContainsAny(word, `/\`) &&
		!filepath.IsAbs(word) && !filepath.IsLocal(filepath.FromSlash(word))
}
