package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

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
