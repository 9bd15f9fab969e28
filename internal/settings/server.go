package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// The values of OAuth.Grant.
const (
	GrantAuthorizationCode = "authorization_code"
	GrantClientCredentials = "client_credentials"
	GrantJWTBearer         = "jwt_bearer"
)

// The values of OAuth.DPoP.
const (
	DPoPAuto    = "auto"
	DPoPRequire = "require"
	DPoPOff     = "off"
)

// PerClient is the value of OAuth.Per with which each client of serve has its own login.
const PerClient = "client"

// OAuth is the oauth entry of a server. Its strings are unexpanded; secrets may
// be references.
type OAuth struct {
	Enabled          bool     `setting:"enabled"`
	Grant            string   `setting:"grant"` // authorization_code (default), client_credentials, jwt_bearer
	ClientID         string   `setting:"clientId"`
	ClientSecret     string   `setting:"clientSecret"`
	PrivateKey       string   `setting:"privateKey"` // PEM
	Assertion        string   `setting:"assertion"`  // of jwt_bearer
	IDToken          string   `setting:"idToken"`    // of jwt_bearer, to be exchanged at IDPIssuer
	IDPIssuer        string   `setting:"idpIssuer"`
	IDPClientID      string   `setting:"idpClientId"`
	AuthorizationURL string   `setting:"authorizationUrl"`
	TokenURL         string   `setting:"tokenUrl"`
	RegistrationURL  string   `setting:"registrationUrl"`
	Issuer           string   `setting:"issuer"`
	Scopes           []string `setting:"scopes"`
	Audiences        []string `setting:"audiences"`
	RedirectURI      string   `setting:"redirectUri"`
	TokenParamName   string   `setting:"tokenParamName"`
	DPoP             string   `setting:"dpop"` // auto (default), require, off
	Per              string   `setting:"per"`  // of a server: server (default), client
}

// From is the from entry of a server.
type From struct {
	Registry string              `setting:"registry"` // "" means a file
	Name     string              `setting:"name"`
	Version  string              `setting:"version"`
	Runtime  string              `setting:"runtime"`
	Bundle   string              `setting:"bundle"` // SHA-256 of a bundle
	Values   map[string][]string `setting:"values"` // in the notation of the settings, unexpanded
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
	case "http", "sse", "streamable-http", "streamableHttp":
		if address == "" {
			return fmt.Errorf("type %s needs a url", n.Get("type").Text())
		}
	}
	if command == "" && address == "" {
		return errors.New("needs a command, a url or an httpUrl")
	}
	if login := n.Get("oauth"); login.Is(jsonx.Object) {
		if grant := login.Get("grant").Text(); login.Get("per").Text() == PerClient && (address == "" || grant != "" && grant != GrantAuthorizationCode) {
			return errors.New("oauth.per: client needs a url, and the grant authorization_code: clients log in with a browser")
		}
		if redirect := login.Get("redirectUri").Text(); !strings.Contains(redirect, "$") { // variables are expanded later
			if err := CheckRedirectURI(redirect); err != nil {
				return err
			}
		}
	}
	return CheckURL(address)
}

// LoginPerClient reports whether each client of serve has its own login to the server.
func (s Server) LoginPerClient() bool { return s.OAuth != nil && s.OAuth.Per == PerClient }

// IsOff reports whether the settings turn a server off.
func (s *Server) IsOff() bool { return s.Disabled || s.Excluded != nil }

// Off returns why the settings turn a server off, and where they do; "" if they do not.
func (s *Server) Off() (why, setting string) {
	switch {
	case s.Disabled:
		return "disabled at " + s.Origin.String(), s.Origin.String()
	case s.Excluded != nil:
		return "not allowed: " + s.Excluded.String(), s.Excluded.String()
	}
	return "", ""
}

// CheckURL rejects an address that is not an http or https URL. It accepts an
// empty address and any address that contains variables.
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

// CheckRedirectURI rejects an oauth.redirectUri that is neither https nor http on this machine. It
// accepts an empty one.
func CheckRedirectURI(address string) error {
	if address == "" {
		return nil
	}
	if err := webaddr.Check(address); err != nil {
		return fmt.Errorf("oauth.redirectUri: %w", err)
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

// WithServer returns settings in which a server of [Settings.Servers] has another entry and is
// enabled, to try it.
func (s *Settings) WithServer(name string, entry json.RawMessage) (*Settings, error) {
	if problem := CheckServer(name, entry); problem != "" {
		return nil, errors.New(problem)
	}
	node, err := jsonx.Parse(entry, jsonx.Options{})
	if err != nil {
		return nil, err
	}
	next := *s
	next.Servers = slices.Clone(s.Servers)
	if was := next.Server(name); was != nil {
		server := decodeServer(table.NewIndex().Row(serversKey), name, node, was.Origin)
		server.Excluded, server.Disabled = was.Excluded, false
		s.setTimeouts(&server)
		*was = server
	}
	return &next, nil
}

// decodeServer converts a checked entry to a server.
func decodeServer(row *table.Row, name string, n *jsonx.Value, origin Origin) Server {
	s := Server{TrustOrigin: origin}
	decodeEntry(reflect.ValueOf(&s).Elem(), row, name, n, origin)
	if lifecycle := n.Get("lifecycle"); s.Keep == nil && lifecycle != nil {
		set(reflect.ValueOf(&s.Keep).Elem(), row.Field("lifecycle"), lifecycle, origin)
	}
	if trust := n.Get("trust"); trust != nil && trust.Line > 0 {
		s.TrustOrigin.Line, s.TrustOrigin.Col = trust.Place()
	}
	return s
}

// Registry is one entry of registries. Its strings are unexpanded.
type Registry struct {
	URL     string `setting:"url"`
	Headers []Pair `setting:"headers"`
	Origin  Origin
}

// officialRegistry is used if no other one is set.
const officialRegistry = "https://registry.modelcontextprotocol.io"

// addresses checks a list of addresses, or of objects with one.
func (r *reader) addresses(row *table.Row, key string, n *jsonx.Value) {
	if !r.want(n, key, jsonx.Array, "a list of addresses") {
		return
	}
	for i, item := range n.Items {
		at, address := fmt.Sprintf("%s[%d]", key, i), item
		if item.Is(jsonx.Object) {
			r.object(row, at, item)
			at, address = at+".url", item.Get("url")
		}
		switch {
		case address == nil: // it is reported as missing
		case address.Kind != jsonx.String:
			r.wrongType(address, at, "an address, or an object with url and headers")
		default:
			r.report(address, at, CheckRegistry(address.Text()))
		}
	}
}

// CheckRegistry rejects an address that a registry cannot have, because commands that a
// registry names are run: it must be encrypted, or on this machine. It accepts any address
// that contains variables.
func CheckRegistry(address string) error {
	if strings.Contains(address, "$") {
		return nil
	}
	if strings.ContainsAny(address, "?#") {
		return fmt.Errorf("its address has a query or a fragment")
	}
	return webaddr.Check(address)
}
