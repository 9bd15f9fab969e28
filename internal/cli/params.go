package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
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
		return Usage("--params and --params-file cannot be used together", "see toolreg help params")
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
	if file, ok := strings.CutPrefix(o.params, "@"); err != nil && (ok || file == "-") {
		return nil, &UsageError{Err: fmt.Errorf("--params: %w", err),
			Hint: "to read them from a file or stdin: --params-file " + Quote(file)}
	}
	if err == nil && len(argv) > 0 {
		given = true
		params, err = args.Parse(argv, args.Options{
			Schema: t.InputSchema, Base: params,
			ReadFile: func(name string) ([]byte, error) {
				return c.ReadInput(ctx, name, "params", MaxArgument)
			},
		})
		if wrong, ok := errors.AsType[*args.Error](err); ok && wrong.Usage {
			name := firstParam(t.InputSchema)
			switch {
			case strings.HasPrefix(wrong.Arg, "{"):
				return nil, &UsageError{Err: err, Hint: "did you mean --params " + Quote(wrong.Arg) + "?"}
			case jsonx.Get(jsonx.Get(t.InputSchema, "properties"), wrong.Arg) != nil:
				return nil, &UsageError{Err: err, Hint: "did you mean " + wrong.Arg + "=…?"}
			case name != "" && !strings.Contains(wrong.Arg, "="):
				return nil, &UsageError{Err: err, Hint: "did you mean " + Quote(name+"="+wrong.Arg) + "?"}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if given {
		params = engine.Restored(t, params)
	}
	return params, nil
}

// firstParam returns the first param that a schema requires, or else the first that it names; ""
// if it names none.
func firstParam(schema []byte) string {
	required, _ := jsonx.Elements(jsonx.Get(schema, "required"))
	for _, name := range required {
		if text, ok := jsonx.Text(name); ok {
			return text
		}
	}
	for name := range jsonx.Members(jsonx.Get(schema, "properties")) {
		return name
	}
	return ""
}

// Unread adds a hint to err if params are invalid because a file on stdin was not read.
func (o *IO) Unread(err error, p *ParamsOptions, argv []string) error {
	_, invalid := errors.AsType[*registry.ArgsError](err)
	if !invalid || !o.InFile || o.read != "" || len(argv) == 0 && p.params == "" && p.file == "" {
		return err
	}
	return &registry.Failure{Text: err.Error(), Cause: err,
		Help: "stdin was not read, because the params were given otherwise; --params-file - reads it, and arguments override its values"}
}

// baseParams reads the JSON that arguments override; given is false if there is
// none.
func (c *Config) baseParams(ctx context.Context, o *ParamsOptions,
	t *registry.Tool, haveArgs bool) (data []byte, given bool, err error) {
	switch {
	case o.params != "":
		return []byte(o.params), true, nil
	case o.file != "":
		data, err = c.ReadInput(ctx, o.file, "params", registry.MaxParamsBytes)
		if err != nil && len(data) <= registry.MaxParamsBytes { // params that are too large are invalid
			return nil, false, &UsageError{Err: fmt.Errorf("reading params: %w", err)}
		}
		return data, true, nil
	case haveArgs || c.io.InTTY || !t.TakesParams():
		return nil, false, nil
	}
	data, err = c.io.ReadStdin("params", registry.MaxParamsBytes)
	return data, true, err
}

// ReadStdin reads stdin up to one byte more than max, once. what names its content in errors.
func (o *IO) ReadStdin(what string, max int64) ([]byte, error) {
	if o.read != "" {
		return nil, &UsageError{Err: fmt.Errorf("stdin was already read for %s", o.read)}
	}
	o.read = what
	data, err := io.ReadAll(io.LimitReader(o.In, max+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s from stdin: %w", what, err)
	}
	return data, nil
}

// ReadInput is [Config.ReadFile] where "-" is stdin.
func (c *Config) ReadInput(ctx context.Context, name, what string, max int64) ([]byte, error) {
	if name != "-" {
		return c.ReadFile(ctx, name, max)
	}
	data, err := c.io.ReadStdin(what, max)
	return limited(data, err, "stdin", max)
}

// NoArgs returns a usage error if there are arguments.
func NoArgs(cmd *cobra.Command, argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return unknownCommand(cmd, argv[0])
	}
	return Usage(fmt.Sprintf("%s takes no arguments, got %q", cmd.CommandPath(), argv[0]),
		"see "+cmd.CommandPath()+" --help")
}

// ArgsBetween requires from lo to hi arguments; hi < 0 means any number.
func ArgsBetween(lo, hi int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, argv []string) error {
		if len(argv) >= lo && (hi < 0 || len(argv) <= hi) {
			return nil
		}
		verb := " requires "
		if len(argv) > lo {
			verb = ": too many arguments; it takes "
		}
		return Usage(cmd.CommandPath()+verb+what, "see "+cmd.CommandPath()+" --help")
	}
}

// NearCommand returns the subcommand whose name is nearest to a word; "" if none is
// similar.
func NearCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if slices.ContainsFunc(sub.SuggestFor, func(other string) bool { return strings.EqualFold(other, word) }) {
			return sub.Name()
		}
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
		}
	}
	near := append(registry.Near(word, names), "")
	return near[0]
}

// unknownSubcommand returns an error if a command line with --help names a subcommand
// that does not exist.
func unknownSubcommand(cmd *cobra.Command) error {
	argv := cmd.Flags().Args()
	switch {
	case len(argv) == 0 || !cmd.HasSubCommands():
		return nil
	case !cmd.HasParent():
		return unknownCommand(cmd, argv[0])
	}
	return cmd.ValidateArgs(argv)
}

func unknownCommand(cmd *cobra.Command, name string) error {
	msg, hint := fmt.Sprintf("unknown command %q", name), "see "+cmd.CommandPath()+" --help"
	if near := NearCommand(cmd, name); near == name {
		msg = fmt.Sprintf("put the command %q before --", name)
	} else if near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	} else if !cmd.HasParent() {
		hint = "to call a tool of this name: toolreg call " + Quote(name) + "; " + hint
	}
	return Usage(msg, hint)
}

// CallLine returns the command line that calls a tool with params, in the form
// k=v if possible.
func CallLine(name string, def *registry.Definition, params []byte) string {
	line := "toolreg call " + Quote(ui.Line(name))
	arguments, ok := args.Format(params, def.InputSchema)
	if !ok {
		var compact bytes.Buffer
		if json.Compact(&compact, params) != nil {
			return line
		}
		return line + " --params " + Quote(string(text.EscapeJSON(compact.Bytes())))
	}
	return strings.TrimSuffix(line+" "+QuoteWords(arguments), " ")
}

// QuoteWords writes words for a command line.
func QuoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote is [text.ShellWord].
func Quote(word string) string { return text.ShellWord(word) }
