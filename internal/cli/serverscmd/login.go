package serverscmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui"
)

// loginTimeout is how long a login may take without --timeout.
const loginTimeout = 5 * time.Minute

type loginOptions struct {
	noBrowser bool
	scopes    []string
	forClient string // client of serve whose login it is; "" means the person's
}

func newLoginCommand(e *cli.Env) *cobra.Command {
	o := &loginOptions{}
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to a server",
		Long: `Log in to an MCP server in your browser (OAuth 2.1) and store the tokens. All
commands then use them for that server and renew them.

With --no-browser, toolreg prints the URL to open on stderr. After the login, paste
the URL from the browser's address bar at the prompt, or write it to stdin if stdin
is not a terminal. --timeout limits the whole login; the default is 5m.

With --client the login is that of a client of toolreg serve, by the name of its
token. It needs oauth.per: client in the settings of the server.

Exit codes: 0 (also if no login is needed), 1, 2, 3 (no such server), 5 (the
login was refused, or inside a tool's run), 6 (with --non-interactive), 8 (the
server failed), 124, 130.`,
		Example: `  toolreg servers login github
  toolreg servers login github --scope "repo read:org"
  ssh -t host toolreg servers login github --no-browser`,
		Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
		ValidArgsFunction: complete.Arg(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runLogin(cmd.Context(), e, o, argv[0])
		},
	}
	cmd.Flags().StringVar(&o.forClient, "client", "", "log in the client of serve with this `name`, instead of yourself")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "print the URL instead of opening a browser")
	cmd.Flags().StringArrayVar(&o.scopes, "scope", nil,
		"request this `scope` instead of those of the server and settings (repeatable)")
	return cmd
}

// loggedIn is the JSON of servers login.
type loggedIn struct {
	Name     string     `json:"name"`
	Client   string     `json:"client,omitempty"` // of serve, whose login it is
	State    string     `json:"state"`            // logged in, not needed
	Address  string     `json:"address,omitempty"`
	Issuer   string     `json:"issuer,omitempty"`
	Resource string     `json:"resource,omitempty"`
	Scopes   []string   `json:"scopes,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"` // of the access token
	Renews   bool       `json:"renews,omitempty"`  // without a person
	Tools    int        `json:"tools"`
}

func runLogin(ctx context.Context, e *cli.Env, o *loginOptions, name string) error {
	if err := e.Config.RefuseInside("logging in"); err != nil {
		return err
	}
	var err error
	if o.scopes, err = oauth.ParseScopes(o.scopes); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--scope: %w", err)}
	}
	l, err := newLogin(ctx, e, o, name)
	if err != nil {
		return err
	}
	limit := loginTimeout
	if e.Config.Globals.TimeoutSet {
		limit = cmp.Or(e.Config.Globals.Timeout, sources.Endless)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w: no login was completed within %s", exec.ErrTimeout, limit))
	defer cancel()
	result, err := l.run(ctx)
	if errors.Is(err, oauth.ErrRefused) {
		err = fmt.Errorf("%w: %w", registry.ErrDenied, err)
	}
	if err != nil {
		return err
	}
	return l.print(result)
}

// login is the state of one servers login.
type login struct {
	*loginOptions
	ios         *cli.IO
	person      *cli.Person
	browser     ui.Browser
	connections *sources.Connections
	server      settings.Server
	options     mcpclient.Options
	logins      *sources.Logins
	client      *oauth.Client   // nil before the first connection over HTTP
	api         *openapi.Source // nil for an MCP server
}

func notStarted(server settings.Server) error {
	why, _ := server.Off()
	return &cli.UsageError{Err: fmt.Errorf("server %q is not started: %s", server.Name, why)}
}

// newLogin returns a login to an MCP server, or to an API, whose settings say that it needs one.
func newLogin(ctx context.Context, e *cli.Env, o *loginOptions, name string) (*login, error) {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return nil, err
	}
	l := &login{loginOptions: o, ios: e.IO, person: e.Person, browser: ui.Browser{Environ: e.Config.Environ},
		connections: s.Connections, logins: s.Logins}
	kind := "server"
	if api := s.Settings.API(name); api != nil {
		kind, l.server = "API", api.Server
		l.client, err = s.Logins.To(ctx, name, o.forClient)
		for _, source := range s.Servers.APIs() {
			if source.Settings().Name == name {
				l.api = source
			}
		}
	} else if l.server, err = s.Logins.Remote(name); err == nil {
		err = sources.CheckClient(l.server, o.forClient)
	}
	switch attended := l.server.OAuth == nil || l.server.OAuth.Grant == settings.GrantAuthorizationCode; {
	case err != nil:
		return nil, err
	case l.server.IsOff():
		return nil, notStarted(l.server)
	case e.Person.NonInteractive && attended:
		return nil, fmt.Errorf("logging in to %s %q: %w", kind, name, registry.ErrNeedsConfirmation)
	case l.api == nil:
		l.options = s.Connections.Options(ctx, l.server)
		l.options.Memory, l.options.Keep = nil, nil // query the server itself
	}
	return l, nil
}

// maxLogins limits how often one run requests more scopes.
const maxLogins = 3

// run connects without tokens to learn what the server requires, lets the person log in,
// and connects again with the tokens. The login is successful if the server accepts them.
func (l *login) run(ctx context.Context) (loggedIn, error) {
	out := loggedIn{Name: l.server.Name, Client: l.forClient, State: "not needed"}
	tools, err := l.connect(ctx, true)
	switch {
	case errors.Is(err, registry.ErrNeedsLogin):
	case err != nil:
		return out, err
	case l.client == nil || (l.server.OAuth == nil || !l.server.OAuth.Enabled) && !l.client.Offered(ctx):
		out.Tools = tools
		return out, nil
	}
	for range maxLogins {
		got, loginErr := l.client.Login(ctx, l.ways())
		if loginErr != nil {
			return out, fmt.Errorf("logging in to server %q: %w", l.server.Name, loginErr)
		}
		if out.Client == "" {
			l.connections.Forget(ctx, l.server.Name)
		}
		out.State, out.Address, out.Issuer, out.Resource, out.Scopes, out.Renews = "logged in", got.Server,
			got.Issuer, got.Resource, got.Scopes, got.Renews
		if !got.Expires.IsZero() {
			out.Expires = &got.Expires
		}
		if out.Tools, err = l.connect(ctx, false); !l.again(ctx, err) {
			break
		}
	}
	return out, err
}

// again reports whether another login could succeed.
func (l *login) again(ctx context.Context, err error) bool {
	return errors.Is(err, registry.ErrNeedsLogin) && (l.client.WantsMore() && len(l.scopes) == 0 || l.client.Moved(ctx))
}

// connect lists the server's tools, without or with the tokens.
func (l *login) connect(ctx context.Context, anonymous bool) (tools int, err error) {
	if l.api != nil && anonymous {
		return 0, registry.ErrNeedsLogin // no request could tell
	}
	if l.api != nil {
		list, _, err := l.api.Discover(ctx)
		return len(list), err
	}
	o := l.options
	o.Auth = func(s settings.Server) wire.Authorizer {
		if l.client == nil {
			l.client = l.logins.Client(s).For(l.forClient)
		}
		if anonymous {
			return oauth.Probe{Client: l.client}
		}
		return l.client
	}
	source := mcpclient.New(o)
	defer source.Close()
	done := l.ios.Screen.Watch()
	defer done()
	list, _, err := source.Discover(ctx)
	return len(list), err
}

// ways returns the options for reaching the person.
func (l *login) ways() oauth.LoginOptions {
	o := oauth.LoginOptions{Scopes: l.scopes}
	opened := false
	if !l.noBrowser {
		o.Browse = func(ctx context.Context, address string) error {
			err := l.browser.Open(ctx, address)
			opened = err == nil
			if err != nil {
				l.ios.Log.Debug("no browser", "err", err)
			}
			return nil // the URL is printed, and the person may open it
		}
	}
	if tty, err := ui.OpenTTY(); err == nil && !l.person.NonInteractive {
		_ = tty.Close()
		o.Agree = l.agree
	}
	o.Paste = func(ctx context.Context, address string) (string, error) {
		l.show(address, opened)
		switch {
		case l.ios.InTTY:
			return l.ask(ctx)
		case l.noBrowser:
			return l.readLine(ctx)
		}
		return "", ui.ErrNoAnswer
	}
	return o
}

// agree asks whether an authorization server may receive a secret of the
// settings.
func (l *login) agree(ctx context.Context, issuer, setting string) (bool, error) {
	tty, err := l.person.OpenTTY()
	if err != nil {
		return false, err
	}
	defer tty.Close()
	host := issuer
	if u, err := url.Parse(issuer); err == nil {
		host = u.Host
	}
	host = ui.Line(host)
	server := ui.Line(l.server.Name)
	return cli.AskYes(ctx, tty, ui.Query{
		Text: fmt.Sprintf(
			"\nServer %q names the authorization server %s (%s), which your settings do not name (oauth.issuer).\n\n",
			server, host, ui.Line(issuer)),
		About:    fmt.Sprintf("Logging in to server %q at %s\n", server, host),
		Question: fmt.Sprintf("Send your %s to %s?", setting, host),
	})
}

// loginNotice is the JSON that tells a script which URL to open.
type loginNotice struct {
	Server  string `json:"server"`
	Address string `json:"address"`
}

// show prints the URL to open. It is part of the dialog, so it is printed even
// with --quiet.
func (l *login) show(address string, opened bool) {
	if l.ios.JSON {
		l.ios.NoteJSON(map[string]loginNotice{"login": {l.server.Name, address}})
		return
	}
	text := "toolreg: open this URL to log in to server %q:\n%s\n"
	if opened {
		text = "toolreg: opening your browser to log in to server %q; if it does not open, go to this URL:\n%s\n"
	}
	l.ios.Note(fmt.Sprintf(text, ui.Line(l.server.Name), ui.Line(address)))
}

func (l *login) ask(ctx context.Context) (string, error) {
	tty, err := l.person.OpenTTY()
	if err != nil {
		return "", err
	}
	defer tty.Close()
	return tty.Ask(ctx,
		"Log in there. If the browser cannot connect back to this machine, paste the URL from its address bar: ")
}

// readLine reads a line of stdin. An abandoned read ends with the process.
func (l *login) readLine(ctx context.Context) (string, error) {
	return timing.UntilDone(ctx, func() (string, error) {
		text, err := bufio.NewReaderSize(l.ios.In, 64<<10).ReadString('\n')
		if strings.TrimSpace(text) != "" {
			err = nil
		}
		return text, err
	})
}

// ofClient names the client whose login it is; "" for the person's.
func ofClient(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" for client %q", name)
}

func (l *login) print(out loggedIn) error {
	text := fmt.Sprintf("logged in to server %q at %s%s; it has %s",
		out.Name, out.Issuer, ofClient(out.Client), text.Count(out.Tools, "tool"))
	if len(out.Scopes) > 0 {
		text += "; scope " + strings.Join(out.Scopes, " ")
	}
	if out.State == "not needed" {
		text = fmt.Sprintf("server %q needs no login", out.Name)
		if l.client == nil {
			text += ": its settings have an Authorization header"
		}
	}
	l.ios.Notef("%s", text)
	return l.ios.Report(out)
}
