package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/toolreg/toolreg/internal/state"
)

// Env holds what a command may need. Everything costly is created when first used, so
// that a command pays only for what it uses. The functions of a command take only the
// parts that they use.
type Env struct {
	Version string
	Argv    []string // the command line, without the program
	IO      *IO      // the streams, and printing
	Person  *Person  // questions to the person
	Config  *Config  // flags, environment and settings
	Trust   *Trust   // trust in projects
	Engine  *Engine  // the session

	helpErr error // why a command's own help could not be shown
}

func newEnv(version string, s Streams, environ []string) *Env {
	e := &Env{Version: version, IO: newIO(s, environ)}
	e.Person = &Person{io: e.IO}
	folders := &state.Folders{Environ: environ}
	e.Trust = &Trust{person: e.Person, folders: folders}
	e.Config = &Config{io: e.IO, person: e.Person, trust: e.Trust, Environ: environ, Folders: folders,
		piped: map[string][]byte{}}
	e.Engine = &Engine{
		version:    version,
		start:      time.Now(),
		io:         e.IO,
		person:     e.Person,
		config:     e.Config,
		recordings: recordings{config: e.Config},
	}
	e.IO.context = func() context.Context { return e.Config.command.Context() }
	return e
}

// prepare reads the global flags and their variables without opening any file.
func (e *Env) prepare(cmd *cobra.Command) error {
	if err := checkEmpty(cmd.Flags()); err != nil {
		return err
	}
	if err := e.Config.follow(cmd); err != nil {
		return err
	}
	e.Person.NonInteractive = e.Config.Globals.NonInteractive
	if err := e.IO.follow(e.Config.Globals, e.Config.globalFlags().Changed("jq")); err != nil {
		return err
	}
	if err := e.Config.checkFlags(); err != nil {
		return err
	}
	e.IO.live()
	return nil
}

// checkEmpty returns an error for a flag with an empty value, such as an unset variable of a shell. It does
// not mean the default: without its --replay or --profile a command would do more than was asked for.
func checkEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if f.Value.Type() != "string" || f.Name == "params" || f.Name == "description" {
			return
		}
		if len(values) == 0 || slices.Contains(values, "") {
			err = Usage("--"+f.Name+" is empty", "give it a value, or leave it out")
		}
	})
	return err
}
