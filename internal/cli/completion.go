package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/settings"
)

// Complete completes the words of commands.
func (e *Env) Complete() complete.Completer { return complete.New(completing{e}) }

// completing is a run that completes words. It implements [complete.Env].
type completing struct{ *Env }

// Absolute implements [complete.Env].
func (e completing) Absolute(path string) string { return e.Config.Absolute(path) }

// CompletionSettings implements [complete.Env].
func (e completing) CompletionSettings(cmd *cobra.Command) (*settings.Settings, error) {
	if err := e.prepareCompletion(cmd); err != nil {
		return nil, err
	}
	set, _, err := e.Config.Load(cmd.Context())
	return set, err
}

// CompletionSession implements [complete.Env]. The session starts nothing.
func (e completing) CompletionSession(cmd *cobra.Command) (*engine.Session, error) {
	if err := e.prepareCompletion(cmd); err != nil {
		return nil, err
	}
	return e.Engine.Session(cmd.Context(), SessionOptions{Options: engine.Options{Still: true, Preset: presetOf(cmd.Flags())}, InDocs: true})
}

// prepareCompletion reads the global flags. Nothing is asked or printed.
func (e completing) prepareCompletion(cmd *cobra.Command) error {
	if err := e.prepare(cmd); err != nil {
		return err
	}
	e.Person.NonInteractive, e.IO.Quiet, e.IO.ErrTTY = true, true, false
	return nil
}

// presetOf returns the preset on the line, "" if it is not valid: the command
// reports that when it runs.
func presetOf(f *pflag.FlagSet) string {
	preset, err := f.GetString("preset")
	if err != nil || engine.CheckPreset(preset) != nil {
		return ""
	}
	return preset
}
