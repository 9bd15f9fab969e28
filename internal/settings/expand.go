package settings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
)

// maxNested is how deep defaults may nest: ${A:-${B:-x}}.
const maxNested = 16

// Expander expands the strings of the settings at the moment of use (spec
// section 4): $VAR, ${VAR} and ${VAR:-default}, which also stands for an empty
// VAR. $$ is a dollar sign, and so is a $ before anything but a name or a
// brace; ${} is nothing. What a variable holds is not expanded again. The zero value knows no
// variable. An Expander is safe for concurrent use when Lookup is.
type Expander struct {
	Lookup  func(name string) (string, bool) // nil = no variable is set
	Dir     string                           // for relative file: references and the directory of cmd:
	Environ []string                         // environment of the programs that cmd: references run

	still bool // runs nothing: cmd: references stay as they are
}

// Still returns an Expander that runs nothing: where the other runs a command
// for a value, it leaves the reference as it stands.
func (x *Expander) Still() *Expander {
	still := *x
	still.still = true
	return &still
}

// NewExpander returns an Expander over an environment of "K=V" entries, which
// is not kept up to date. Relative references start at dir, the project root.
func NewExpander(dir string, environ []string) *Expander {
	vars := make(map[string]string, len(environ))
	for _, e := range environ {
		if name, value, ok := cutVariable(e); ok {
			vars[envKey(name)] = value
		}
	}
	lookup := func(name string) (string, bool) {
		value, ok := vars[envKey(name)]
		return value, ok
	}
	return &Expander{Lookup: lookup, Dir: dir, Environ: process.BaseEnv(environ)}
}

// UnsetError names a variable that is not set.
type UnsetError struct {
	Name string
}

func (e *UnsetError) Error() string {
	return fmt.Sprintf("variable %s is not set; set it, or write ${%s:-default}", e.Name, e.Name)
}

// Expand replaces $VAR, ${VAR} and ${VAR:-default}. A variable that is not set
// and has no default is an [*UnsetError].
func (x *Expander) Expand(s string) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	return x.expand(s, 0)
}

func (x *Expander) expand(s string, depth int) (string, error) {
	if depth > maxNested {
		return "", fmt.Errorf("defaults nest deeper than %d levels", maxNested)
	}
	var out strings.Builder
	for s != "" {
		plain, rest, found := strings.Cut(s, "$")
		out.WriteString(plain)
		if !found {
			break
		}
		value, after, err := x.dollar(rest, depth)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		s = after
	}
	return out.String(), nil
}

// dollar expands what follows a dollar sign and returns what is behind it.
func (x *Expander) dollar(s string, depth int) (value, after string, err error) {
	switch {
	case strings.HasPrefix(s, "$"):
		return "$", s[1:], nil
	case strings.HasPrefix(s, "{"):
		return x.braced(s[1:], depth)
	}
	name := s[:nameLength(s)]
	if name == "" {
		return "$", s, nil
	}
	value, err = x.variable(name)
	return value, s[len(name):], err
}

func (x *Expander) braced(s string, depth int) (value, after string, err error) {
	end := closing(s)
	if end < 0 {
		return "", "", errors.New("${ without its }; write $$ for a dollar sign")
	}
	if end == 0 { // ${} is nothing: before a word that looks like a reference it makes it text
		return "", s[1:], nil
	}
	name, def, hasDefault := strings.Cut(s[:end], ":-")
	if !isVariableName(name) {
		return "", "", fmt.Errorf("${%s}: not the name of a variable; only ${NAME} and ${NAME:-default} are known", printable(name))
	}
	after = s[end+1:]
	value, err = x.variable(name)
	if hasDefault && (err != nil || value == "") {
		value, err = x.expand(def, depth+1)
	}
	return value, after, err
}

func (x *Expander) variable(name string) (string, error) {
	if x.Lookup != nil {
		if value, ok := x.Lookup(name); ok {
			return value, nil
		}
	}
	return "", &UnsetError{Name: name}
}

// closing returns the index of the brace that closes an open one before s.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "$$"):
			i++
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		case s[i] == '}' && depth == 0:
			return i
		case s[i] == '}':
			depth--
		}
	}
	return -1
}

// nameLength returns the length of the variable name that s begins with.
func nameLength(s string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// isVariableName accepts what braces may hold: names, and those of Windows such
// as ProgramFiles(x86).
func isVariableName(s string) bool {
	base := strings.TrimSuffix(s, "(x86)")
	return base != "" && nameLength(base) == len(base)
}

// printable shortens text for a message; it may be anything.
func printable(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.Trim(fmt.Sprintf("%q", s), `"`)
}

// Command expands the words of a command. An unset command gives nil.
func (x *Expander) Command(c Command) ([]string, error) {
	words, err := x.words(c.Argv)
	if err != nil {
		return nil, fmt.Errorf("expanding %s: %w", c.Origin, err)
	}
	return words, nil
}

func (x *Expander) words(in []string) ([]string, error) {
	if in == nil {
		return nil, nil
	}
	out := make([]string, len(in))
	for i, word := range in {
		var err error
		if out[i], err = x.Expand(word); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Pairs expands the values of env: references and variables.
func (x *Expander) Pairs(ctx context.Context, pairs []Pair) ([]Pair, error) {
	return x.pairs(ctx, "env", pairs)
}

func (x *Expander) pairs(ctx context.Context, what string, pairs []Pair) ([]Pair, error) {
	out := slices.Clone(pairs)
	for i, p := range out {
		value, err := x.Secret(ctx, p.Value)
		if err == nil {
			err = checkExpanded(what, p.Name, value)
		}
		if err != nil {
			return nil, fmt.Errorf("expanding %s.%s (%s): %w", what, p.Name, p.Origin, err)
		}
		out[i].Value = value
	}
	return out, nil
}

func checkExpanded(what, name, value string) error {
	if what == "headers" {
		return checkHeaderValue(name, value)
	}
	if strings.ContainsRune(value, 0) {
		return errors.New("the value holds a NUL character")
	}
	return nil
}

// Server expands every string of a server: variables everywhere, references in
// env, headers and the secrets of oauth alone. The error names the setting, its
// file and line, and never a value.
func (x *Expander) Server(ctx context.Context, s Server) (Server, error) {
	if err := x.expandServer(ctx, &s); err != nil {
		return Server{}, fmt.Errorf("expanding mcpServers.%s (%s): %w", s.Name, s.Origin, err)
	}
	return s, nil
}

func (x *Expander) expandServer(ctx context.Context, s *Server) (err error) {
	for _, field := range []*string{&s.Command, &s.Cwd, &s.URL, &s.HTTPURL, &s.Description} {
		if *field, err = x.Expand(*field); err != nil {
			return err
		}
	}
	if s.Args, err = x.words(s.Args); err != nil {
		return err
	}
	if s.Env, err = x.pairs(ctx, "env", s.Env); err != nil {
		return err
	}
	if s.Headers, err = x.pairs(ctx, "headers", s.Headers); err != nil {
		return err
	}
	for _, address := range []string{s.URL, s.HTTPURL} {
		if err := checkURL(strings.ReplaceAll(address, "$", "")); err != nil {
			return err
		}
	}
	s.OAuth, err = x.oauth(ctx, s.OAuth)
	return err
}

func (x *Expander) oauth(ctx context.Context, in *OAuth) (*OAuth, error) {
	if in == nil {
		return nil, nil
	}
	o := *in
	var err error
	for _, secret := range []struct {
		name  string
		value *string
	}{{"clientSecret", &o.ClientSecret}, {"privateKey", &o.PrivateKey}, {"assertion", &o.Assertion}, {"idToken", &o.IDToken}} {
		if *secret.value, err = x.Secret(ctx, *secret.value); err != nil {
			return nil, fmt.Errorf("oauth.%s: %w", secret.name, err)
		}
	}
	for _, field := range []*string{&o.ClientID, &o.IDPIssuer, &o.IDPClientID, &o.AuthorizationURL, &o.TokenURL, &o.RegistrationURL, &o.Issuer, &o.RedirectURI, &o.TokenParamName} {
		if *field, err = x.Expand(*field); err != nil {
			return nil, fmt.Errorf("oauth: %w", err)
		}
	}
	if o.Scopes, err = x.words(o.Scopes); err == nil {
		o.Audiences, err = x.words(o.Audiences)
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return &o, nil
}
