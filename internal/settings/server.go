package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/table"
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
func checkServer(n *jsonx.Value) error {
	if n.Get("disabled").Is(jsonx.True) {
		return nil
	}
	for _, name := range []string{"command", "url", "httpUrl"} {
		if v := n.Get(name); v != nil && v.Kind != jsonx.String && v.Kind != jsonx.Null {
			return nil // its type is reported; it is not missing
		}
	}
	command, address := n.Get("command").Text(), n.Get("url").Text()
	if a := n.Get("httpUrl").Text(); a != "" {
		address = a
	}
	switch n.Get("type").Text() {
	case "stdio":
		if command == "" {
			return errors.New(`type stdio needs a command`)
		}
	case "http", "sse":
		if address == "" {
			return fmt.Errorf("type %s needs a url", n.Get("type").Text())
		}
	}
	if command == "" && address == "" {
		return errors.New("needs a command, a url or an httpUrl")
	}
	return CheckURL(address)
}

// CheckURL rejects what is not an address of a web server, as far as variables
// allow to tell.
func CheckURL(address string) error {
	if address == "" || strings.Contains(address, "$") {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the URL must begin with http:// or https:// and name a host") // the URL could hold a secret
	}
	return nil
}

// checkPair reports what is wrong with an entry of env or headers. The message
// never contains the value.
func checkPair(set, name, value string) error {
	if set == "headers" {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%q is not a valid header name", name)
		}
		return CheckHeaderValue(name, value)
	}
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("%q is not a valid variable name", name)
	}
	return nil
}

// CheckHeaderValue rejects control characters. The error does not contain the
// value.
func CheckHeaderValue(name, value string) error {
	if !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("the value of header %s contains a control character", name)
	}
	return nil
}

// decodeServer converts a checked entry to a server.
func decodeServer(row *table.Row, name string, n *jsonx.Value, origin Origin) Server {
	s := Server{
		Name: name, Origin: origin,
		Command: n.Get("command").Text(), Args: n.Get("args").Strings(), Cwd: n.Get("cwd").Text(),
		Env: toPairs(n.Get("env"), origin), InheritEnv: n.Get("inheritEnv").Is(jsonx.True),
		URL: n.Get("url").Text(), HTTPURL: n.Get("httpUrl").Text(), Type: n.Get("type").Text(),
		Headers: toPairs(n.Get("headers"), origin),
		Timeout: wait(row, n, "timeout"), ConnectTimeout: wait(row, n, "connectTimeout"),
		Protocol: n.Get("protocol").Text(), Trust: n.Get("trust").Is(jsonx.True), PerClient: n.Get("perClient").Is(jsonx.True), Description: n.Get("description").Text(),
		IncludeTools: toList(n.Get("includeTools"), origin), ExcludeTools: toList(n.Get("excludeTools"), origin),
		Disabled: n.Get("disabled").Is(jsonx.True), OAuth: decodeOAuth(n.Get("oauth")),
	}
	s.TrustOrigin = origin
	if trust := n.Get("trust"); trust != nil && trust.Line > 0 {
		s.TrustOrigin.Line, s.TrustOrigin.Col = trust.Place()
	}
	if s.Protocol == "" {
		s.Protocol = "auto"
	}
	return s
}

func decodeOAuth(n *jsonx.Value) *OAuth {
	if n == nil || n.Kind != jsonx.Object {
		return nil
	}
	o := &OAuth{
		Enabled: n.Get("enabled").Is(jsonx.True), Grant: n.Get("grant").Text(), ClientID: n.Get("clientId").Text(), ClientSecret: n.Get("clientSecret").Text(),
		PrivateKey: n.Get("privateKey").Text(), Assertion: n.Get("assertion").Text(), IDToken: n.Get("idToken").Text(), IDPIssuer: n.Get("idpIssuer").Text(), IDPClientID: n.Get("idpClientId").Text(),
		AuthorizationURL: n.Get("authorizationUrl").Text(), TokenURL: n.Get("tokenUrl").Text(), RegistrationURL: n.Get("registrationUrl").Text(),
		Issuer: n.Get("issuer").Text(), Scopes: n.Get("scopes").Strings(), Audiences: n.Get("audiences").Strings(),
		RedirectURI: n.Get("redirectUri").Text(), TokenParamName: n.Get("tokenParamName").Text(),
	}
	if o.Grant == "" {
		o.Grant = GrantAuthorizationCode
	}
	return o
}

// The functions below read checked values; absent ones give the zero value.

// wait reads a member that is a duration, or its default in the table.
func wait(row *table.Row, n *jsonx.Value, name string) time.Duration {
	v := n.Get(name)
	if v == nil || v.Kind == jsonx.Null {
		v = row.Field(name).DefaultValue()
	}
	return duration(v)
}

func duration(n *jsonx.Value) time.Duration {
	d, _ := table.ParseDuration(n)
	return d
}

func size(n *jsonx.Value) int64 {
	size, _ := table.ParseSize(n)
	return size
}

func number(n *jsonx.Value) int {
	i, _ := table.ParseInt(n)
	return i
}

// toPairs preserves file order; in names the file.
func toPairs(n *jsonx.Value, in Origin) []Pair {
	if n == nil {
		return nil
	}
	out := make([]Pair, 0, len(n.Members))
	for _, f := range n.Members {
		in.Line, in.Col = f.Place()
		out = append(out, Pair{Name: f.Name, Value: f.Value.Text(), Origin: in})
	}
	return out
}

// toList preserves file order; in names the file.
func toList(n *jsonx.Value, in Origin) List {
	if n == nil || n.Kind != jsonx.Array {
		return List{}
	}
	l := List{Set: true, Entries: make([]Entry, 0, len(n.Items))}
	for _, item := range n.Items {
		in.Line, in.Col = item.Place()
		l.Entries = append(l.Entries, Entry{Value: item.Text(), Origin: in})
	}
	return l
}
