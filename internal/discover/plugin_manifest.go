package discover

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

//go:embed plugin.schema.json
var pluginSchema string

// PluginSchema returns the JSON Schema of a plugin's manifest.
func PluginSchema() json.RawMessage { return json.RawMessage(pluginSchema) }

// manifestNames are the possible file names of a manifest. Only one may exist.
func manifestNames() []string { return []string{"plugin.yaml", "plugin.yml", "plugin.json"} }

// readManifest reads the manifest of the plugin in p.Dir and records all
// mistakes.
func (p *Plugin) readManifest(ctx context.Context, schema *registry.Validator) {
	doc, problems := document.Read(p.Path)
	if doc == nil {
		p.Problems = append(p.Problems, problems...)
		return
	}
	p.Sum = doc.Sum
	p.assignProblems(doc, problems)
	raw := doc.JSON()
	violations, err := schema.Validate(ctx, raw)
	if err != nil {
		p.Problems = append(p.Problems, document.Problem{File: p.Path, Message: err.Error()})
		return
	}
	for _, v := range violations {
		p.problem(doc, v.Pointer, v.Message, remedy(v))
	}
	p.readFields(raw)
	p.checkCommands(doc)
	p.Problems = document.SortProblems(p.Problems)
}

// assignProblems assigns the problems of the document to its tools, and the others to the
// plugin.
func (p *Plugin) assignProblems(doc *document.Document, problems []document.Problem) {
	ofTools := map[document.Problem]bool{}
	for i, tool := range doc.Root.Get("tools").Elements() {
		for _, problem := range doc.ProblemsIn(tool) {
			p.rejectTool(i, problem)
			ofTools[problem] = true
		}
	}
	for _, problem := range problems {
		if !ofTools[problem] {
			p.Problems = append(p.Problems, problem)
		}
	}
}

func (p *Plugin) rejectTool(i int, problem document.Problem) {
	if p.bad == nil {
		p.bad = map[int][]document.Problem{}
	}
	p.bad[i] = append(p.bad[i], problem)
}

// readFields reads the fields that have the right type; the schema reports the others.
func (p *Plugin) readFields(raw json.RawMessage) {
	o, ok := readObject(raw)
	if !ok {
		return
	}
	into := func(field string, v any) bool { return isPresent(o[field]) && json.Unmarshal(o[field], v) == nil }
	if id := ""; into("id", &id) && IsPluginID(id) {
		p.ID = id
	}
	into("version", &p.Version)
	into("author", &p.Author)
	into("description", &p.Description)
	into("factory", &p.factory)
	into("call", &p.call)
	tools, _ := jsonx.Elements(o["tools"])
	for _, raw := range tools {
		tool, _ := readObject(raw)
		p.tools = append(p.tools, tool)
	}
	if raw := o["timeout"]; isPresent(raw) {
		if d, err := readDuration(raw); err == nil {
			p.timeout = d
		}
	}
}

// IsPluginID reports whether a text is a valid plugin id: letters, digits, "_",
// "." and "-", at most 63, beginning with a letter or digit.
func IsPluginID(id string) bool {
	return len(id) <= 63 && registry.ValidName(id) == id && id != "" && !strings.ContainsAny(id[:1], "._-")
}

func placeOf(pointer string) string {
	if pointer == "" {
		return ""
	}
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".") + ": "
}

// remedy returns a hint on what to write instead, if the message of a violation
// does not say it.
func remedy(v registry.Violation) string {
	switch {
	case strings.HasSuffix(v.Pointer, "/timeout"):
		return `expected whole milliseconds or a duration such as "30s", 0 or more`
	case strings.HasPrefix(v.Expected, "one of "): // the names of properties
		return "expected " + v.Expected
	case strings.HasPrefix(v.Message, "expected string, but got number"),
		strings.HasPrefix(v.Message, "expected string, but got boolean"):
		return "put it in quotes"
	}
	return ""
}

// checkCommands checks rules that the schema cannot express: a plugin's programs
// must be in its own folder, or those of its tools in the project, so that trust
// covers them.
func (p *Plugin) checkCommands(doc *document.Document) {
	check := func(pointer string, argv []string, inside func(i int, word string) bool) {
		for i, word := range argv {
			at := fmt.Sprintf("%s/%d", pointer, i)
			switch {
			case i == 0 && word == "":
				p.problem(doc, at, "the program's name is empty", "")
			case !leadsOutside(word) || inside(i, word):
			case p.Root == "":
				p.problem(doc, at, fmt.Sprintf("%q leads outside the plugin's folder", word),
					"keep what the plugin runs inside it; only the command of a tool in a project's plugin may be elsewhere in the project")
			default:
				p.problem(doc, at, fmt.Sprintf("%q leads outside the project", word),
					"keep what the plugin runs inside the project")
			}
		}
	}
	own := func(int, string) bool { return false }
	check("/factory", p.factory, own)
	check("/call", p.call, own)
	for i, o := range p.tools {
		var argv []string
		pointer := fmt.Sprintf("/tools/%d", i)
		switch {
		case o == nil: // reported by the schema
		case !isPresent(o["command"]) && p.call == nil:
			p.problem(doc, pointer, "the tool has no command, and the plugin has no call command",
				`add command: [./run.sh]`)
		case isPresent(o["command"]) && json.Unmarshal(o["command"], &argv) == nil:
			cwd, _ := jsonx.Text(o["cwd"]) // the schema checks the type
			check(pointer+"/command", argv, func(i int, word string) bool {
				from := p.Dir
				if i > 0 && cwd == "project" {
					from = p.Root
				}
				rel, err := filepath.Rel(p.Root, filepath.Join(from, filepath.FromSlash(word)))
				return p.Root != "" && err == nil && filepath.IsLocal(rel)
			})
		}
	}
	if len(p.Problems) == 0 && len(p.tools) == 0 && p.factory == nil {
		p.problem(doc, "", "the plugin has neither tools nor a factory", "")
	}
}

// checkTools finds unusable schemas, examples that violate them, invalid conditions
// and name conflicts.
func (p *Plugin) checkTools(ctx context.Context, doc *document.Document) {
	seen := map[string]bool{}
	for i, o := range p.tools {
		at := fmt.Sprintf("/tools/%d", i)
		name, _ := jsonx.Text(o["name"]) // the schema checks the types
		version, _ := jsonx.Text(o["version"])
		version = cmp.Or(version, p.Version)
		if key := registry.ValidName(name) + "@" + version; name != "" && seen[key] {
			p.problem(doc, at+"/name", fmt.Sprintf("a second tool %q of version %q", name, version),
				"give it another name or version")
		} else {
			seen[key] = true
		}
		for _, field := range []string{"channels", "when", "timeout", "output", "confirm"} {
			alone := object{field: o[field]}
			if _, err := readRunning(alone, 0, nil); err != nil {
				p.fieldProblem(doc, at+"/"+field, err.Error())
			}
		}
		if _, field, err := readMapping(o); err != nil {
			p.fieldProblem(doc, at+field, err.Error())
		}
		p.checkSchemas(ctx, doc, at, o)
	}
}

func (p *Plugin) checkSchemas(ctx context.Context, doc *document.Document, at string, o object) {
	for field, d := range map[string]registry.Definition{
		"parameters": {InputSchema: o["parameters"]}, "outputSchema": {OutputSchema: o["outputSchema"]}} {
		for _, found := range registry.Settle([]registry.Tool{{Definition: d}}) {
			p.fieldProblem(doc, at+"/"+field, strings.TrimSuffix(found.Message, registry.LeftOut))
		}
		if _, err := registry.NewValidator(o[field]).Compile(ctx); err != nil && isPresent(o[field]) {
			p.fieldProblem(doc, at+"/"+field, "the schema cannot be used: "+err.Error())
		}
	}
	validator := registry.NewValidator(o["parameters"])
	examples, _ := jsonx.Elements(o["examples"])
	for i, raw := range examples {
		e, ok := readObject(raw)
		if !ok || !isPresent(e["params"]) {
			continue // reported by the manifest's schema
		}
		violations, err := validator.Validate(ctx, e["params"])
		if err != nil {
			p.fieldProblem(doc, at+"/parameters", "the schema cannot be used: "+err.Error())
		}
		for _, v := range violations {
			p.problem(doc, fmt.Sprintf("%s/examples/%d/params%s", at, i, v.Pointer),
				"the example does not match the tool's own schema: "+placeOf(v.Pointer)+v.Message, "")
		}
	}
}

// fieldProblem records a problem with a field of a tool, unless the manifest's schema
// has already reported it.
func (p *Plugin) fieldProblem(doc *document.Document, pointer, message string) {
	at := doc.Problem(pointer, "", "")
	for _, problems := range p.bad {
		for _, b := range problems {
			if b.Line == at.Line && b.Col == at.Col {
				return
			}
		}
	}
	p.problem(doc, pointer, message, "")
}

func (p *Plugin) problem(doc *document.Document, pointer, message, hint string) {
	problem := doc.Problem(pointer, placeOf(pointer)+message, hint)
	if rest, ok := strings.CutPrefix(pointer, "/tools/"); ok {
		index, _, _ := strings.Cut(rest, "/")
		if i, err := strconv.Atoi(index); err == nil {
			p.rejectTool(i, problem)
			return
		}
	}
	p.Problems = append(p.Problems, problem)
}

// Check returns all mistakes in order of position: those that disable the plugin or
// one of its tools, and those that would appear only in a call, such as an unusable
// schema or an example that violates it.
func (p *Plugin) Check(ctx context.Context) []document.Problem {
	q := *p
	q.bad = maps.Clone(p.bad)
	if doc, _ := document.Read(p.Path); doc != nil && p.Sum == doc.Sum {
		q.checkTools(ctx, doc)
	}
	return document.SortProblems(append(slices.Clone(q.Problems), q.LeftOut()...))
}

// LeftOut returns the problems that disable single tools.
func (p *Plugin) LeftOut() []document.Problem {
	var out []document.Problem
	for _, problems := range p.bad {
		out = append(out, problems...)
	}
	return document.SortProblems(out)
}

// Lint reports problems that do not disable a plugin: programs that are not found in
// env, without which calls fail, and, as warnings, tools without a description or
// params and names of built-in tools. builtin returns the built-in tool that has a
// name, or "". Lint runs nothing.
func (p *Plugin) Lint(env []string, builtin func(name string) string) (missing, warnings []document.Problem) {
	doc, _ := document.Read(p.Path)
	at := func(pointer, message, hint string) document.Problem {
		if doc == nil {
			return document.Problem{File: p.Path, Message: message, Hint: hint}
		}
		return doc.Problem(pointer, placeOf(pointer)+message, hint)
	}
	program := func(pointer string, argv []string) {
		if len(argv) == 0 {
			return
		}
		_, err := process.Spec{Argv: argv, Dir: p.Dir, Env: env}.Program()
		if start := (*process.StartError)(nil); errors.As(err, &start) {
			missing = append(missing, at(pointer, fmt.Sprintf("program %q: %s", argv[0], start.Err),
				"a program in the plugin's folder is written ./NAME and must be executable"))
		}
	}
	program("/factory", p.factory)
	program("/call", p.call)
	for i, o := range p.tools {
		if o == nil {
			continue // not an object
		}
		tool := fmt.Sprintf("/tools/%d", i)
		var argv []string
		if json.Unmarshal(o["command"], &argv) == nil {
			program(tool+"/command", argv)
		}
		if name, _ := jsonx.Text(o["name"]); builtin(name) != "" {
			warnings = append(warnings, at(tool+"/name",
				fmt.Sprintf("%q is a name of the built-in tool %s, so the tool is ignored unless excludeTools lists that one",
					name, builtin(name)),
				"give it another name"))
		}
		for _, field := range []string{"description", "parameters"} {
			if !isPresent(o[field]) {
				warnings = append(warnings, at(tool, "the tool has no "+field, "models choose and call tools by them"))
			}
		}
	}
	return document.SortProblems(missing), document.SortProblems(warnings)
}
