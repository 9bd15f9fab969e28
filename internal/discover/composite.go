package discover

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Limits of composites.
const (
	// MaxSteps is how many steps one composite may have.
	MaxSteps = 100
	// maxRun is how many steps one call may run, those of composites within
	// composites counted.
	maxRun = 1000
)

// StepCall makes the call of one step: found, checked, decided on and run as
// any other call. ctx carries the count of steps.
type StepCall func(ctx context.Context, tool string, params json.RawMessage) (registry.Result, error)

// CompositeOptions say how composites run.
type CompositeOptions struct {
	// Call makes the call of one step. Required.
	Call StepCall
	// Context is the JSON object that expressions see as .context.
	Context json.RawMessage
}

// Composites are the tools of the setting composites (spec section 6.5),
// checked as far as they can be without any other tool.
type Composites struct {
	list []*composite
	opts CompositeOptions
}

// composite is one tool made of other tools.
type composite struct {
	named       settings.Named
	description string
	parameters  json.RawMessage
	steps       []step
	result      *expression // nil: the result of the last step that succeeded
}

// step is one call of a composite.
type step struct {
	tool            string
	params          *expression // nil: no params
	when            *expression // nil: always
	continueOnError bool
}

// ParseComposites reads the entries of the setting composites. The error is a
// *settings.Error with every mistake, each with file and line: unknown keys,
// wrong types, expressions that do not compile, composites that call
// themselves.
func ParseComposites(ctx context.Context, entries []settings.Named, opts CompositeOptions) (*Composites, error) {
	out := &Composites{opts: opts}
	var problems []document.Problem
	for _, n := range entries {
		r := compositeReader{named: n}
		c := r.read(ctx)
		problems = append(problems, document.SortProblems(r.problems)...)
		out.list = append(out.list, c)
	}
	if len(problems) == 0 {
		problems = out.cycles()
	}
	if len(problems) > 0 {
		return nil, &settings.Error{Problems: problems}
	}
	return out, nil
}

// Len returns the number of composites.
func (c *Composites) Len() int { return len(c.list) }

// Name returns "composite".
func (c *Composites) Name() string { return registry.SourceComposite }

// Discover returns the tools. It runs nothing and never fails.
func (c *Composites) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	tools := make([]registry.Tool, len(c.list))
	for i, one := range c.list {
		tools[i] = registry.Tool{
			Definition: registry.Definition{
				Name: one.named.Name, Description: one.description, Source: registry.SourceComposite,
				Category: registry.CategoryOther, InputSchema: one.parameters,
			},
			Identity: one.named.JSON(),
			Declared: one.named.Origin.String(),
			Run: func(ctx context.Context, call registry.Call) (registry.Result, error) {
				return c.run(ctx, one, call)
			},
		}
	}
	return tools, nil, nil
}

// Unresolved says which steps name a tool that a registry of all sources does
// not have. lookup is that registry's; a tool that a setting hides is no
// mistake in the composite.
func (c *Composites) Unresolved(lookup func(name string) error) []document.Problem {
	var out []document.Problem
	for _, one := range c.list {
		for i, s := range one.steps {
			if err := lookup(s.tool); err != nil {
				out = append(out, one.problem(fmt.Sprintf("/steps/%d/tool", i), err.Error(), ""))
			}
		}
	}
	return out
}

// problem is a mistake at a place within the entry of a composite.
func (c *composite) problem(pointer, message, hint string) document.Problem {
	return problemAt(c.named, pointer, message, hint)
}

func problemAt(n settings.Named, pointer, message, hint string) document.Problem {
	o := n.At(pointer)
	return document.Problem{File: o.Name, Line: o.Line, Col: o.Col,
		Message: "composites." + n.Name + ": " + place(pointer) + message, Hint: hint}
}

// cycles finds composites that would call themselves.
func (c *Composites) cycles() []document.Problem {
	byName := map[string]*composite{}
	for _, one := range c.list {
		byName[one.named.Name] = one
		byName[registry.ValidName(one.named.Name)] = one
	}
	const open, done = 1, 2
	state := map[*composite]int{}
	var problems []document.Problem
	var check func(one *composite)
	check = func(one *composite) {
		state[one] = open
		for i, s := range one.steps {
			next := byName[s.tool]
			switch {
			case next == nil || state[next] == done:
			case state[next] == open:
				problems = append(problems, one.problem(fmt.Sprintf("/steps/%d/tool", i),
					fmt.Sprintf("%q leads back to a composite that is still running", s.tool), "a composite cannot call itself, directly or through others"))
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
	return problems
}
