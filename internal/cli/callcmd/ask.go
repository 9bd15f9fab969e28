package callcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// ask asks the person at the terminal for missing required params, unless the params have other
// mistakes. With optional it asks even if no param is required. line is the command line that would
// have made the same call; "" if no question was asked. If the person leaves required params empty,
// the call is made without them and fails validation.
func ask(ctx context.Context, e *cli.Env, f engine.Found, params json.RawMessage,
	optional bool) (completed json.RawMessage, line string, err error) {
	if !e.IO.InTTY || !e.IO.OutTTY || !e.IO.ErrTTY || e.IO.JSON {
		return params, "", nil
	}
	invalid := f.Registry.Validate(ctx, f.Tool, params)
	needed, more := form.Params(f.Tool.InputSchema, params)
	asks := lacksOnly(invalid) && len(needed.Fields) > 0 || optional && invalid == nil && len(more.Fields) > 0
	if !asks {
		return params, "", nil
	}
	tty, err := e.Person.Open()
	if err != nil {
		return params, "", nil
	}
	describeNested(ctx, &f.Tool.Definition, needed, more)
	defer tty.Close()
	lineOf := func(filled *asking.Filled) string { return commandLine(e, f.Tool, params, filled) }
	filled, err := asking.Params(ctx, tty, asking.ParamsForm{
		Tool: f.Tool.Name, Description: f.Tool.Description, Needed: needed, More: more, Line: lineOf,
		ReadFile: func(name string) ([]byte, error) { return e.Config.ReadFile(ctx, name, cli.MaxArgument) },
	})
	switch {
	case errors.Is(err, ui.ErrNoAnswer) && invalid != nil:
		return params, "", nil
	case errors.Is(err, ui.ErrNoAnswer):
		return nil, "", fmt.Errorf("%w: you canceled the call; nothing was run", registry.ErrDenied)
	case err != nil:
		return nil, "", err
	}
	return mergeParams(params, filled), lineOf(filled), nil
}

// describeNested describes what is in the fields that are typed as JSON.
func describeNested(ctx context.Context, def *registry.Definition, forms ...*form.Form) {
	params := args.WithoutInvalidExamples(ctx, def, args.Describe(def))
	for _, asked := range forms {
		for i := range asked.Fields {
			field := &asked.Fields[i]
			if field.Kind != form.JSON {
				continue
			}
			for _, p := range params {
				switch {
				case p.Name == field.Name:
					if doc, err := args.Parse(p.Example, args.Options{Schema: def.InputSchema}); err == nil {
						field.Example = string(jsonx.Get(doc, p.Name))
					}
				case strings.HasPrefix(p.Name, field.Name+".") || strings.HasPrefix(p.Name, field.Name+"[]."):
					field.Nested = append(field.Nested, nestedLine(p))
				}
			}
		}
	}
}

func nestedLine(p args.Param) string {
	line := p.Name + "  " + p.Type
	if p.Required {
		line += ", required"
	}
	for _, more := range []string{p.Allowed, text.FirstSentence(p.Description)} {
		if more != "" {
			line += "; " + more
		}
	}
	return line
}

// lacksOnly reports whether the only mistake in params is that required ones
// are missing.
func lacksOnly(err error) bool {
	invalid, ok := errors.AsType[*registry.ArgsError](err)
	return ok && !slices.ContainsFunc(invalid.Violations, func(v registry.Violation) bool {
		return v.Keyword != "required" || v.Pointer != ""
	})
}

func mergeParams(params json.RawMessage, filled *asking.Filled) json.RawMessage {
	all, err := jsonx.Parse(params, jsonx.Options{})
	if err != nil { // cannot happen: they were parsed before
		return params
	}
	for _, name := range filled.Names {
		if value, err := jsonx.Parse(filled.Values[name], jsonx.Options{}); err == nil {
			all.Set(name, value)
		}
	}
	return all.AppendTo(nil)
}

// commandLine returns the command line of this run with the answers as
// arguments, or with all params as JSON if arguments cannot express them.
func commandLine(e *cli.Env, t *registry.Tool, params json.RawMessage, filled *asking.Filled) string {
	words := e.Argv
	for _, name := range filled.Names {
		if file, ok := filled.Files[name]; ok && !strings.Contains(name, "=") && !strings.HasPrefix(name, "-") {
			words = append(words[:len(words):len(words)], name+"=@"+file)
			continue
		}
		one := jsonx.NewObject()
		if value, err := jsonx.Parse(filled.Values[name], jsonx.Options{}); err == nil {
			one.Set(name, value)
		}
		said, ok := args.Format(one.AppendTo(nil), t.InputSchema)
		if !ok {
			return cli.CallLine(t.Name, &t.Definition, mergeParams(params, filled))
		}
		words = append(words[:len(words):len(words)], said...)
	}
	return "toolreg " + cli.QuoteWords(words)
}
