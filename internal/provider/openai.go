package provider

import (
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/local"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
)

// openai declares functions for OpenAI's chat completions. Names must match
// ^[a-zA-Z0-9_-]{1,64}$. The root of parameters must be of type object with
// properties and without oneOf, anyOf, allOf, enum and not.
func openai() Format {
	return Format{
		Name:    "openai",
		Summary: "OpenAI chat completions tools",
		expects: "choices, a message with tool_calls, or a list of tool calls",
		decode:  decodeOpenAI,
		media:   mediaLimits{image: 20 << 20, file: 50 << 20 / 4 * 3},
		callID:  "id",
		join:    joinOpenAI,
		reply:   replyOpenAI,
		rule:    dashedNames(),
		layout:  list,
		prepare: (*encoder).prepareOpenAI,
		write: func(e *encoder, t *tool) {
			e.raw(`{"type":"function","function":`)
			e.named(t)
			e.raw(`,"parameters":`)
			e.value(t.schema)
			switch { // if absent, strict is false in this API
			case t.strict:
				e.raw(`,"strict":true`)
			case e.opts.Strict, t.def.Provider.Strict != nil:
				e.raw(`,"strict":false`)
			}
			e.raw("}}")
		},
	}
}

// openaiResponses declares functions for OpenAI's Responses API, in which strict is
// true if it is absent. It is therefore always written.
func openaiResponses() Format {
	return Format{
		Name:    "openai-responses",
		Summary: "OpenAI Responses API tools",
		expects: "output, or a list of its items",
		decode:  decodeResponses,
		media:   mediaLimits{image: 20 << 20, file: 50 << 20 / 4 * 3},
		callID:  "call_id",
		join:    joinResponses,
		reply:   replyResponses,
		rule:    dashedNames(),
		layout:  list,
		prepare: (*encoder).prepareOpenAI,
		search:  responsesSearch, namespaces: true,
		write: func(e *encoder, t *tool) {
			e.raw(`{"type":"function","name":`)
			e.string(t.name)
			e.raw(`,"description":`)
			e.string(t.def.Description)
			e.raw(`,"parameters":`)
			e.value(t.schema)
			e.flag("strict", &t.strict)
			e.flag("defer_loading", t.def.Provider.DeferLoading)
			e.callers(t, isAnthropicCaller)
			if async := t.def.Provider.Async; async != nil && *async && slices.ContainsFunc(t.def.Provider.AllowedCallers, isOpenAICaller) {
				e.omitField(t, "async", errors.New("code waits for the result of a call"))
			} else {
				e.flag("async", async)
			}
			e.further(t, "output_schema", t.def.DeclaredOutputSchema(), e.outputSchema)
			e.raw("}")
		},
	}
}

// dashedNames is the rule of all APIs that accept ^[a-zA-Z0-9_-]{1,64}$.
func dashedNames() nameRule { return nameRule{extra: "-", max: 64} }

func (e *encoder) prepareOpenAI(t *tool) {
	changes := openAIRoot(t)
	if e.requiresStrict(t) {
		strict := t.schema.Clone()
		if done, err := rewrite.Strict(strict); err != nil {
			e.diagnose(registry.SeverityWarning, "strict_impossible", t,
				"declared without strict: "+err.Error(), "strict schemas accept only objects with named properties")
		} else {
			t.schema, t.strict = strict, true
			changes = append(changes, done...)
		}
	}
	if e.opts.Target != "" {
		fitted, done := local.Fit(t.schema, e.opts.Target)
		t.schema, changes = fitted, append(changes, done...)
	}
	e.changed(t, changes)
}

func openAIRoot(t *tool) []string {
	root := t.schema
	changes := flattened(t, "enum", "not")
	if !root.Get("properties").Is(jsonx.Object) {
		root.Set("properties", jsonx.NewObject())
		changes = append(changes, "properties added at the root")
	}
	return append(changes, rewrite.ForOpenAI(root)...)
}
