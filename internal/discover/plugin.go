package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Plugin is a plugin found on disk. Its manifest was read, but nothing was run.
// A single script is a plugin too; its id is the file name without extension.
type Plugin struct {
	ID          string
	Version     string
	Author      string
	Description string
	Dir         string // absolute path where its commands run
	Path        string // absolute path of the manifest or script; Dir if there is neither
	Sum         string // sha256 of the manifest in hex; "" if there is none
	Place       string // the place of its folder, for messages
	// Problems are the mistakes in the plugin as a whole, in order of position.
	// A plugin with any has no tools. Mistakes in one tool affect only that
	// tool.
	Problems []document.Problem

	script  bool                       // Path answers --toolreg-describe
	factory []string                   // argv; nil = none
	call    []string                   // argv to which the tool's name is appended; nil = none
	timeout time.Duration              // of tools without their own
	tools   []object                   // declared in the manifest; nil for one that is not an object
	bad     map[int][]document.Problem // mistakes in a tool by its index
}

// Tools returns how many tools the manifest declares, and whether there may be
// more from a factory or script.
func (p *Plugin) Tools() (n int, more bool) { return len(p.tools), p.script || p.factory != nil }

// PluginOptions are the options of plugins.
type PluginOptions struct {
	// Context is the JSON object that factories receive on stdin and that
	// conditions refer to (spec section 6.2).
	Context json.RawMessage
	// Settings returns the plugin's own settings as JSON when they are used.
	// nil, or a nil result: it has none.
	Settings func(context.Context) (json.RawMessage, error)
	// ProjectRoot is the absolute path that the plugin's programs receive.
	ProjectRoot string
	// Env is the whole environment of the plugin's programs, to which
	// TOOLREG_TOOL, TOOLREG_PLUGIN and TOOLREG_PROJECT_ROOT are added.
	Env []string
	// Disabled prevents factories and scripts from running; only tools of the
	// manifest are declared.
	Disabled bool
	// Timeout limits a factory or description; 0 means no limit (setting
	// toolDiscoveryTimeout).
	Timeout time.Duration
	Limits  Limits
	// Confine confines factories and scripts; nil: they are not confined.
	Confine process.Confiner
	// Outputs caches the output of factories and scripts. nil: they always run.
	Outputs Outputs
	// Evaluator evaluates the expressions of declarations; see [jq.Expression.Apart].
	Evaluator []string
}

// NewPlugin returns the source of a plugin's tools. Its name is "plugin:ID". It
// holds no resources and starts nothing before Discover. A plugin with problems
// fails with all of them, one per line.
func NewPlugin(p *Plugin, opts PluginOptions) registry.Source {
	opts.Limits = opts.Limits.orDefault()
	if len(opts.Context) == 0 {
		opts.Context = json.RawMessage("{}")
	}
	return &plugin{Plugin: p, opts: opts}
}

type plugin struct {
	*Plugin
	opts PluginOptions
}

// Name returns "plugin:ID".
func (p *plugin) Name() string { return registry.PluginPrefix + p.ID }

// Discover returns the tools of the manifest and of the factory or script. A
// factory that fails is a diagnostic if the manifest declares tools too, and a
// failure of the source otherwise.
func (p *plugin) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if len(p.Problems) > 0 {
		cause := &settings.Error{Problems: p.Problems} // each problem names its file
		return nil, nil, &failure{text: fmt.Sprintf("%s: %s", p.Name(), cause), cause: cause}
	}
	found := &declarations{source: p.Name(), limits: p.opts.Limits}
	for i, o := range p.tools {
		if problems := p.bad[i]; len(problems) > 0 {
			var name string
			_ = json.Unmarshal(o["name"], &name) // the schema checks the type
			found.quarantine(name, (&settings.Error{Problems: problems}).Error(), "toolreg plugins check shows every mistake")
			continue
		}
		found.declare(fmt.Sprintf("tool %d of %s", i+1, p.Path), o, nil) // the document has no duplicate keys
	}
	if _, more := p.Tools(); more && !p.opts.Disabled {
		err := p.runDeclaring(ctx, found)
		switch {
		case err != nil && len(p.tools) == 0:
			return nil, nil, p.fail(err)
		case err != nil:
			found.diagnose(registry.SeverityError, "factory_failed", "", p.fail(err).Error(), "the tools of its manifest are registered")
		}
	}
	tools := make([]registry.Tool, len(found.tools))
	for i := range found.tools {
		tools[i] = p.tool(ctx, found, &found.tools[i])
	}
	return tools, found.diagnostics(), nil
}

// fail returns an error that names the plugin and its place.
func (p *plugin) fail(cause error) error {
	return &failure{text: fmt.Sprintf("%s (%s): %s", p.Name(), p.Path, cause), cause: cause}
}

// tool converts a declaration to a tool; one that cannot be run is quarantined.
func (p *plugin) tool(ctx context.Context, found *declarations, d *declaration) (t registry.Tool) {
	def := d.definition
	def.Source, def.Plugin = p.Name(), p.ID
	if def.Version == "" {
		def.Version = p.Version
	}
	if def.Author == "" {
		def.Author = p.Author
	}
	argv, r, c, err := p.reads(d)
	if err != nil && d.quarantine == nil {
		found.spoil(d, err)
	}
	t.Definition, t.Identity, t.Declared, t.Quarantine = def, p.identity(argv), p.Path, d.quarantine
	t.Program, t.Folder = registry.ProgramPlugins, p.Dir
	t.Unmet = c.unmet(ctx, p.opts.Context)
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return p.run(ctx, argv, d, r.isResult, call)
	}
	r.apply(&t, p.Path)
	return t
}

// reads reads how a tool runs, and under which conditions it is enabled.
func (p *plugin) reads(d *declaration) (argv []string, r running, c condition, err error) {
	if argv, err = p.command(d); err != nil {
		return nil, r, c, err
	}
	if r, err = readRunning(d.fields, p.timeout, p.opts.Evaluator); err != nil {
		return nil, r, c, err
	}
	c, err = readCondition(d.fields, p.opts.Evaluator)
	return argv, r, c, err
}

// command returns the argv that runs a tool: its own, or the plugin's followed
// by the tool's name.
func (p *plugin) command(d *declaration) ([]string, error) {
	if raw := d.fields["command"]; present(raw) {
		var argv []string
		if json.Unmarshal(raw, &argv) != nil || len(argv) == 0 || argv[0] == "" {
			return nil, fmt.Errorf("its command is not a list of words")
		}
		// Trust does not cover what a factory names outside the folder.
		if i := slices.IndexFunc(argv, leadsOutside); i >= 0 {
			return nil, fmt.Errorf("its command: %q leads outside the plugin's folder", argv[i])
		}
		return argv, nil
	}
	if p.call == nil {
		return nil, fmt.Errorf("it has no command, and the plugin has no call command")
	}
	return append(p.call[:len(p.call):len(p.call)], d.original), nil
}

// readDuration reads an integer in milliseconds or text such as "30s".
func readDuration(raw json.RawMessage) (time.Duration, error) {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	var ms int64
	if json.Unmarshal(raw, &ms) == nil && ms >= 0 && ms <= most {
		return time.Duration(ms) * time.Millisecond, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return d, nil
		}
	}
	return 0, fmt.Errorf(`not milliseconds, 0 or more, or a duration such as "30s"`)
}

// identity returns the identity of a tool of this plugin, so that an approval
// applies only to this command in this folder. A folder of the project is
// relative to its root, because a lock file is for everybody's copy of it.
func (p *plugin) identity(argv []string) json.RawMessage {
	dir := p.Dir
	if rel, err := filepath.Rel(p.opts.ProjectRoot, dir); err == nil && filepath.IsLocal(rel) {
		dir = rel
	}
	if p.script && len(argv) > 0 && argv[0] == p.Path {
		argv = append([]string{filepath.Base(p.Path)}, argv[1:]...)
	}
	data, err := json.Marshal(struct {
		Plugin  string   `json:"plugin"`
		Dir     string   `json:"dir"`
		Command []string `json:"command"`
	}{p.ID, filepath.ToSlash(dir), argv})
	if err != nil {
		return json.RawMessage("null") // cannot happen: strings always encode
	}
	return data
}
