package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Plugin is a plugin as it was found on disk: its manifest was read, nothing of
// it ran. A script alone is a plugin too: its id is the file's name without
// ending.
type Plugin struct {
	ID          string
	Version     string
	Author      string
	Description string
	Dir         string // where its commands run, absolute
	Path        string // the manifest or the script alone, absolute; Dir where there is neither
	Sum         string // sha256 of the manifest's bytes, hex; "" without one
	Place       string // what names the folder it is in, for messages
	// Problems is what is wrong with it as a whole, in order of place. A plugin
	// with any gives no tools. What is wrong with one tool costs that tool alone.
	Problems []document.Problem

	script  bool                       // Path answers --toolreg-describe
	factory []string                   // argv; nil = none
	call    []string                   // argv to which the tool's name is appended; nil = none
	timeout time.Duration              // of tools that name none
	tools   []object                   // declared in the manifest; nil for one that is no object
	bad     map[int][]document.Problem // what is wrong with a tool, by its index
}

// Tools returns how many tools the manifest declares, and whether there may be
// more: those of a factory or script.
func (p *Plugin) Tools() (n int, more bool) { return len(p.tools), p.script || p.factory != nil }

// PluginOptions say how plugins run.
type PluginOptions struct {
	// Context is a JSON object: what factories get on stdin and conditions are
	// about (spec section 6.2).
	Context json.RawMessage
	// Settings gives the plugin's own settings as JSON at the moment of use; nil,
	// or a nil result: it has none.
	Settings func(context.Context) (json.RawMessage, error)
	// ProjectRoot is told to the plugin's programs. Absolute.
	ProjectRoot string
	// Env is the whole environment of the plugin's programs, to which
	// TOOLREG_TOOL, TOOLREG_PLUGIN and TOOLREG_PROJECT_ROOT are added.
	Env []string
	// Disabled keeps factories and scripts from being run: what the manifest
	// declares is all there is.
	Disabled bool
	// Timeout bounds a factory or description; 0 means no limit (setting
	// toolDiscoveryTimeout).
	Timeout time.Duration
	// MaxDiscovery bounds stdout and stderr of a factory each, in bytes; 0 means
	// 10 MiB (setting limits.discoveryOutput).
	MaxDiscovery int64
	// MaxOutput bounds stdout and stderr of a call each, in bytes; 0 means 64 MiB
	// (setting limits.result).
	MaxOutput int64
	// MaxTools bounds the number of tools; 0 means 10,000 (setting limits.tools).
	MaxTools int
	// Outputs keeps what a factory or description prints. nil: it is run each time.
	Outputs Outputs
}

// NewPlugin returns the source of a plugin's tools. Its name is "plugin:ID". It
// holds no resources and starts nothing before Discover. A plugin with problems
// fails with all of them, one a line.
func NewPlugin(p *Plugin, opts PluginOptions) registry.Source {
	if opts.MaxTools == 0 {
		opts.MaxTools = DefaultMaxTools
	}
	if opts.MaxOutput == 0 {
		opts.MaxOutput = DefaultMaxOutput
	}
	if opts.MaxDiscovery == 0 {
		opts.MaxDiscovery = process.DefaultMaxOutput
	}
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

// Discover reads what the manifest declares and what the factory or script
// prints. A factory that fails is a diagnostic where the manifest declares
// tools too, else the failure of the source.
func (p *plugin) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if len(p.Problems) > 0 {
		cause := &settings.Error{Problems: p.Problems} // each names its file
		return nil, nil, &failure{text: fmt.Sprintf("%s: %s", p.Name(), cause), cause: cause}
	}
	found := &declarations{source: p.Name(), maxTools: p.opts.MaxTools}
	for i, o := range p.tools {
		if problems := p.bad[i]; len(problems) > 0 {
			var name string
			_ = json.Unmarshal(o["name"], &name) // the schema has seen to the type
			found.quarantine(name, (&settings.Error{Problems: problems}).Error(), "toolreg plugins check shows every mistake")
			continue
		}
		found.declare(fmt.Sprintf("tool %d of %s", i+1, p.Path), o, nil) // the document has no key twice
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

// fail says which plugin failed and where it is.
func (p *plugin) fail(cause error) error {
	return &failure{text: fmt.Sprintf("%s (%s): %s", p.Name(), p.Path, cause), cause: cause}
}

// tool makes a tool of a declaration; one that cannot be run is quarantined.
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
	t.Unmet = c.unmet(ctx, p.opts.Context)
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return p.run(ctx, argv, d, r.isResult, call)
	}
	r.apply(&t, p.Path)
	return t
}

// reads reads how a tool is run, and where it is there at all.
func (p *plugin) reads(d *declaration) (argv []string, r running, c condition, err error) {
	if argv, err = p.command(d); err != nil {
		return nil, r, c, err
	}
	if r, err = readRunning(d.fields, p.timeout); err != nil {
		return nil, r, c, err
	}
	c, err = readCondition(d.fields)
	return argv, r, c, err
}

// command returns the argv that runs a tool: its own, or the plugin's with the
// tool's name behind it.
func (p *plugin) command(d *declaration) ([]string, error) {
	if raw := d.fields["command"]; present(raw) {
		var argv []string
		if json.Unmarshal(raw, &argv) != nil || len(argv) == 0 || argv[0] == "" {
			return nil, fmt.Errorf("its command is not a list of words")
		}
		return argv, nil
	}
	if p.call == nil {
		return nil, fmt.Errorf("it has no command, and the plugin has no call command")
	}
	return append(p.call[:len(p.call):len(p.call)], d.original), nil
}

// readDuration reads whole milliseconds or text such as "30s".
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

// identity is what stands behind a tool of this plugin: an approval holds for
// this command in this folder alone.
func (p *plugin) identity(argv []string) json.RawMessage {
	data, err := json.Marshal(struct {
		Plugin  string   `json:"plugin"`
		Dir     string   `json:"dir"`
		Command []string `json:"command"`
	}{p.ID, filepath.ToSlash(p.Dir), argv})
	if err != nil {
		return json.RawMessage("null") // strings always encode
	}
	return data
}
