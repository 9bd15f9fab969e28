package callcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

// ShowHelp shows how to call a tool: as a command, with a table of its params,
// and whether the call needs confirmation.
func ShowHelp(ctx context.Context, page *cli.Page, s *engine.Session, reg *registry.Registry, t *registry.Tool) error {
	decider, err := s.Calls.Policy(reg)
	if err != nil {
		return err
	}
	callAs := engine.Definition(reg, t).Name
	page.Field("usage", usage(callAs, t), ui.Bold)
	page.Field("source", t.Source, 0)
	if t.Category != "" {
		page.Field("category", string(t.Category), 0)
	}
	page.Field("asks", asks(decider.DecideTool(ctx, t)), 0)
	if d := strings.TrimSpace(t.Description); d != "" {
		page.Title("description")
		page.Block(d)
	}
	page.Params(ctx, t)
	page.Examples(t, callAs)
	return nil
}

// usage returns the command line of a call with the required params.
func usage(callAs string, t *registry.Tool) string {
	line := "toolreg call " + cli.Quote(callAs)
	params := args.Describe(&t.Definition)
	optional, asJSON := false, false
	for _, p := range params {
		if p.Element {
			continue
		}
		if strings.HasPrefix(p.Name, "-") { // it would be read as a flag
			asJSON = asJSON || p.Required
		} else if !p.Required {
			optional = true
		} else if !slices.ContainsFunc(params,
			func(within args.Param) bool { return strings.HasPrefix(within.Name, p.Name+".") }) {
			line += " " + cli.Quote(p.Name) + "=…"
		}
	}
	if asJSON {
		line += " --params JSON"
	}
	if optional || len(params) == 0 && t.TakesParams() {
		line += " [k=v…]"
	}
	return line
}

// asks describes whether a person is asked before the tool runs, and why.
func asks(v policy.Verdict) string {
	word := cmp.Or(map[policy.Decision]string{
		policy.Allow: "no", policy.Ask: "yes", policy.Sandbox: "no, it runs in the sandbox",
		policy.Deny: "never runs",
	}[v.Decision], v.Decision.String())
	line := word + "; " + v.Reason
	if v.Origin != "" {
		line += " (" + v.Origin + ")"
	}
	return line
}

// flagError returns the function that explains an unknown flag that was meant as a
// param.
func flagError(e *cli.Env) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		plain := cmd.Root().FlagErrorFunc()(cmd, err)
		unknown, ok := errors.AsType[*pflag.NotExistError](err)
		named := cmd.Flags().Args()
		if !ok || len(named) == 0 || len(unknown.GetSpecifiedName()) < 2 {
			return plain
		}
		return &cli.UsageError{Err: plain,
			Hint: fmt.Sprintf("params are written without dashes: %s; toolreg call %s --help lists them",
				asParam(unknown.GetSpecifiedName(), e.Argv), named[0])}
	}
}

// asParam returns an unknown flag as the argument k=v that was meant, with its
// value in the command line; a flag without value is true.
func asParam(flag string, argv []string) string {
	key, value := strings.ReplaceAll(flag, "-", "_"), "true"
	for i, arg := range argv {
		if arg == "--" {
			break
		}
		if given, ok := strings.CutPrefix(arg, "--"+flag+"="); ok {
			value = given
			break
		}
		if arg == "--"+flag {
			if next := append(argv, "--")[i+1]; !strings.HasPrefix(next, "-") && !strings.Contains(next, "=") {
				value = next
			}
			break
		}
	}
	return cli.Quote(key + "=" + value)
}
