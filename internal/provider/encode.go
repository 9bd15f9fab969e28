package provider

import (
	"errors"
	"fmt"

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
	e := &encoder{format: &f, opts: opts, parser: jsonx.Parser{Options: options()}}
	lay := f.layout(opts)
	e.out = append(make([]byte, 0, expectedSize(defs)), lay.open...)
	defs = e.deferral(defs)
	names := f.names(defs, opts)
	done := make([]Declaration, 0, len(defs))
	for i := range defs {
		t := tool{def: &defs[i], name: names[i]}
		if err := e.prepare(&t); err != nil {
			e.leaveOut(&t, err)
			continue
		}
		e.enter(&t, lay.between, len(done) == 0)
		start := len(e.out)
		f.write(e, &t)
		done = append(done, Declaration{Tool: t.def.Name, Name: t.name, Deferred: e.defers(t.def), Data: e.out[start:len(e.out):len(e.out)]})
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

// expectedSize estimates the size of the output, so that its buffer rarely has to
// grow.
func expectedSize(defs []registry.Definition) int {
	n := 1024
	for i := range defs {
		n += 128 + len(defs[i].Name) + len(defs[i].Description) + len(defs[i].InputSchema)
	}
	return n
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
	e.format.prepare(e, t)
	if e.format.refuse != nil {
		return e.format.refuse(t)
	}
	return nil
}

func (e *encoder) leaveOut(t *tool, err error) {
	e.diagnose(registry.SeverityWarning, "declaration_left_out", t,
		fmt.Sprintf("not declared for %s: %v", e.format.Name, err), "exclude the tool, or fix its schema at the source")
}
