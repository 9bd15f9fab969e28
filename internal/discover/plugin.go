package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
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
	if raw := d.fields["command"]; isPresent(raw) {
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

// Discover returns the tools of the manifest and of the factory or script. If a
// factory fails, this is a diagnostic if the manifest also declares tools, and an
// error of the source otherwise.
func (p *plugin) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if len(p.Problems) > 0 {
		cause := &document.Error{Problems: p.Problems} // each problem names its file
		return nil, nil, sourceFailed(cause, "%s: %s", p.Name(), cause)
	}
	found := &declarations{source: p.Name(), limits: p.opts.Limits}
	for i, o := range p.tools {
		if problems := p.bad[i]; len(problems) > 0 {
			name, _ := jsonx.Text(o["name"]) // the schema checks the type
			found.quarantine(name, (&document.Error{Problems: problems}).Error(),
				"toolreg plugins check shows every mistake")
			continue
		}
		// raw is nil: the document has no duplicate keys.
		found.declare(fmt.Sprintf("tool %d of %s", i+1, p.Path), o, nil)
	}
	if _, more := p.Tools(); more && !p.opts.Disabled {
		err := p.runDeclaring(ctx, found)
		switch {
		case err != nil && len(p.tools) == 0:
			return nil, nil, p.fail(err)
		case err != nil:
			found.diagnose(registry.SeverityError, "factory_failed", "",
				p.fail(err).Error(), "the tools of its manifest are registered")
		}
	}
	tools := make([]registry.Tool, len(found.tools))
	for i := range found.tools {
		tools[i] = p.tool(ctx, found, &found.tools[i])
	}
	return tools, found.diagnostics(), nil
}

// tool converts a declaration to a tool. A tool that cannot be run is quarantined.
func (p *plugin) tool(ctx context.Context, found *declarations, d *declaration) (t registry.Tool) {
	def := d.definition
	def.Source, def.Plugin = p.Name(), p.ID
	def.Version = cmp.Or(def.Version, p.Version)
	def.Author = cmp.Or(def.Author, p.Author)
	argv, m, r, err := p.reads(d)
	if err != nil && d.quarantine == nil {
		found.spoil(d, err, "")
	}
	t.Definition, t.Identity, t.Declared, t.Quarantine = def, p.identity(argv, d.fields), p.Path, d.quarantine
	t.Program, t.Folder = registry.ProgramPlugins, p.Dir
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return p.run(ctx, argv, m, d, r.isResult, call)
	}
	t.Check = func(_ context.Context, call registry.Call) error {
		params, _ := readObject(call.Params) // validated
		if wrong := m.checkParams(params); len(wrong) > 0 {
			return &registry.ArgsError{Tool: def.Name, Violations: wrong}
		}
		return nil
	}
	r.apply(ctx, &t, p.Path, p.opts.Context)
	return t
}

// describeFlag is the argument that asks a script for its declarations.
const describeFlag = "--toolreg-describe"

// envPlugin is the variable with the plugin's id. The programs also receive
// TOOLREG_TOOL and TOOLREG_PROJECT_ROOT.
const envPlugin = "TOOLREG_PLUGIN"

func (p *plugin) runDeclaring(ctx context.Context, found *declarations) error {
	argv, what := p.factory, "factory"
	if p.script {
		argv, what = []string{p.Path, describeFlag}, describeFlag
		found.unnamed = p.ID
	}
	stdin, err := p.facts(ctx)
	if err != nil {
		return err
	}
	i := Invocation{Argv: argv, Dir: p.Dir, Env: p.environ(""), Stdin: stdin}
	if err := i.readOutput(ctx, &p.opts.Options, found.printed); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// facts returns the context together with the settings of this plugin.
func (p *plugin) facts(ctx context.Context) ([]byte, error) {
	var own json.RawMessage
	if p.opts.Settings != nil {
		var err error
		if own, err = p.opts.Settings(ctx); err != nil {
			return nil, fmt.Errorf("plugins.settings.%s: %w", p.ID, err)
		}
	}
	facts := map[string]json.RawMessage{}
	if err := json.Unmarshal(p.opts.Context, &facts); err != nil {
		return nil, fmt.Errorf("reading the context: %w", err)
	}
	id, err := json.Marshal(p.ID)
	if err != nil {
		return nil, err
	}
	facts["plugin"] = id
	if len(own) > 0 {
		facts["settings"] = own
	}
	return json.Marshal(facts)
}

func (p *plugin) environ(tool string) []string {
	env := append(slices.Clone(p.opts.Env), envProjectRoot+"="+p.opts.ProjectRoot, envPlugin+"="+p.ID)
	if tool != "" {
		env = append(env, envTool+"="+tool)
	}
	return env
}

// printed adds the declarations in a factory's output: one, a list, or null for
// none.
func (d *declarations) printed(stdout []byte) error {
	data := trim([]byte(decode(stdout)))
	switch {
	case len(data) == 0:
		return errors.New(
			"it printed nothing on stdout; it should print a declaration, a list of them, or null for none")
	case string(data) == "null":
		return nil
	case data[0] == '{':
		var syntax *json.SyntaxError // with its offset in the program's output, without the bracket added here
		if errors.As(json.Unmarshal(data, new(json.RawMessage)), &syntax) && jsonx.Depth(data) <= readable {
			return notJSON(data, syntax)
		}
		data = slices.Concat([]byte("["), data, []byte("]"))
	}
	items, err := readArray(data)
	if err != nil {
		return err
	}
	for i, item := range items {
		d.function(fmt.Sprintf("item %d", i+1), item)
	}
	return nil
}

// run makes one call. The program's stderr is used only if it fails.
func (p *plugin) run(ctx context.Context, argv []string, m mapping,
	d *declaration, isResult bool, call registry.Call) (registry.Result, error) {
	var spec process.Spec
	params, _ := readObject(call.Params) // validated; without params it is empty
	spec.Argv, spec.Dir, spec.Env = m.apply(argv, p.Dir, p.opts.ProjectRoot, p.environ(d.original), params)
	if m.args == nil {
		spec.Stdin = paramsOf(call)
	}
	return p.opts.runTool(ctx, &spec, d, isResult, false, call), nil
}
