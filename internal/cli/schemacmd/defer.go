package schemacmd

import (
	"errors"

	"github.com/toolreg/toolreg/internal/cli"
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
	switch err := o.Deferral.Check(); {
	case err != nil, !o.Deferral.On():
		return err
	case o.lint, o.explain:
		return &cli.UsageError{Err: errors.New("--defer cannot be used together with --lint or --explain"), Hint: "they apply to the declarations of all tools; remove --defer"}
	case o.Encode.GeminiParameters:
		return &cli.UsageError{Err: errors.New("--defer and --gemini-parameters cannot be used together"), Hint: "the field parameters cannot express the params of call_tool"}
	}
	return nil
}
