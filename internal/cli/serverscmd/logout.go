package serverscmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
)

type logoutOptions struct {
	all    bool
	client string // of serve, whose login it is; "" means the person's
}

func newLogoutCommand(e *cli.Env) *cobra.Command {
	o := &logoutOptions{}
	cmd := &cobra.Command{
		Use:   "logout NAME | --all",
		Short: "Log out of a server",
		Long: `Revoke the tokens of a server if its authorization server supports that, and
delete them. --client ends the login of a client of toolreg serve instead. --all ends
every login, including those of clients and of servers that are no longer in the
settings.

Exit codes: 0 (also if there was no login), 1 (one remains), 2, 3 (no such server),
5 (inside a tool's run).`,
		Example: `  toolreg servers logout github
  toolreg servers logout --all`,
		ValidArgsFunction: complete.Arg(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.all == (len(argv) == 1) || len(argv) > 1 {
				return cli.Usage("give the NAME of a server, or --all", "see toolreg servers logout --help")
			}
			if o.all && o.client != "" {
				return cli.Usage("--client needs the NAME of a server", "")
			}
			return runLogout(cmd.Context(), e, argv, o.client)
		},
	}
	cmd.Flags().StringVar(&o.client, "client", "", "log out the client of serve with this `name`, instead of yourself")
	cmd.Flags().BoolVar(&o.all, "all", false, "end every login")
	return cmd
}

// loggedOut is one entry of the JSON of servers logout.
type loggedOut struct {
	Name    string `json:"name,omitempty"`    // name of the server; absent if the settings do not have it
	Client  string `json:"client,omitempty"`  // of serve, whose login it was
	Address string `json:"address,omitempty"` // if there is no name
	Had     bool   `json:"had"`               // whether there was a login
	Revoked bool   `json:"revoked"`           // whether the authorization server revoked the tokens
}

func runLogout(ctx context.Context, e *cli.Env, names []string, client string) error {
	if err := e.Config.RefuseInside("logging out"); err != nil {
		return err
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	done := []loggedOut{}
	for _, name := range names {
		out, err := logout(ctx, e.IO, s, name, client)
		if err != nil {
			return err
		}
		done = append(done, out)
	}
	if len(names) == 0 {
		done, err = logoutAll(ctx, e.IO, s)
	}
	for _, d := range done {
		e.IO.Notef("%s", d.text())
	}
	return cmp.Or(err, e.IO.Report(map[string][]loggedOut{"logouts": done}))
}

func (d loggedOut) text() string {
	which := fmt.Sprintf("server %q", d.Name)
	if d.Name == "" {
		which = d.Address
	}
	which += ofClient(d.Client)
	switch {
	case which == "":
		return "deleted a login that could not be read"
	case !d.Had:
		return "there was no login to " + which
	case d.Revoked:
		return "logged out of " + which + "; its tokens are revoked"
	}
	return "logged out of " + which
}

func logout(ctx context.Context, ios *cli.IO, s *engine.Session, name, client string) (loggedOut, error) {
	out := loggedOut{Name: name, Client: client}
	login, err := s.Logins.To(ctx, name, client)
	if err != nil {
		return out, err
	}
	end, err := login.Logout(ctx)
	if err != nil {
		return out, fmt.Errorf("logging out of server %q: %w", name, err)
	}
	if end.Err != nil {
		source := ""
		if server := s.Servers.Of(name + "__"); server != nil {
			source = server.Name()
		}
		warnLogout(ios, source, end.Err)
	}
	out.Had, out.Revoked = end.Had, end.Revoked
	if client == "" {
		s.Connections.Forget(ctx, name)
	}
	return out, nil
}

func warnLogout(ios *cli.IO, source string, err error) {
	ios.Warn(registry.Warning("not_revoked", source, err.Error(),
		"the login was deleted on this machine; revoke it at the server too"))
}

// logoutAll ends the logins of the servers in the settings first, because their client
// secrets are available, and then all others.
func logoutAll(ctx context.Context, ios *cli.IO, s *engine.Session) ([]loggedOut, error) {
	done := []loggedOut{}
	for _, server := range s.Settings.Entries() {
		out, err := logout(ctx, ios, s, server.Name, "")
		if cause := context.Cause(ctx); cause != nil {
			return done, cause
		}
		if err == nil && out.Had { // failures are handled below
			done = append(done, out)
		}
	}
	rest, err := s.Logins.Store().LogoutRest(ctx)
	for _, r := range rest {
		if r.Err != nil {
			warnLogout(ios, "", r.Err)
		}
		done = append(done, loggedOut{Address: r.Server, Client: r.Client, Had: true, Revoked: r.Revoked})
	}
	return done, err
}
