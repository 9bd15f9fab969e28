package schemacmd

import (
	"context"
	"errors"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

const deferHelp = `With --defer auto, the model does not see tools beyond a budget (search.budget,
10,000 tokens) until it searches for them; --defer all defers every tool that
search.always does not name. Formats anthropic and openai-responses declare the
tools as deferred, for the provider's own search. The other formats omit them and
declare search_tools, describe_tools and call_tool instead, which toolreg call
answers in every form. If all tools fit, --defer auto changes nothing.
`

// checkDefer returns an error for flags that cannot be combined with --defer.
func (o *options) checkDefer() error {
	switch err := o.deferral.Check(); {
	case err != nil, !o.deferral.On():
		return err
	case o.lint, o.explain:
		return &cli.UsageError{Err: errors.New("--defer cannot be used together with --lint or --explain"), Hint: "they apply to the declarations of all tools; remove --defer"}
	case o.encode.GeminiParameters:
		return &cli.UsageError{Err: errors.New("--defer and --gemini-parameters cannot be used together"), Hint: "the field parameters cannot express the params of call_tool"}
	}
	return nil
}

// printDeferred declares what fits in the budget, and how the model finds the
// rest.
func (o *options) printDeferred(ctx context.Context, ios *cli.IO, s *engine.Session, format provider.Format, defs []registry.Definition) error {
	whole, err := s.All(ctx)
	if err != nil {
		return err
	}
	opts, err := s.Deferral(ctx, whole, o.deferral.All())
	if err != nil {
		return err
	}
	o.encode.Registered = engine.Names(whole)
	result := deferred.Declare(format, defs, o.encode, opts)
	ios.Diagnose(result.Diagnostics)
	if len(defs) < opts.Overview.Tools && result.Deferred > 0 && !format.Defers() {
		ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "search_wider",
			Message: "search_tools also finds tools that this command does not select",
			Hint:    "narrow the registry for both with --preset, tools.only or excludeTools"})
	}
	return Print(ios, format, result.Output)
}
