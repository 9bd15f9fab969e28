// Package settingscmd implements the command settings, which shows effective
// settings and where they come from, and changes them.
package settingscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/ui"
)

// New returns the command settings.
func New(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Show and change settings, with the origin of each value",
		Long: `Show every setting that has a value, with the place that it comes from, as
"toolreg settings show" does. The subcommands show and change the files.

Exit codes: 0, 2 (a mistake in the settings).`,
		Example: `  toolreg settings
  toolreg settings set cache.discovery 24h`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runShow(cmd.Context(), e, nil) },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "show [KEY…]", SuggestFor: []string{"get", "list"},
		Short: "Print the effective settings, each with the place it comes from",
		Long: `Print every setting that has a value, or those named: a setting by either of
its names, a group such as policy, or one entry such as mcpServers.NAME. Values
are JSON with secrets masked; variables stay as written. The origin is file:line, a
variable, a flag, or default.

In a pipe each setting is one line: key, value and origin, separated by tabs.
Exit codes: 0, 2 (a mistake in the settings, no such setting).`,
		Example: `  toolreg settings show policy
  toolreg settings show mcpServers.github --json`,
		ValidArgsFunction: complete.Args(e.Complete().SettingKeys()),
		RunE:              func(cmd *cobra.Command, argv []string) error { return runShow(cmd.Context(), e, argv) },
	}, &cobra.Command{
		Use:   "path",
		Short: "List the settings files and the state of each",
		Long: `List the places where settings are read, lowest precedence first, and the state
of each file: read, absent, skipped or refused, and why.

In a pipe each place is one line: state, scope, path and reason, separated by
tabs. Exit codes: 0, 2.`,
		Example: "  toolreg settings path",
		Args:    cli.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runPath(e) },
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a settings file",
		Long: `Print the JSON Schema (draft 2020-12) of a settings file, for editors and checks.
No settings are read. Exit codes: 0, 2.`,
		Example: "  toolreg settings schema > settings.schema.json",
		Args:    cli.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runSchema(e.IO) },
	}, newEditCommand(e), newSetCommand(e), newUnsetCommand(e))
	return cmd
}

// shownSetting is one setting in the JSON of settings show.
type shownSetting struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Origin string          `json:"origin"`           // file:line, a variable, a flag, or default
	Others []string        `json:"others,omitempty"` // for combined values, the origins in earlier scopes
	Scope  settings.Scope  `json:"scope"`
}

func runShow(ctx context.Context, e *cli.Env, keys []string) error {
	e.IO.Page()
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	if err := e.Engine.CheckSettings(ctx, s); err != nil {
		return err
	}
	given, err := e.Config.Context()
	if err != nil {
		return err
	}
	s.Merged().AddNamed("context", given)
	values, err := chosenSettings(e.IO, s, keys)
	if err != nil {
		return err
	}
	shown := []shownSetting{}
	t := ui.Table{Header: []string{"KEY", "VALUE", "ORIGIN"}, Whole: []string{"VALUE"}}
	for _, v := range values {
		var earlier []string // of a combined value
		for _, o := range v.Others {
			earlier = append(earlier, o.String())
		}
		origin := v.Origin.String()
		shown = append(shown, shownSetting{v.Key, v.JSON, origin, earlier, v.Origin.Scope})
		t.Add(v.Key, string(v.JSON), strings.Join(append(earlier, origin), ", "))
	}
	return e.IO.PrintResult(map[string][]shownSetting{"settings": shown}, &t, "")
}

// chosenSettings returns the settings with the keys in order, or all settings
// without keys.
func chosenSettings(ios *cli.IO, s *settings.Settings, keys []string) ([]merge.Value, error) {
	if len(keys) == 0 {
		return s.Merged().Effective(), nil
	}
	var out []merge.Value
	for _, key := range keys {
		values, err := s.Merged().Find(key)
		if err != nil {
			return nil, unknownKey(err)
		}
		if len(values) == 0 {
			ios.Notef("%s is not set", key)
		}
		out = append(out, values...)
	}
	return out, nil
}

func runPath(e *cli.Env) error {
	options, err := e.Config.Options()
	if err != nil {
		return err
	}
	places, err := settings.Places(options)
	if err != nil {
		return err
	}
	t := ui.Table{Header: []string{"STATE", "SCOPE", "PATH", "REASON"}, Whole: []string{"REASON", "PATH"}}
	for _, p := range places {
		t.Add(string(p.State), p.Scope.String(), p.Path, p.Reason)
	}
	return e.IO.PrintResult(map[string][]settings.Place{"places": cli.OrEmpty(places)}, &t, "")
}

func runSchema(ios *cli.IO) error {
	var b bytes.Buffer
	if err := json.Indent(&b, table.Schema(), "", "  "); err != nil {
		return fmt.Errorf("printing the schema: %w", err)
	}
	return ios.PrintText(table.Schema(), b.String()+"\n")
}
