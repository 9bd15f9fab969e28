package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

type logoutOptions struct{ all bool }

func newServersLogoutCommand(a *app) *cobra.Command {
	o := &logoutOptions{}
	cmd := &cobra.Command{
		Use:   "logout NAME | --all",
		Short: "End the login to a server",
		Long: `Revoke the tokens of a server where its authorization server takes that, and
forget them. --all ends every login, also those of servers that are in no
settings any more.

Exit codes: 0 (also where there was no login), 1, 2, 3 (no such server), 5 (inside
a tool's run).`,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.all == (len(argv) == 1) || len(argv) > 1 {
				return &usageError{err: errors.New("toolreg servers logout wants the NAME of a server, or --all"), hint: "see toolreg servers logout --help"}
			}
			return runServersLogout(cmd.Context(), a, argv)
		},
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "end every login")
	return cmd
}

// loggedOut is one entry of the JSON of servers logout.
type loggedOut struct {
	Name    string `json:"name,omitempty"`    // of the server; absent where no settings have it
	Address string `json:"address,omitempty"` // in place of the name
	Had     bool   `json:"had"`               // there was a login
	Revoked bool   `json:"revoked"`           // the authorization server revoked the tokens
}

func runServersLogout(ctx context.Context, a *app, names []string) error {
	if err := a.refuseInside("logging out"); err != nil {
		return err
	}
	done := []loggedOut{}
	for _, name := range names {
		s, server, err := a.remoteServer(ctx, name)
		if err != nil {
			return err
		}
		out, err := a.logout(ctx, s, server)
		if err != nil {
			return err
		}
		done = append(done, out)
	}
	if len(names) == 0 {
		var err error
		if done, err = a.logoutAll(ctx); err != nil {
			return err
		}
	}
	if a.globals.JSON {
		return a.printJSON(map[string][]loggedOut{"logouts": done})
	}
	for _, d := range done {
		if !a.globals.Quiet {
			a.note("toolreg: " + terminal.Line(d.text()) + "\n")
		}
	}
	return nil
}

func (d loggedOut) text() string {
	which := fmt.Sprintf("server %q", d.Name)
	if d.Name == "" {
		which = d.Address
	}
	switch {
	case !d.Had:
		return "there was no login to " + which
	case d.Revoked:
		return "logged out of " + which + "; its tokens are revoked"
	}
	return "logged out of " + which
}

// logout ends the login to a server of the settings.
func (a *app) logout(ctx context.Context, s *settings.Settings, server settings.Server) (loggedOut, error) {
	out := loggedOut{Name: server.Name}
	expanded, err := settings.NewExpander(s.ProjectRoot, a.environ).Server(ctx, server)
	if err != nil {
		return out, err
	}
	end, err := a.oauthClient(expanded, a.logins()).Logout(ctx)
	if err != nil {
		return out, fmt.Errorf("logging out of server %q: %w", server.Name, err)
	}
	if end.Err != nil {
		a.warnLogout(server.Name, end.Err)
	}
	out.Had, out.Revoked = end.Had, end.Revoked
	a.forgetListing(ctx, s, server)
	return out, nil
}

func (a *app) warnLogout(name string, err error) {
	source := ""
	if name != "" {
		source = registry.MCPPrefix + name
	}
	a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "not_revoked", Source: source, Message: err.Error(), Hint: "the login is forgotten here; end it there too"})
}

// logoutAll ends the logins of the servers in the settings, whose secrets can be
// had, and then those that are left.
func (a *app) logoutAll(ctx context.Context) ([]loggedOut, error) {
	s, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	done := []loggedOut{}
	for _, server := range s.Servers {
		if server.URL == "" && server.HTTPURL == "" {
			continue
		}
		out, err := a.logout(ctx, s, server)
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if err == nil && out.Had { // what could not be done here is done below
			done = append(done, out)
		}
	}
	rest, err := a.logins().LogoutRest(ctx)
	for _, address := range rest {
		done = append(done, loggedOut{Address: address, Had: true})
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		a.warnLogout("", err)
	}
	return done, nil
}
