// Package rpccmd implements the command rpc, which serves a host program as its co-process.
package rpccmd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/rpc"
)

type options struct {
	preset             string
	schema, typescript bool
}

// New returns the command rpc.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "rpc",
		Short: "Serve an agent loop as a co-process",
		Long: `Serve a host program, such as an agent loop, for as long as it runs: one process
with one registry and open connections. The host writes JSON-RPC 2.0 requests to
stdin, one per line, and reads the answers from stdout. The methods are initialize;
provide, which makes functions of the host tools; declare, for a provider; answer,
which runs the calls in a model's response or stream; and call, list, search, why,
servers and cancel.

If a call needs approval, the host is asked and shows the question in its own user
interface. Calls that only read run concurrently; the others run one after the other.
At the end of stdin running calls are canceled and rpc exits.

--schema prints the JSON Schema of all messages, --typescript their types.

Exit codes: 0, 1, 2, 143.`,
		Example: `  toolreg rpc
  toolreg rpc --preset read-only
  toolreg rpc --typescript >toolreg.ts`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.schema || o.typescript {
				return o.printSchema(e)
			}
			return run(cmd.Context(), e, o)
		},
	}
	cli.PresetFlag(cmd, &o.preset)
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of the messages and exit")
	cmd.Flags().BoolVar(&o.typescript, "typescript", false, "print the TypeScript types of the messages and exit")
	return cmd
}

func (o *options) printSchema(e *cli.Env) error {
	if o.schema && o.typescript {
		return cli.Usage("--schema and --typescript cannot be used together", "")
	}
	m := messages()
	if o.schema {
		doc, err := m.Schema()
		if err != nil {
			return err
		}
		return e.IO.PrintJSON(doc)
	}
	text, err := m.TypeScript()
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.IO.Out, text)
	return err
}

// heldError is the data of the error of an answer with hold.
type heldError struct {
	cli.ErrorBody
	Questions []engine.KeptQuestion `json:"questions"`
}

func run(ctx context.Context, e *cli.Env, o *options) error {
	if err := engine.CheckPreset(o.preset); err != nil {
		return err
	}
	cli.CollectLater()
	life, stop := context.WithCancel(ctx)
	h := newHost(e, o.preset)
	h.server = rpc.New(e.IO.Out.Unescaped(),
		rpc.Options{Methods: methods(life, h), Initialize: initialize(life, h),
			ErrorData: func(ctx context.Context, err error) (string, any) {
				body := cli.NewErrorBodyForPerson(ctx, err)
				if held, ok := errors.AsType[*callcmd.HeldError](err); ok {
					return body.Message, heldError{body, held.Questions}
				}
				return body.Message, body
			}})
	e.IO.Relay = func(d registry.Diagnostic) { h.server.Diagnose(nil, d) }
	err := h.server.Serve(life, e.IO.In)
	stop()
	h.closing.Wait() // a session must not be created while the others are closed
	return err
}

type initializeParams struct {
	Client       rpc.Client       `json:"client"`
	Capabilities rpc.Capabilities `json:"capabilities,omitzero" jsonschema:"what the host answers"`
}

type initializeResult struct {
	Version string   `json:"version" jsonschema:"of toolreg"`
	Formats []string `json:"formats" jsonschema:"for declare; answer takes those of providers"`
	Root    string   `json:"root" jsonschema:"the project root"`
	Servers []string `json:"servers" jsonschema:"names of the MCP servers"`
}

type provideParams struct {
	Tools []rpc.Function `json:"tools" jsonschema:"the functions of the host; those of an earlier provide are replaced"`
}

type provideResult struct {
	Tools []string `json:"tools" jsonschema:"the names of the host's tools in the registry"`
}

type declareParams struct {
	Format  string       `json:"format" jsonschema:"as in initialize"`
	Request bool         `json:"request,omitempty" jsonschema:"wrap the declarations as the API's tools field requires"`
	Strict  bool         `json:"strict,omitempty" jsonschema:"OpenAI strict schemas"`
	Defer   cli.Deferral `json:"defer,omitempty" jsonschema:"auto, none or all"`
	Tools   cli.Words    `json:"tools,omitempty" jsonschema:"names and globs; default all"`
	cli.Filters
}

type declareResult struct {
	Declarations any                   `json:"declarations" jsonschema:"what toolreg schema prints; a string for prompt and typescript"`
	Diagnostics  []registry.Diagnostic `json:"diagnostics"`
}

type answerParams struct {
	Format   string          `json:"format" jsonschema:"openai, openai-responses, anthropic, bedrock, mistral, gemini or mcp"`
	Response json.RawMessage `json:"response,omitempty" jsonschema:"the whole response of the API, the message in it, or the list of calls"`
	Stream   string          `json:"stream,omitempty" jsonschema:"instead of response: the stream of events as it was received; Bedrock's binary frames in base64"`
	Hold     bool            `json:"hold,omitempty" jsonschema:"run nothing while a call needs an answer that nobody gives; the error then has data.questions"`
	Parallel bool            `json:"parallel,omitempty" jsonschema:"do not wait for other calls"`
}

type answerResult struct {
	Message  json.RawMessage `json:"message,omitempty" jsonschema:"the model's own message, put together from the response or the stream, to append first; for openai-responses the list of output items"`
	Messages []any           `json:"messages" jsonschema:"to append after it"`
	Calls    []answeredCall  `json:"calls" jsonschema:"the calls of the response, in its order"`
}

// answeredCall describes a call of a response for the host, not for the model.
type answeredCall struct {
	ID            json.RawMessage        `json:"id,omitempty" jsonschema:"the model's id"`
	Tool          string                 `json:"tool" jsonschema:"registered name, or else the name that the model wrote"`
	Params        any                    `json:"params" jsonschema:"as the model wrote them; a string if they are not JSON"`
	Decision      *policy.Decision       `json:"decision,omitempty" jsonschema:"of the policy; absent if the call was refused before"`
	OK            bool                   `json:"ok"`
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty" jsonschema:"validation, execution, cancellation or timeout"`
	Summary       string                 `json:"summary,omitempty" jsonschema:"the result in a line, or why the call failed"`
	DurationMs    int64                  `json:"durationMs"`
	Sizes         sizes                  `json:"sizes"`
	AnsweredBy    string                 `json:"answeredBy,omitempty" jsonschema:"host, if it answered a question about the call"`
}

// sizes are in bytes.
type sizes struct {
	Params int `json:"params"`
	Result int `json:"result" jsonschema:"of what the model reads"`
}

type callParams struct {
	Tool     string          `json:"tool"`
	Params   json.RawMessage `json:"params,omitempty" jsonschema:"an object"`
	Stream   bool            `json:"stream,omitempty" jsonschema:"send the output as it arrives"`
	Parallel bool            `json:"parallel,omitempty" jsonschema:"do not wait for other calls"`
}

type listParams struct {
	Tool string `json:"tool,omitempty" jsonschema:"a name or a glob"`
	All  bool   `json:"all,omitempty" jsonschema:"also hidden tools, and overrides"`
	cli.Filters
}

type searchParams struct {
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty" jsonschema:"default 10"`
	cli.Filters
}

type whyParams struct {
	Tool    string          `json:"tool"`
	Params  json.RawMessage `json:"params,omitempty" jsonschema:"an object"`
	Explain bool            `json:"explain,omitempty" jsonschema:"list every rule"`
}

type serversParams struct {
	Names cli.Words `json:"names,omitempty" jsonschema:"names and globs; default all"`
}

func messages() rpc.Messages {
	words := `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`
	life, h := context.Context(nil), &host{} // no method is run
	return rpc.Messages{Methods: append([]rpc.Method{initialize(life, h)}, methods(life, h)...), Types: map[reflect.Type]string{
		reflect.TypeFor[cli.Words]():         words,
		reflect.TypeFor[policy.Decision]():   `{"enum":["allow","sandbox","ask","deny"]}`,
		reflect.TypeFor[registry.Content]():  `{"type":"object","description":"a content block of MCP","required":["type"],"properties":{"type":{"type":"string"}}}`,
		reflect.TypeFor[registry.Location](): `{"type":"object","description":"pathBytes, in Base64, is there instead of path if the path is not UTF-8","properties":{"path":{"type":"string"},"pathBytes":{"type":"string"},"line":{"type":"integer"}}}`,
		reflect.TypeFor[registry.Display]():  `{"description":"Markdown, a diff, or a todo list","anyOf":[{"type":"string"},{"type":"object"},{"type":"array"}]}`,
	}}
}
