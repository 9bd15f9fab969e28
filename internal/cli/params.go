package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
)

// ParamsOptions are the flags that provide params, besides arguments and stdin.
type ParamsOptions struct {
	params string
	file   string
}

// Flags adds the flags.
func (o *ParamsOptions) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.params, "params", "p", "", "params as a JSON `object`")
	o.FileFlag(cmd)
}

// FileFlag adds only --params-file.
func (o *ParamsOptions) FileFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.file, "params-file", "", "`file` with the params; - for stdin")
	complete.Flag(cmd, "params-file", complete.Files)
}

// Given reports whether a flag provides params, and whether they come from stdin.
func (o *ParamsOptions) Given() (given, stdin bool) {
	return o.params != "" || o.file != "", o.file == "-"
}

// Check returns an error for flags that cannot be used together.
func (o *ParamsOptions) Check() error {
	if o.params != "" && o.file != "" {
		return &UsageError{Err: errors.New("--params and --params-file cannot be used together"), Hint: "see toolreg help params"}
	}
	return nil
}

// Params collects the params of a call from flags, arguments or stdin.
func (c *Config) Params(ctx context.Context, o *ParamsOptions, t *registry.Tool, argv []string) ([]byte, error) {
	base, given, err := c.baseParams(ctx, o, t, len(argv) > 0)
	if err != nil {
		return nil, err
	}
	params, err := registry.DecodeParams(t.Name, base)
	if err == nil && len(argv) > 0 {
		given = true
		params, err = args.Parse(argv, args.Options{Schema: t.InputSchema, Base: params, ReadFile: func(name string) ([]byte, error) { return c.ReadFile(ctx, name) }})
	}
	if err != nil {
		return nil, err
	}
	if given {
		params = engine.Restored(t, params)
	}
	return params, nil
}

// baseParams reads the JSON that arguments override; given is false if there is
// none.
func (c *Config) baseParams(ctx context.Context, o *ParamsOptions, t *registry.Tool, haveArgs bool) (data []byte, given bool, err error) {
	switch {
	case o.params != "":
		return []byte(o.params), true, nil
	case o.file == "-":
		data, err = c.io.ReadStdin("params", registry.MaxParamsBytes)
		return data, true, err
	case o.file != "":
		if data, err = c.ReadFile(ctx, o.file); err != nil {
			return nil, false, &UsageError{Err: fmt.Errorf("reading params: %w", err)}
		}
		return data, true, nil
	case haveArgs || c.io.InTTY || !t.TakesParams():
		return nil, false, nil
	}
	data, err = c.io.ReadStdin("params", registry.MaxParamsBytes)
	return data, true, err
}

// ReadStdin reads stdin up to one byte more than max; what is what it has, for errors.
func (o *IO) ReadStdin(what string, max int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(o.In, max+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s from stdin: %w", what, err)
	}
	return data, nil
}
