// Package values expands the strings of the settings when they are used: it replaces
// variables and references to secrets, and composes the environments of child
// processes.
package values

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Expander expands the strings of the settings: variables like [expand.Text], and
// references in values that may be secrets. The zero value finds no variables. An
// Expander is safe for concurrent use if Lookup is.
type Expander struct {
	Lookup  expand.Lookup // nil means no variable is set
	Dir     string        // for relative file: references and the directory of cmd:
	Environ []string      // environment of the programs that cmd: references run

	// Confine returns what confines the commands of cmd: references in settings of a scope. If it is
	// nil, they are not confined.
	Confine func(settings.Scope) process.Confiner

	// Seen is called with each value that a reference names. May be nil.
	Seen func(secret string)

	still bool // run nothing and leave cmd: references unexpanded
}

// WithoutCommands returns an Expander that runs nothing: it leaves cmd: references
// unexpanded.
func (x *Expander) WithoutCommands() *Expander {
	still := *x
	still.still = true
	return &still
}

// NewExpander returns an Expander over an environment of "K=V" entries, which
// is read once. Relative references are resolved against dir, the project root.
func NewExpander(dir string, environ []string) *Expander {
	return &Expander{Lookup: expand.NewEnviron(environ).Lookup, Dir: dir, Environ: process.BaseEnv(environ)}
}

// Expand replaces $VAR, ${VAR} and ${VAR:-default}, as [expand.Text] does.
func (x *Expander) Expand(s string) (string, error) { return expand.Text(s, x.Lookup) }

// Word is Expand for paths and the words of commands, as [expand.Word] is.
func (x *Expander) Word(s string) (string, error) { return expand.Word(s, x.Lookup) }

// Command expands the words of a command. For an unset command it returns nil.
func (x *Expander) Command(c settings.Command) ([]string, error) {
	words, err := expandAll(c.Argv, x.Word)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Origin, err)
	}
	return words, nil
}

// expandAll expands strings. For nil it returns nil.
func expandAll(in []string, expand func(string) (string, error)) (out []string, err error) {
	out = slices.Clone(in)
	for i := range out {
		if out[i], err = expand(out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Pairs expands the values of the setting what, such as env or headers: references and variables.
func (x *Expander) Pairs(ctx context.Context, what string, pairs []settings.Pair) ([]settings.Pair, error) {
	out := slices.Clone(pairs)
	for i, p := range out {
		value, err := x.Secret(ctx, p.Value, p.Origin.Scope)
		switch {
		case err != nil:
		case strings.HasSuffix(what, "headers"):
			err = table.CheckHeaderValue(p.Name, value)
		case strings.ContainsRune(value, 0):
			err = errors.New("the value contains a NUL character")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s.%s: %w", p.Origin, what, p.Name, err)
		}
		out[i].Value = value
	}
	return out, nil
}

// Server expands every string of a server: variables everywhere, references in
// env, headers and the secrets of oauth only. The error names the file and line and
// the setting, and never a value.
func (x *Expander) Server(ctx context.Context, s settings.Server) (settings.Server, error) {
	key := "mcpServers." + s.Name
	var err error
	if s.Env, err = x.Pairs(ctx, key+".env", s.Env); err != nil {
		return settings.Server{}, err
	}
	if s.Headers, err = x.Pairs(ctx, key+".headers", s.Headers); err != nil {
		return settings.Server{}, err
	}
	if err := x.expandServer(ctx, &s); err != nil {
		return settings.Server{}, fmt.Errorf("%s: %s: %w", s.Origin, key, err)
	}
	return s, nil
}

func (x *Expander) expandServer(ctx context.Context, s *settings.Server) (err error) {
	for _, field := range []*string{&s.URL, &s.HTTPURL, &s.Description} {
		if *field, err = x.Expand(*field); err != nil {
			return err
		}
	}
	inArgs := *x
	inArgs.Lookup = func(name string) (string, bool) {
		value, err := x.Lookup.Value(name)
		if err != nil && slices.ContainsFunc(s.Env, func(p settings.Pair) bool { return p.Name == name }) {
			return "${" + name + "}", true // for the program itself, as mcp-remote's documentation has it
		}
		return value, err == nil
	}
	word, arg := x.Word, inArgs.Word
	if s.From != nil { // what comes from a registry is literal
		word, arg = x.Expand, inArgs.Expand
	}
	for _, field := range []*string{&s.Command, &s.Cwd} {
		if *field, err = word(*field); err != nil {
			return err
		}
	}
	if s.Args, err = expandAll(s.Args, arg); err != nil {
		return err
	}
	for _, address := range []string{s.URL, s.HTTPURL} {
		if err := table.CheckURL(strings.ReplaceAll(address, "$", "")); err != nil {
			return err
		}
	}
	s.OAuth, err = x.oauth(ctx, s.OAuth, s.Origin.Scope)
	return err
}

// API expands every string of an API: variables everywhere, references in headers and auth
// only. The error names the file and line and the setting, and never a value.
func (x *Expander) API(ctx context.Context, a settings.API) (settings.API, error) {
	key := "openapi." + a.Name
	var err error
	if a.Headers, err = x.Pairs(ctx, key+".headers", a.Headers); err != nil {
		return settings.API{}, err
	}
	if err := x.expandAPI(ctx, &a); err != nil {
		return settings.API{}, fmt.Errorf("%s: %s: %w", a.Origin, key, err)
	}
	return a, nil
}

func (x *Expander) expandAPI(ctx context.Context, a *settings.API) (err error) {
	if a.Spec, err = x.Word(a.Spec); err != nil {
		return err
	}
	for _, field := range []*string{&a.URL, &a.Description} {
		if *field, err = x.Expand(*field); err != nil {
			return err
		}
	}
	if a.IsRemote() {
		err = table.CheckURL(strings.ReplaceAll(a.Spec, "$", ""))
	}
	if err == nil {
		err = table.CheckURL(strings.ReplaceAll(a.URL, "$", ""))
	}
	if err != nil {
		return err
	}
	a.Auth = slices.Clone(a.Auth)
	for i := range a.Auth {
		if err := x.auth(ctx, &a.Auth[i], a.Origin.Scope); err != nil {
			return fmt.Errorf("auth.%w", err)
		}
		if a.Auth[i].OAuth != nil {
			a.OAuth = a.Auth[i].OAuth
		}
	}
	return nil
}

// auth expands one way to authenticate in place. The error begins with the setting.
func (x *Expander) auth(ctx context.Context, a *settings.Auth, scope settings.Scope) (err error) {
	expand := func(name string, value *string) error {
		if *value, err = x.Secret(ctx, *value, scope); err == nil && table.CheckHeaderValue(name, *value) != nil {
			err = errors.New("the value contains a control character")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if a.Bearer != "" {
		return expand("bearer", &a.Bearer)
	}
	if a.Basic != nil {
		basic := *a.Basic
		a.Basic = &basic
		if err := expand("basic.username", &basic.Username); err != nil {
			return err
		}
		return expand("basic.password", &basic.Password)
	}
	if a.APIKey != nil {
		key := *a.APIKey
		a.APIKey = &key
		return expand("apiKey.value", &key.Value)
	}
	a.OAuth, err = x.oauth(ctx, a.OAuth, scope)
	return err
}

// minStateKey is the minimum length of serve.stateKey.
const minStateKey = 32

// StateKey expands serve.stateKey; "" if it is not set. The error names the file and
// line, and never the value.
func (x *Expander) StateKey(ctx context.Context, key settings.Entry) (string, error) {
	if key.Value == "" {
		return "", nil
	}
	value, err := x.Secret(ctx, key.Value, key.Origin.Scope)
	if err == nil && len(value) < minStateKey {
		err = fmt.Errorf("it must have at least %d characters, such as the output of: openssl rand -hex 32",
			minStateKey)
	}
	if err != nil {
		return "", fmt.Errorf("%s: serve.stateKey: %w", key.Origin, err)
	}
	return value, nil
}

func (x *Expander) oauth(ctx context.Context, in *settings.OAuth, scope settings.Scope) (*settings.OAuth, error) {
	if in == nil {
		return nil, nil
	}
	o := *in
	var err error
	for _, secret := range []struct {
		name  string
		value *string
	}{{"clientSecret", &o.ClientSecret}, {"privateKey", &o.PrivateKey},
		{"assertion", &o.Assertion}, {"idToken", &o.IDToken}} {
		if *secret.value, err = x.Secret(ctx, *secret.value, scope); err != nil {
			return nil, fmt.Errorf("oauth.%s: %w", secret.name, err)
		}
	}
	for _, field := range []*string{
		&o.ClientID, &o.IDPIssuer, &o.IDPClientID, &o.AuthorizationURL, &o.TokenURL, &o.RegistrationURL,
		&o.Issuer, &o.Resource, &o.RedirectURI, &o.TokenParamName,
	} {
		if *field, err = x.Expand(*field); err != nil {
			return nil, fmt.Errorf("oauth: %w", err)
		}
	}
	if err := table.CheckRedirectURI(o.RedirectURI); err != nil { // it may have had variables
		return nil, err
	}
	if o.Scopes, err = expandAll(o.Scopes, x.Expand); err == nil {
		o.Audiences, err = expandAll(o.Audiences, x.Expand)
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return &o, nil
}

// Limits of references.
const (
	maxSecret     = 1 << 20          // bytes of a file, or of the output of a command
	referenceTime = 30 * time.Second // time limit of a command
)

// Secret expands a value of env, headers or oauth. Apart from variables, the
// whole value may be a reference: env:NAME is the variable; file:PATH the
// content of a file without its last line end; cmd:ARGV the output of a command
// without its last line end, run in Dir without a shell for at most 30 seconds.
// Variables in PATH and in the words of ARGV are expanded first. To write plain
// text that looks like a reference, put ${} before it: ${}file:x. scope is that of the setting.
func (x *Expander) Secret(ctx context.Context, value string, scope settings.Scope) (_ string, err error) {
	kind, target := secret.Reference(value)
	if kind == "" {
		return x.Expand(value)
	}
	if kind == "cmd" && x.still {
		return value, nil
	}
	switch kind {
	case "env":
		value, err = x.Lookup.Value(target)
	case "file":
		value, err = x.file(target)
	default:
		value, err = x.runCommand(ctx, target, scope)
	}
	if err == nil && x.Seen != nil {
		x.Seen(value)
	}
	return value, err
}

func (x *Expander) file(target string) (string, error) {
	path, err := x.Word(target)
	if err != nil {
		return "", err
	}
	path = expand.From(x.Dir, path)
	f, err := trust.Read(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("reading a file: reference: %w", err)
	}
	return trimLineEnd(string(f.Data)), nil
}

func (x *Expander) runCommand(ctx context.Context, target string, scope settings.Scope) (string, error) {
	argv, err := process.Split(target)
	if err == nil {
		argv, err = expandAll(argv, x.Word)
	}
	if err != nil {
		return "", fmt.Errorf("reading a cmd: reference: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, referenceTime, fmt.Errorf("no answer within %s", referenceTime))
	defer cancel()
	var confine process.Confiner
	if x.Confine != nil {
		confine = x.Confine(scope)
	}
	out, err := confine.Run(ctx, process.Spec{Argv: argv, Dir: x.Dir, Env: x.Environ, MaxOutput: maxSecret})
	switch {
	case err != nil:
	case out.Err() != nil:
		err = fmt.Errorf("%w; run it by hand to see why", out.Err())
	case len(out.Stdout) == 0:
		err = errors.New("it printed nothing")
	}
	if err != nil {
		return "", fmt.Errorf("running cmd:%s for a value: %w", argv[0], err)
	}
	return trimLineEnd(string(out.Stdout)), nil
}

// trimLineEnd removes one line ending, and a byte order mark.
func trimLineEnd(s string) string {
	s = text.WithoutMark(s)
	if rest, ok := strings.CutSuffix(s, "\n"); ok {
		return strings.TrimSuffix(rest, "\r")
	}
	return s
}
