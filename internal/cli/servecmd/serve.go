// Package servecmd implements the command serve, which offers the registry as an MCP
// server.
package servecmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/console"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/settings"
)

// New returns the command serve.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Annotations: map[string]string{cli.Topic: "serving"},
		Use:         "serve",
		Short:       "Offer all tools as one MCP server",
		Long: `Offer the tools of the registry as one MCP server, so that an agent needs a single
entry in its settings. The rules, hooks and limits of the settings apply to every
call, and the audit log records it with the client's name. If a call needs
confirmation, the client's user is asked; a client that cannot ask gets an error
that names the rule.

By default the server uses stdin and stdout. With --http it listens on an address, by
default only of this machine, at the path /mcp, and clients send a bearer token.
Without --token-file a token is generated and printed to stderr. GET /healthz says
whether new calls are accepted. After SIGTERM running calls can finish.

Exit codes: 0, 1, 2, 3 (no such server), 143.`,
		Example: `  toolreg serve
  toolreg serve --print-config claude
  toolreg serve --http 127.0.0.1:8080 --token-file ~/.config/toolreg/tokens
  toolreg serve --expose search --always 'read_*'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkFlags(); err != nil {
				return err
			}
			if o.printConfig != "" {
				return printConfig(e, o, cmd)
			}
			return run(cmd.Context(), e, o)
		},
	}
	cmd.AddCommand(newToken(e))
	o.Flags(e, cmd, "strict")
	cli.PresetFlag(cmd, &o.preset)
	f := cmd.Flags()
	f.StringVar(&o.http, "http", "", "listen on this `address`, such as 127.0.0.1:8080 or :0 for any port")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` of bearer tokens, one per line: NAME TOKEN")
	f.StringVar(&o.profile, "profile", "", "offer the client on stdin this `profile` of serve.profiles")
	f.BoolVar(&o.noAuth, "no-auth", false, "accept clients without a token; only on a loopback address")
	f.StringVar(&o.expose, "expose", exposeAll,
		"offer these `tools`: all, search (three that reach the others) or scripts (run_script)")
	f.StringArrayVar(&o.always, "always", nil,
		"with --expose search or scripts: offer tools that match this `glob` too")
	f.DurationVar(&o.drain, "drain", 30*time.Second,
		"how long running calls may take after SIGTERM or the end of stdin")
	f.StringVar(&o.printConfig, "print-config", "",
		"print the entry for this `client`, with the other flags, and exit: "+strings.Join(clientNames(), ", "))
	f.StringVar(&o.metrics, "metrics", "",
		"serve metrics for Prometheus at /metrics of this `address`, or on that of --http: on")
	f.BoolVar(&o.console, "console", false,
		"with --http: serve a page at /console that shows calls and servers, and where people answer questions")
	f.StringVar(&o.logLevel, "log-level", "warn",
		"log to stderr from this `level` on: debug (messages), info (calls), warn (refusals) or error; -v is debug")
	f.StringVar(&o.logFormat, "log-format", "text", "`format` of the log: text or json")
	complete.Flag(cmd, "log-level", complete.Words(levels...))
	complete.Flag(cmd, "log-format", complete.Words("text", "json"))
	complete.Flag(cmd, "token-file", complete.Files)
	complete.Flag(cmd, "expose",
		complete.Words(exposeAll+"\tevery tool",
			exposeSearch+"\tthree tools that find, describe and call the others",
			exposeScripts+"\ta tool that runs scripts over the others"))
	complete.Flag(cmd, "always", e.Complete().Tools())
	complete.Flag(cmd, "print-config", complete.Words(clientNames()...))
	return cmd
}

func run(ctx context.Context, e *cli.Env, o *options) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil || e.IO.Verbose {
		level = slog.LevelDebug
	}
	e.IO.LogAt(level, o.logFormat == "json")
	e.Engine.Scrape = o.metrics != ""
	watch := cli.NewWatcher(e)
	view, err := o.newConsole(e)
	if err != nil {
		return err
	}
	from, err := o.session(ctx, e, view, nil)
	if err != nil {
		return err
	}
	watch.Add(from)
	if err := o.CheckSource(from); err != nil {
		return err
	}
	if err := o.checkProfiles(from); err != nil {
		return err
	}
	if _, err := from.Calls.Policy(nil); err != nil {
		return err
	}
	cli.CollectLater()
	set := from.Settings.Serve
	if from.Store != nil {
		defer from.Store.Close()
		if !awaitStore(ctx, e, from.Store) {
			return nil
		}
	}
	questions, err := questions(ctx, e, from)
	if err != nil {
		return err
	}
	if err := o.useOAuth(e, set.OAuth); err != nil {
		return err
	}
	if err := o.useTLS(e, set); err != nil {
		return err
	}
	var messages *slog.Logger
	if level == slog.LevelDebug {
		messages = e.IO.Log
	}
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	warn := func(d registry.Diagnostic) {
		if serving.Err() == nil { // what fails because of the end is not worth a warning
			e.IO.Warn(d)
		}
	}
	var warned sync.Once
	selected := func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
		o.namesBuiltins.Store(o.namesBuiltIn(s.Settings)) // also for what is reached through other tools
		reg, found, err := o.selected(ctx, s, o.expose, entries(o.always, "--always"), o.offers)
		if err == nil && o.overHTTP() && len(s.Settings.Profiles) == 0 && !s.HasClients() &&
			!slices.ContainsFunc(reg.Tools(), o.offers) {
			warned.Do(func() {
				warn(registry.Warning("nothing_offered", "",
					"no tools are offered: over HTTP the built-in ones are left out unless they are named",
					"add servers to the settings; --preset full, coreTools or a profile of serve.profiles names built-in tools"))
			})
		}
		return reg, found, err
	}
	server := serve.New(serve.Options{
		Whole:    offer.Profile{Select: selected, Tools: o.reachable(), Servers: o.MatchesServer},
		Profiles: o.profiles, Initial: o.profiles(from), Profile: o.profile, Version: e.Version, Asking: o.asking(e),
		Limits: limits(set), Console: view != nil, Questions: questions, Log: e.IO.Log, Messages: messages, Warn: warn,
	})
	load := sync.OnceValue(func() error { return server.Load(serving, from) })
	if o.NeedsRegistry() { // load first, so that the error is reported even if the client disconnects at once
		if err := load(); err != nil {
			return err
		}
	}
	var failed error // the error of loading, if no tools could be offered
	var loading sync.WaitGroup
	loading.Go(func() {
		if err := load(); err != nil {
			if serving.Err() == nil {
				failed = err
			}
			end(err)
			return
		}
		watch.Follow(serving, from, func(earlier *engine.Session) (*engine.Session, error) {
			return o.reload(serving, e, server, view, earlier)
		})
	})
	switch {
	case o.overHTTP():
		err = o.serveHTTP(serving, e, server, view)
	default:
		var stop func()
		if stop, err = o.serveMetrics(serving, e, server, nil); err == nil {
			err = server.Stdio(serving, e.IO.In, e.IO.Out.Unescaped(), o.drain)
			stop()
		}
	}
	end(nil)
	loading.Wait() // sources must not be started while the sessions are closed
	server.Wait()
	return cmp.Or(failed, err)
}

// session creates a session whose questions go to clients. It replaces earlier, if that is not nil.
func (o *options) session(ctx context.Context, e *cli.Env,
	view *console.Console, earlier *engine.Session) (*engine.Session, error) {
	options := cli.SessionOptions{
		Options: engine.Options{
			Preset: o.preset, Apps: true, Guard: true, Shared: o.overHTTP(),
			ClientLogins: o.overHTTP() && o.tokenFile != "", Earlier: earlier,
		},
		Asker: question.Asker{Log: e.IO.Log}, ServerLog: question.LogTo,
	}
	if view != nil {
		set, _, err := e.Config.Load(ctx)
		if err != nil {
			return nil, err
		}
		options.Asker, options.Began = question.Asker{Console: view,
			Patience: set.Approval.Timeout, Log: e.IO.Log}, view.Began
	}
	return e.Engine.Session(ctx, options)
}

// asking returns which questions clients may be asked. Inside a tool's run they are asked nothing,
// because the client may be the tool itself.
func (o *options) asking(e *cli.Env) question.Asking {
	switch {
	case !process.InsideTool(e.Config.Environ):
		return question.AskAll
	case !o.overHTTP() && process.ParentFeedsStdin():
		return question.AskOnce
	}
	e.IO.Warn(registry.Warning("inside_tool_run", "",
		"this server was started by a tool, so its clients are not asked: calls that need approval fail", ""))
	return question.AskNobody
}

// reload creates a session from the changed settings and offers its tools.
func (o *options) reload(ctx context.Context, e *cli.Env, server *serve.Server,
	view *console.Console, earlier *engine.Session) (*engine.Session, error) {
	from, err := e.Engine.Again(func() (*engine.Session, error) { return o.session(ctx, e, view, earlier) })
	if err != nil {
		return nil, err
	}
	key, err := stateKey(ctx, from)
	if err == nil {
		err = o.checkProfiles(from)
	}
	if err == nil {
		if err = o.change(e, from.Settings.Serve, earlier.Settings.Serve); err == nil {
			err = server.Load(ctx, from)
		}
		if err != nil {
			_ = o.change(e, earlier.Settings.Serve, earlier.Settings.Serve) // they were in effect before
		}
	}
	if err != nil {
		from.Close()
		return nil, err
	}
	server.ChangeStateKey(key)
	server.SetLimits(limits(from.Settings.Serve))
	return from, nil
}

// change applies changed settings of the connections to clients.
func (o *options) change(e *cli.Env, now, earlier settings.Serve) error {
	switch {
	case !o.overHTTP():
		return nil
	case now.Store.Value != earlier.Store.Value ||
		now.Store.Value != "" && now.StateKey.Value != earlier.StateKey.Value:
		return errors.New("serve.store, or serve.stateKey with it, was changed, which needs a restart of serve")
	case usesTLS(now) != (o.tls != nil):
		return errors.New("serve.tls was added or removed, which needs a restart of serve")
	case o.tls != nil:
		files, err := certificateFiles(e, now)
		if err != nil {
			return err
		}
		if err := o.tls.Change(files); err != nil {
			return fmt.Errorf("%s: serve.tls: %w", now.Cert.Origin, err)
		}
	}
	return o.changeOAuth(now.OAuth)
}

func limits(set settings.Serve) serve.Limits {
	return serve.Limits{
		Idle:       set.Idle,
		Session:    set.Session,
		KeepAlive:  set.KeepAlive,
		MaxClients: set.MaxClients,
		MaxCalls:   set.MaxCalls,
	}
}

// serveHTTP serves until ctx is done, then waits for running calls.
func (o *options) serveHTTP(ctx context.Context, e *cli.Env, server *serve.Server, view *console.Console) error {
	ios := e.IO
	listener, err := o.listen(ctx)
	if err != nil {
		return err
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	loopback := address == nil || address.IP.IsLoopback()
	tokens, made, err := o.tokens(ios, func(profile string) bool { return server.Profiles().Has(profile) }, loopback)
	if err != nil {
		_ = listener.Close()
		return err
	}
	o.tokenList.Store(tokens)
	scheme := "http"
	if o.tls != nil {
		listener, scheme = tls.NewListener(listener, o.tls.Config()), "https"
	}
	ios.Announce("listening on %s://%s/mcp", scheme, listener.Addr())
	if made != "" {
		ios.Announce("bearer token: %s", made)
	}
	opts := serve.HTTPOptions{
		Tokens:    tokens,
		OAuth:     o.oauth,
		Loopback:  loopback,
		LoginPage: loginPage,
	}
	if o.metrics == metricsOn {
		opts.Metrics = metricsOf(e, server)
	}
	if view != nil {
		opts.Console = pages(e, server, view)
		ios.Announce("console at %s://%s%s", scheme, listener.Addr(), serve.ConsolePath)
	}
	handler := server.HTTP(opts)
	stop, err := o.serveMetrics(ctx, e, server, handler)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer stop()
	following, unfollow := context.WithCancel(context.WithoutCancel(ctx)) // also while calls end
	var tokensFollowed sync.WaitGroup
	tokensFollowed.Go(func() { handler.FollowTokens(following) })
	defer tokensFollowed.Wait()
	defer unfollow()
	leave, err := handler.Join(context.WithoutCancel(ctx))
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer leave()
	over := make(chan error, 1)
	hs := handler.Server()
	go func() { over <- hs.Serve(listener) }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	return o.drained(ctx, hs, handler)
}

func usesTLS(set settings.Serve) bool {
	return set.Cert.Value != "" || set.Key.Value != "" || set.ClientCA.Value != ""
}

// useTLS makes the server speak TLS if the settings say so.
func (o *options) useTLS(e *cli.Env, set settings.Serve) error {
	if !o.overHTTP() || !usesTLS(set) {
		return nil
	}
	files, err := certificateFiles(e, set)
	if err != nil {
		return err
	}
	o.tls, err = transport.ReadCertificates(files, func(err error) {
		e.IO.Warn(registry.Warning("certificates_unread", "", err.Error(),
			"the earlier certificates stay in use until the files are corrected"))
	})
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("%s: serve.tls: %w", set.Cert.Origin, err)}
	}
	return nil
}

func certificateFiles(e *cli.Env, set settings.Serve) (transport.CertificateFiles, error) {
	environ := expand.NewEnviron(e.Config.Environ)
	var failed []error
	path := func(from settings.Entry) string {
		name, err := expand.Word(from.Value, environ.Lookup)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: serve.tls: %w", from.Origin, err))
		}
		if from.Value == "" || filepath.IsAbs(name) || from.Origin.Line == 0 { // not of a file
			return name
		}
		return filepath.Join(filepath.Dir(from.Origin.Name), name)
	}
	if set.Cert.Value == "" || set.Key.Value == "" {
		given := cmp.Or(set.Cert, set.Key, set.ClientCA)
		return transport.CertificateFiles{}, cli.Usage(given.Origin.String()+": serve.tls needs cert and key",
			"toolreg settings show serve.tls shows what is set")
	}
	files := transport.CertificateFiles{Cert: path(set.Cert), Key: path(set.Key), ClientCA: path(set.ClientCA)}
	if failed != nil {
		return transport.CertificateFiles{}, &cli.UsageError{Err: errors.Join(failed...)}
	}
	return files, nil
}

// drained waits for running requests, at most as long as --drain allows.
func (o *options) drained(ctx context.Context, hs *http.Server, handler *serve.HTTP) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
	defer cancel()
	left := handler.Drain(limit)
	flush, cancelFlush := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancelFlush()
	_ = hs.Shutdown(flush) // unlike Close, it lets the last responses be sent in full
	_ = hs.Close()
	if left > 0 {
		return fmt.Errorf("calls that were still running after %s (--drain) have been ended: %d", o.drain, left)
	}
	return nil
}

// listen opens the address, or uses the socket that systemd passed.
func (o *options) listen(ctx context.Context) (net.Listener, error) {
	if os.Getenv("LISTEN_FDS") != "" {
		if os.Getenv("LISTEN_FDS") != "1" || os.Getenv("LISTEN_PID") != fmt.Sprint(os.Getpid()) {
			return nil, cli.Usage("LISTEN_FDS: expected exactly one socket for this process", "")
		}
		const first = 3 // the first descriptor that systemd passes
		file := os.NewFile(first, "LISTEN_FDS")
		defer file.Close()
		return net.FileListener(file)
	}
	return listenOn(ctx, "--http", o.http)
}

// tokens reads the token file, or generates a token. It returns nil if clients need none of them.
func (o *options) tokens(ios *cli.IO, hasProfile func(string) bool,
	loopback bool) (tokens *auth.Tokens, made string, err error) {
	switch {
	case o.oauth != nil:
		return nil, "", nil
	case o.noAuth && !loopback:
		return nil, "", cli.Usage("--no-auth: the address can be reached from other machines",
			"listen on 127.0.0.1, or use --token-file")
	case o.noAuth:
		return nil, "", nil
	case o.tokenFile != "":
		tokens, err := auth.ReadTokens(o.tokenFile, hasProfile, func(err error) {
			ios.Warn(registry.Warning("tokens_unread", "", err.Error(),
				"the earlier tokens stay valid until the file is corrected"))
		})
		if err != nil {
			return nil, "", &cli.UsageError{Err: err}
		}
		return tokens, "", nil
	}
	made = rand.Text()
	return auth.NewTokens(map[string]string{caller.Local: made}), made, nil
}
