package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/settings"
)

func newSettingsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Effective settings, with the origin of each value",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "show [KEY…]",
		Short: "Print the effective settings, each with the place it comes from",
		Long: `Print every setting that has a value, or those named: a setting by its name or
twin, a group such as policy, or one entry such as mcpServers.NAME. Values are
JSON with secrets masked; variables stay as written. The origin is file:line, a
variable, a flag, or default.

In a pipe each setting is one line: key, value and origin, separated by tabs.
Exit codes: 0, 2 (a mistake in the settings, no such setting).`,
		RunE: func(cmd *cobra.Command, argv []string) error { return runSettingsShow(cmd.Context(), a, argv) },
	}, &cobra.Command{
		Use:   "path",
		Short: "Print which settings files were looked for, and what became of them",
		Long: `Print where settings are looked for, lowest precedence first, and what became of
each file: read, absent, skipped or refused, and why.

In a pipe each place is one line: state, scope, path and reason, separated by
tabs. Exit codes: 0, 2.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return runSettingsPath(a) },
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a settings file",
		Long: `Print the JSON Schema (draft 2020-12) of a settings file, for editors and checks.
No settings are read. Exit codes: 0, 2.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return runSettingsSchema(a) },
	})
	return cmd
}

// shownSetting is one setting in the JSON of settings show.
type shownSetting struct {
	Key    string          `json:"key"`
	Value  json.RawMessage `json:"value"`
	Origin string          `json:"origin"` // file:line, a variable, a flag, or default
	Scope  settings.Scope  `json:"scope"`
}

func runSettingsShow(ctx context.Context, a *app, keys []string) error {
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	values, err := chosenSettings(a, s, keys)
	if err != nil {
		return err
	}
	if a.globals.JSON {
		shown := []shownSetting{}
		for _, v := range values {
			shown = append(shown, shownSetting{v.Key, v.JSON, v.Origin.String(), v.Origin.Scope})
		}
		return a.printJSON(map[string][]shownSetting{"settings": shown})
	}
	t := table{header: []string{"KEY", "VALUE", "ORIGIN"}}
	for _, v := range values {
		t.add(v.Key, string(v.JSON), v.Origin.String())
	}
	return t.print(a)
}

// chosenSettings are the settings of the keys in their order, all without any.
func chosenSettings(a *app, s *settings.Settings, keys []string) ([]settings.Value, error) {
	if len(keys) == 0 {
		return s.Effective(), nil
	}
	var out []settings.Value
	for _, key := range keys {
		values, err := s.Find(key)
		if _, ok := errors.AsType[*settings.UnknownKeyError](err); ok {
			return nil, &usageError{err: err, hint: "toolreg settings schema lists all settings"}
		}
		if err != nil {
			return nil, err
		}
		if len(values) == 0 && !a.globals.Quiet && !a.globals.JSON {
			a.note(fmt.Sprintf("toolreg: %s is not set\n", key))
		}
		out = append(out, values...)
	}
	return out, nil
}

func runSettingsPath(a *app) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	a.dir = dir
	places, err := settings.Look(a.settingsOptions())
	if err != nil {
		return err
	}
	if a.globals.JSON {
		return a.printJSON(map[string][]settings.Place{"places": orEmpty(places)})
	}
	t := table{header: []string{"STATE", "SCOPE", "PATH", "REASON"}}
	for _, p := range places {
		t.add(string(p.State), p.Scope.String(), p.Path, p.Reason)
	}
	return t.print(a)
}

func runSettingsSchema(a *app) error {
	if a.jq != nil || a.globals.JSON {
		return a.printJSON(settings.Schema())
	}
	var b bytes.Buffer
	if err := json.Indent(&b, settings.Schema(), "", "  "); err != nil {
		return fmt.Errorf("printing the schema: %w", err)
	}
	b.WriteByte('\n')
	_, err := a.out.Write(b.Bytes())
	return err
}
