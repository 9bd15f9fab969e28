package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

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
	o, err := readObject(r.named.JSON())
	if err != nil {
		return c // reported by the settings
	}
	r.define(ctx, &c.definition, o)
	steps, _ := readList(o["steps"])
	for i, raw := range steps {
		s, err := readObject(raw)
		if err != nil {
			continue
		}
		c.steps = append(c.steps, r.step(fmt.Sprintf("/steps/%d", i), s))
	}
	c.result = r.expression("/result", o)
	c.file, _ = stringIn(o, "script")
	switch {
	case c.file == "" && !present(o["steps"]):
		r.fail("", `missing property "steps"`, "a composite has steps or a script")
	case c.file != "" && (present(o["steps"]) || present(o["result"])):
		r.fail("/script", "script cannot be used together with steps and result", "remove one of them")
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
	def.Description, _ = stringIn(o, "description")
	def.DisplayName, _ = stringIn(o, "displayName")
	def.Icon, _ = stringIn(o, "icon")
	if category, ok := stringIn(o, "category"); ok {
		def.Category = registry.Category(category)
	}
	if present(o["tags"]) && json.Unmarshal(o["tags"], &def.Tags) != nil {
		def.Tags = nil // reported by the settings
	}
	def.InputSchema = o["parameters"]
	if !present(def.InputSchema) {
		def.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	} else if _, err := registry.NewValidator(def.InputSchema).Compile(ctx); err != nil && def.InputSchema[0] == '{' {
		r.fail("/parameters", "the schema cannot be used: "+err.Error(), "")
	}
}

func (r *compositeReader) step(at string, o object) step {
	s := step{params: r.expression(at+"/params", o), when: r.expression(at+"/if", o)}
	s.tool, _ = stringIn(o, "tool")
	s.continueOnError = string(o["continueOnError"]) == "true"
	return s
}

func stringIn(o object, field string) (text string, ok bool) {
	ok = present(o[field]) && json.Unmarshal(o[field], &text) == nil
	return text, ok
}

// expression compiles the field that a pointer refers to. It returns nil if the
// field is absent.
func (r *compositeReader) expression(pointer string, o object) *jq.Expression {
	text, ok := stringIn(o, path.Base(pointer))
	if !ok {
		return nil
	}
	e, err := jq.Compile(text)
	if err != nil {
		r.fail(pointer, err.Error(), "it is a jq expression over {params, steps, context}")
	}
	return e.Isolated(r.evaluator)
}
