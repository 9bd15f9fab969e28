// Package rpccmd implements the command rpc, which answers a host program for as long as
// that runs.
package rpccmd

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/engine"
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
		Short: "Answer an agent loop as its co-process",
		Long: `Answer a host program, such as an agent loop, for as long as it runs: one process
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

// printSchema prints the description of the messages.
func (o *options) printSchema(e *cli.Env) error {
	if o.schema && o.typescript {
		return &cli.UsageError{Err: errors.New("--schema and --typescript cannot be used together")}
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
