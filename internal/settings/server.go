package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The values of OAuth.Grant.
const (
	GrantAuthorizationCode = "authorization_code"
	GrantClientCredentials = "client_credentials"
	GrantJWTBearer         = "jwt_bearer"
)

// OAuth is the oauth entry of a server. Its strings are unexpanded; secrets may
// be references.
type OAuth struct {
	Enabled          bool
	Grant            string // authorization_code (default), client_credentials, jwt_bearer
	ClientID         string
	ClientSecret     string
	PrivateKey       string // PEM
	Assertion        string // of jwt_bearer
	IDToken          string // of jwt_bearer, to be exchanged at IDPIssuer
	IDPIssuer        string
	IDPClientID      string
	AuthorizationURL string
	TokenURL         string
	RegistrationURL  string
	Issuer           string
	Scopes           []string
	Audiences        []string
	RedirectURI      string
	TokenParamName   string
}

// checkServer reports what is wrong with a server as a whole.
func checkServer(n *node) error {
	if d := n.get("disabled"); d != nil && d.kind == kindBool && d.bool {
		return nil
	}
	command, address := n.str("command"), n.str("url")
	if a := n.str("httpUrl"); a != "" {
		address = a
	}
	switch n.str("type") {
	case "stdio":
		if command == "" {
			return errors.New(`type stdio needs a command`)
		}
	case "http", "sse":
		if address == "" {
			return fmt.Errorf("type %s needs a url", n.str("type"))
		}
	}
	if command == "" && address == "" {
		return errors.New("needs a command, a url or an httpUrl")
	}
	return checkURL(address)
}

// checkURL refuses what is no address of a web server, as far as variables let
// it be seen.
func checkURL(address string) error {
	if address == "" || strings.Contains(address, "$") {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("its address is no http or https URL") // the address could hold a secret
	}
	return nil
}

// checkPair reports what is wrong with an entry of env or headers. The message
// never holds the value.
func checkPair(set, name, value string) error {
	if set == "headers" {
		if !isToken(name) {
			return fmt.Errorf("%q is no header name", name)
		}
		return checkHeaderValue(name, value)
	}
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("%q is no name of a variable", name)
	}
	return nil
}

func checkHeaderValue(name, value string) error {
	for _, r := range value {
		if r < ' ' && r != '\t' || r == 0x7f {
			return fmt.Errorf("the value of header %s holds a control character", name)
		}
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for _, r := range s {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			continue
		}
		return false
	}
	return s != ""
}

// decodeServer makes a server of a checked entry.
func decodeServer(name string, n *node, origin Origin) Server {
	s := Server{
		Name: name, Origin: origin,
		Command: n.str("command"), Args: n.words("args"), Cwd: n.str("cwd"),
		Env: n.pairs("env", origin), InheritEnv: n.flag("inheritEnv"),
		URL: n.str("url"), HTTPURL: n.str("httpUrl"), Type: n.str("type"),
		Headers: n.pairs("headers", origin),
		Timeout: n.wait("timeout", defaultCallTimeout), ConnectTimeout: n.wait("connectTimeout", defaultConnectTimeout),
		Protocol: n.str("protocol"), Trust: n.flag("trust"), Description: n.str("description"),
		IncludeTools: n.list("includeTools", origin), ExcludeTools: n.list("excludeTools", origin),
		Disabled: n.flag("disabled"), OAuth: decodeOAuth(n.get("oauth")),
	}
	if s.Protocol == "" {
		s.Protocol = "auto"
	}
	return s
}

func decodeOAuth(n *node) *OAuth {
	if n == nil || n.kind != kindObject {
		return nil
	}
	o := &OAuth{
		Enabled: n.flag("enabled"), Grant: n.str("grant"), ClientID: n.str("clientId"), ClientSecret: n.str("clientSecret"),
		PrivateKey: n.str("privateKey"), Assertion: n.str("assertion"), IDToken: n.str("idToken"), IDPIssuer: n.str("idpIssuer"), IDPClientID: n.str("idpClientId"),
		AuthorizationURL: n.str("authorizationUrl"), TokenURL: n.str("tokenUrl"), RegistrationURL: n.str("registrationUrl"),
		Issuer: n.str("issuer"), Scopes: n.words("scopes"), Audiences: n.words("audiences"),
		RedirectURI: n.str("redirectUri"), TokenParamName: n.str("tokenParamName"),
	}
	if o.Grant == "" {
		o.Grant = GrantAuthorizationCode
	}
	return o
}

// The accessors below read members that were checked; an absent one gives the
// zero value.

func (n *node) str(name string) string {
	if v := n.get(name); v != nil && v.kind == kindString {
		return v.text
	}
	return ""
}

func (n *node) flag(name string) bool {
	v := n.get(name)
	return v != nil && v.kind == kindBool && v.bool
}

func (n *node) words(name string) []string {
	v := n.get(name)
	if v == nil {
		return nil
	}
	return v.strings()
}

func (n *node) strings() []string {
	out := make([]string, len(n.items))
	for i, item := range n.items {
		out[i] = item.text
	}
	return out
}

func (n *node) wait(name, def string) time.Duration {
	if v := n.get(name); v != nil && v.kind != kindNull {
		return v.duration()
	}
	return (&node{kind: kindString, text: def}).duration()
}

func (n *node) pairs(name string, in Origin) []Pair {
	v := n.get(name)
	if v == nil {
		return nil
	}
	return v.toPairs(in)
}

// toPairs keeps file order; in names the file.
func (n *node) toPairs(in Origin) []Pair {
	out := make([]Pair, 0, len(n.fields))
	for _, f := range n.fields {
		in.Line, in.Col = f.line, f.col
		out = append(out, Pair{Name: f.name, Value: f.value.text, Origin: in})
	}
	return out
}

func (n *node) list(name string, in Origin) List {
	v := n.get(name)
	if v == nil || v.kind != kindList {
		return List{}
	}
	return v.toList(in)
}

func (n *node) toList(in Origin) List {
	l := List{Set: true, Entries: make([]Entry, 0, len(n.items))}
	for _, item := range n.items {
		in.Line, in.Col = item.line, item.col
		l.Entries = append(l.Entries, Entry{Value: item.text, Origin: in})
	}
	return l
}
