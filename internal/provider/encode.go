package provider

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Encode declares the definitions in order. A tool that the format cannot express
// is omitted with a diagnostic. If a schema or a name had to be changed, a
// diagnostic describes the change. The output is valid for any definitions.
func (f Format) Encode(defs []registry.Definition, opts Options) (Output, []registry.Diagnostic) {
	if f.write == nil {
		return Output{}, nil
	}
	if !f.Defers() {
		opts.Defer = Deferral{}
	}
	e := &encoder{format: &f, opts: opts, parser: jsonx.Parser{Options: registry.SchemaJSON()}}
	if opts.Strict && !f.strict { // Anthropic and Bedrock have strict tools, but reject requests with many of them
		e.opts.Strict = false
		e.diags = append(e.diags, registry.Warning("strict_ignored", "",
			"--strict has no effect with format "+f.Name, "it applies to formats openai and openai-responses"))
	}
	lay := cmp.Or(f.layout, layout{open: "[", between: ",", close: "]", empty: "[]"})
	if opts.Request {
		lay = cmp.Or(f.request, lay)
	}
	e.out = append(make([]byte, 0, 1024*(1+len(defs))), lay.open...)
	defs = e.deferral(defs)
	names := f.names(defs, opts)
	done := make([]Declaration, 0, len(defs))
	for i := range defs {
		t := tool{def: &defs[i], name: names[i]}
		if err := e.prepare(&t); err != nil {
			e.diagnose(registry.SeverityWarning, "declaration_left_out", &t,
				fmt.Sprintf("not declared for %s: %v", f.Name, err),
				"exclude the tool, rename it or the param in overrides, or correct it at the source")
			continue
		}
		e.enter(&t, lay.between, len(done) == 0)
		start := len(e.out)
		f.write(e, &t)
		done = append(done, Declaration{Tool: t.def.Name, Name: t.name,
			Deferred: e.defers(t.def), Data: e.out[start:len(e.out):len(e.out)]})
		if f.after != nil {
			f.after(e, &t)
		}
	}
	e.searchTool(lay.between, len(done) == 0)
	e.raw(lay.close)
	if len(done) == 0 && !opts.Defer.Search {
		e.out = []byte(lay.empty)
	}
	return Output{Data: e.out, Declarations: done}, e.diags
}

func (e *encoder) prepare(t *tool) error {
	switch {
	case t.def.Name == "":
		return errors.New("it has no name")
	case t.name == "":
		return errors.New("another tool with that name is already declared")
	}
	if err := e.readSchema(t); err != nil {
		return err
	}
	if t.name != t.def.Name {
		e.diagnose(registry.SeverityInfo, "name_changed", t,
			fmt.Sprintf("declared as %q, since %s does not accept the name %q", t.name, e.format.Name, t.def.Name),
			"calls may use either name")
	}
	if e.format.prepare != nil {
		e.format.prepare(e, t)
	}
	if e.format.refuse != nil {
		return e.format.refuse(t)
	}
	return nil
}

// names returns the declared name of each definition among all registered names, or
// "" if a definition has no name or the name of an earlier one.
func (f Format) names(defs []registry.Definition, opts Options) []string {
	own := make([]string, len(defs))
	for i := range defs {
		own[i] = defs[i].Name
	}
	all := slices.Concat(opts.Registered, own)
	rule := f.rule
	if f.Name == "gemini" && opts.GeminiReference {
		rule = nameRule{extra: ".-", max: 64} // that accepts every registered name
	}
	declared := make(map[string]string, len(all))
	for i, name := range rule.assign(all) {
		if name != "" {
			declared[all[i]] = name
		}
	}
	for i, name := range own {
		own[i] = declared[name]
		delete(declared, name)
	}
	return own
}

// readSchema parses the input schema. A tool without one has no params.
func (e *encoder) readSchema(t *tool) error {
	raw := t.def.InputSchema
	if len(raw) > registry.MaxSchemaBytes {
		return fmt.Errorf("its schema has %d bytes, but the limit is %d", len(raw), registry.MaxSchemaBytes)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		t.schema, t.bare = emptyParams(), true
		return nil
	}
	n, err := e.parser.Parse(raw)
	if err != nil {
		return fmt.Errorf("its schema cannot be used: %w", err)
	}
	if n.Is(jsonx.Null) || n.Is(jsonx.Object) && len(n.Members) == 0 {
		t.schema, t.bare = emptyParams(), true
		return nil
	}
	if !n.Is(jsonx.Object) {
		return errors.New("its schema is not an object")
	}
	t.schema = n
	if e.parser.Duplicate {
		e.changed(t, []string{"duplicate keys of an object removed, keeping the last value"})
	}
	return nil
}

func (e *encoder) defers(def *registry.Definition) bool { return e.opts.Defer.Tools[def.Name] }

// deferral returns the definitions in the order of declaration, with the deferred
// ones marked. The tools of a namespace are adjacent, at the position of the first
// one.
func (e *encoder) deferral(defs []registry.Definition) []registry.Definition {
	if len(e.opts.Defer.Tools) == 0 {
		return defs
	}
	yes := true
	marked := slices.Clone(defs)
	for i := range marked {
		if e.defers(&marked[i]) {
			marked[i].Provider.DeferLoading = &yes
		}
	}
	if !e.format.namespaces {
		return marked
	}
	e.namespaces = e.namespaceNames()
	out := make([]registry.Definition, 0, len(marked))
	done := map[string]bool{}
	for i := range marked {
		d := &marked[i]
		switch source := d.Source; {
		case !e.defers(d):
			out = append(out, *d)
		case !done[source]:
			done[source] = true
			for j := i; j < len(marked); j++ {
				if marked[j].Source == source && e.defers(&marked[j]) {
					out = append(out, marked[j])
				}
			}
		}
	}
	return out
}

// namespaceNames returns the name of each source's namespace: a server's own
// name if no other source has it.
func (e *encoder) namespaceNames() map[string]string {
	var names []string
	sources := slices.Sorted(maps.Keys(e.opts.Defer.Namespaces))
	for _, source := range sources {
		name, ok := registry.ServerOf(source)
		if !ok || e.opts.Defer.Namespaces[name] != "" {
			name = source
		}
		names = append(names, name)
	}
	out := make(map[string]string, len(sources))
	for i, name := range e.format.rule.assign(names) {
		out[sources[i]] = name
	}
	return out
}

// enter closes the open namespace and opens the one of a tool, if they differ. It
// also writes the separator before the tool, if one is needed.
func (e *encoder) enter(t *tool, between string, first bool) {
	wanted := ""
	if e.namespaces != nil && e.defers(t.def) {
		wanted = t.def.Source
	}
	if wanted != e.namespace {
		e.leaveNamespace()
	}
	if !first {
		e.raw(between)
	}
	if wanted != e.namespace {
		e.raw(`{"type":"namespace","name":`)
		e.string(e.namespaces[wanted])
		e.text("description", e.opts.Defer.Namespaces[wanted])
		e.raw(`,"tools":[`)
		e.namespace = wanted
	}
}

func (e *encoder) leaveNamespace() {
	if e.namespace != "" {
		e.raw("]}")
	}
	e.namespace = ""
}

// searchTool writes the provider's search tool.
func (e *encoder) searchTool(between string, first bool) {
	e.leaveNamespace()
	if !e.opts.Defer.Search {
		return
	}
	if !first {
		e.raw(between)
	}
	e.format.search(e)
}
