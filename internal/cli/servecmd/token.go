package servecmd

import (
	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

// madeToken is the JSON output of serve token.
type madeToken struct {
	Name  string `json:"name"`
	Token string `json:"token"` // for the client
	Line  string `json:"line"`  // for the token file
}

// newToken returns the command serve token.
func newToken(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "token NAME",
		Short: "Make a bearer token for a client of serve",
		Long: `Make a bearer token for a client of serve, and print it with the line for the file of
--token-file, which has only its hash. Nothing is stored: give the token to the
client, and add the line to the file.

Exit codes: 0, 2.`,
		Example: `  toolreg serve token alice
  toolreg serve token alice --jq .line >> ~/.config/toolreg/tokens`,
		Args: cli.ArgsBetween(1, 1, "one NAME"),
		RunE: func(_ *cobra.Command, argv []string) error {
			token, line, err := auth.MakeToken(argv[0])
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			if e.IO.JSON {
				return e.IO.PrintJSON(madeToken{argv[0], token, line})
			}
			e.IO.Note("toolreg: the token for the client, and its line for the token file:\n")
			_, err = e.IO.Out.Write([]byte(token + "\n" + line + "\n"))
			return err
		},
	}
}
