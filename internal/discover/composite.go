package discover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// maxRun is the maximum number of steps of one call, including those of nested
// composites.
const maxRun = 1000

// CompositeOptions are the options of composites.
type CompositeOptions struct {
	// Context is the JSON object that expressions access as .context.
	Context json.RawMessage
	// ProjectRoot is the folder that the paths of scripts are relative to.
	ProjectRoot string
	// Evaluator evaluates the expressions of projects' composites; see
	// [jq.Expression.Isolated].
	Evaluator []string
}

// Composites is the source of the tools in the setting composites. They are checked
// as far as possible without knowing the other tools.
type Composites struct {
	list []*composite
	opts CompositeOptions
}

// composite is a tool that calls other tools.
type composite struct {
	named      settings.Named
	definition registry.Definition
	steps      []step
	result     *jq.Expression // if nil, the results of the successful steps are joined
	file       string         // of the script that runs instead of steps; "" if there are steps
	script     []byte
	problems   []document.Problem
}

// err returns why the composite is quarantined, or nil if it is valid.
func (c *composite) err() error { return document.NewError(c.problems) }

type step struct {
	tool            string
	params          *jq.Expression // if nil, those of the composite
	when            *jq.Expression // if nil, the step always runs
	continueOnError bool
}

// identity identifies what runs: the entry, and the content of its script.
func (c *composite) identity() json.RawMessage {
	if c.file == "" {
		return c.named.JSON()
	}
	sum := sha256.Sum256(c.script)
	return append(append(json.RawMessage{}, c.named.JSON()...), hex.EncodeToString(sum[:])...)
}

// Name returns "composite".
func (c *Composites) Name() string { return registry.SourceComposite }

// Resolve quarantines composites with a step whose tool does not exist, and reports
// whether there are any. lookup looks up a name in the registry of all sources. excused is
// called with the error of lookup for each such step, and returns true to accept the step.
func (c *Composites) Resolve(lookup func(name string) error,
	excused func(document.Problem, error) bool) (missing bool) {
	for _, one := range c.list {
		if one.err() != nil {
			continue
		}
		for i, s := range one.steps {
			err := lookup(s.tool)
			if err == nil {
				continue
			}
			p := one.problem(fmt.Sprintf("/steps/%d/tool", i), err.Error(), "")
			if !excused(p, err) {
				one.problems, missing = append(one.problems, p), true
			}
		}
	}
	return missing
}

// problem returns a mistake at a position in the composite's entry.
func (c *composite) problem(pointer, message, hint string) document.Problem {
	return c.named.Problem("composites", pointer, message, hint)
}

const noCycles = "a composite cannot call itself, directly or through others"

func (c *Composites) findCycles() {
	byName := map[string]*composite{}
	for _, one := range c.list {
		byName[one.named.Name] = one
		byName[registry.ValidName(one.named.Name)] = one
	}
	const open, done = 1, 2
	state := map[*composite]int{}
	var check func(one *composite)
	check = func(one *composite) {
		state[one] = open
		for i, s := range one.steps {
			next := byName[s.tool]
			switch {
			case next == nil || state[next] == done:
			case state[next] == open:
				one.problems = append(one.problems, one.problem(fmt.Sprintf("/steps/%d/tool", i),
					fmt.Sprintf("%q calls this composite again", s.tool), noCycles))
			default:
				check(next)
			}
		}
		state[one] = done
	}
	for _, one := range c.list {
		if state[one] == 0 {
			check(one)
		}
	}
}

// ParseComposites parses the entries of the setting composites. A composite
// with mistakes, such as unknown keys, wrong types, invalid expressions or a
// call of itself, is quarantined.
func ParseComposites(ctx context.Context, entries []settings.Named, opts CompositeOptions) *Composites {
	out := &Composites{opts: opts}
	for _, n := range entries {
		r := compositeReader{named: n, root: opts.ProjectRoot}
		if n.Origin.Scope == settings.ScopeProject {
			r.evaluator = opts.Evaluator
		}
		c := r.read(ctx)
		c.problems = document.SortProblems(r.problems)
		out.list = append(out.list, c)
	}
	out.findCycles()
	return out
}

// compositeReader parses one entry of composites and collects its mistakes.
type compositeReader struct {
	named     settings.Named
	root      string   // see [CompositeOptions.ProjectRoot]
	evaluator []string // see [CompositeOptions.Evaluator]
	problems  []document.Problem
}

func (r *compositeReader) fail(pointer, message, hint string) {
	r.problems = append(r.problems, r.named.Problem("composites", pointer, message, hint))
}

// read returns the composite, which is usable only if there are no problems. It
// continues after mistakes in the settings as far as possible, so that all are
// reported at once.
func (r *compositeReader) read(ctx context.Context) *composite {
	c := &composite{named: r.named, definition: registry.Definition{
		Name: r.named.Name, Source: registry.SourceComposite, Category: registry.CategoryOther,
	}}
	r.problems = slices.Clone(r.named.Problems)
	o, ok := readObject(r.named.JSON())
	if !ok {
		return c // reported by the settings
	}
	r.define(ctx, &c.definition, o)
	steps, _ := jsonx.Elements(o["steps"])
	for i, raw := range steps {
		s, ok := readObject(raw)
		if !ok {
			continue
		}
		c.steps = append(c.steps, r.step(fmt.Sprintf("/steps/%d", i), s))
	}
	c.result = r.expression("/result", o)
	c.file, _ = jsonx.Text(o["script"])
	switch {
	case c.file == "" && !isPresent(o["steps"]):
		r.fail("", `missing property "steps"`, "a composite has steps or a script")
	case c.file != "" && (isPresent(o["steps"]) || isPresent(o["result"])):
		r.fail("/script", "script cannot be used with steps and result", "remove one of them")
	case c.file != "":
		c.script = r.script(c.file)
	}
	return c
}

// maxScript is the maximum size of a script in bytes.
const maxScript = 4 << 20

// script reads the file of a script. That of a project is inside the project.
func (r *compositeReader) script(file string) []byte {
	if r.named.Origin.Scope == settings.ScopeProject && !filepath.IsLocal(file) {
		r.fail("/script", fmt.Sprintf("%q is not in the project", file), "")
		return nil
	}
	file = expand.From(r.root, file)
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxScript) {
		err = fmt.Errorf("it is not a file of at most %d bytes", maxScript)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		r.fail("/script", fmt.Sprintf("the script cannot be read: %s: %v", text.Quote(file), text.Cause(err)),
			"script is the path of a file, from the project root")
	}
	return data
}

func (r *compositeReader) define(ctx context.Context, def *registry.Definition, o object) {
	def.Description, _ = jsonx.Text(o["description"])
	def.DisplayName, _ = jsonx.Text(o["displayName"])
	def.Icon, _ = jsonx.Text(o["icon"])
	if category, ok := jsonx.Text(o["category"]); ok {
		def.Category = registry.Category(category)
	}
	if isPresent(o["tags"]) && json.Unmarshal(o["tags"], &def.Tags) != nil {
		def.Tags = nil // reported by the settings
	}
	def.InputSchema = o["parameters"]
	if !isPresent(def.InputSchema) {
		def.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
		return
	}
	t := []registry.Tool{{Definition: registry.Definition{InputSchema: def.InputSchema}}}
	registry.Settle(t)
	err := t[0].Quarantine
	if err == nil {
		_, err = registry.NewValidator(def.InputSchema).Compile(ctx)
	}
	if err != nil && def.InputSchema[0] == '{' {
		r.fail("/parameters", err.Error(), "")
	}
}

func (r *compositeReader) step(at string, o object) step {
	s := step{params: r.expression(at+"/params", o), when: r.expression(at+"/if", o)}
	s.tool, _ = jsonx.Text(o["tool"])
	s.continueOnError = string(o["continueOnError"]) == "true"
	return s
}

// expression compiles the field that a pointer refers to. It returns nil if the
// field is absent.
func (r *compositeReader) expression(pointer string, o object) *jq.Expression {
	text, ok := jsonx.Text(o[path.Base(pointer)])
	if !ok {
		return nil
	}
	e, err := jq.Compile(text)
	if err != nil {
		r.fail(pointer, err.Error(), "its input is {params, steps, context}")
	}
	return e.Isolated(r.evaluator)
}
