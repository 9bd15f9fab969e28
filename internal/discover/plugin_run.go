package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// describeFlag is the argument that asks a script for its declarations.
const describeFlag = "--toolreg-describe"

// envPlugin is the variable with the plugin's id. The programs also receive
// TOOLREG_TOOL and TOOLREG_PROJECT_ROOT.
const envPlugin = "TOOLREG_PLUGIN"

// runDeclaring adds the declarations of the factory or script.
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
	spec := process.Spec{MaxOutput: p.opts.Limits.Output, Grace: callGrace, Linger: callLinger}
	params, _ := readObject(call.Params) // validated; without params it is empty
	spec.Argv, spec.Dir, spec.Env = m.apply(argv, p.Dir, p.opts.ProjectRoot, p.environ(d.original), params)
	if m.args == nil {
		if spec.Stdin = call.Params; spec.Stdin == nil {
			spec.Stdin = []byte("{}")
		}
	}
	stream(&spec, d, isResult, call)
	start := time.Now()
	o, err := process.ConfinementOf(ctx).Run(ctx, spec)
	if err == nil && succeeded(o) {
		o.Stderr, o.StderrHead, o.StderrBytes = nil, 0, 0
		if isResult {
			return wholeResult(ctx, o.Stdout, p.opts.ProjectRoot, d.definition.OutputSchema), nil
		}
	}
	result := callResult(o, limited(err, p.opts.Limits.Output), d.definition.Name)
	switch {
	case result.IsError && ctx.Err() != nil:
		result.ErrorCategory = interrupted(ctx.Err())
	case !result.IsError && len(d.definition.OutputSchema) > 0:
		result = structured(ctx, d.definition.OutputSchema, o.Stdout, result)
	}
	result.Duration = time.Since(start)
	return result, nil
}

// structured checks a tool's output against the output schema that it declares.
func structured(ctx context.Context, schema json.RawMessage, stdout []byte, result registry.Result) registry.Result {
	output := registry.NewOutputValidator(schema)
	if !output.Judges(ctx) {
		return result
	}
	doc := trim(stdout)
	refused := func(format string, args ...any) registry.Result {
		return refusedOutput(registry.Ran+fmt.Sprintf(format, args...), result.Text())
	}
	if err := registry.CheckJSON(doc); err != nil {
		return refused("the tool declares an outputSchema but did not print a JSON object: %s", err)
	}
	if doc[0] != '{' {
		return refused("the tool declares an outputSchema but printed %s, not a JSON object", jsonx.KindOf(doc))
	}
	if violations, err := output.Validate(ctx, doc); err == nil && len(violations) > 0 {
		return refused("the tool's output does not match its outputSchema: %s%s",
			place(violations[0].Pointer), violations[0].Message)
	}
	result.Structured = doc
	return result
}
