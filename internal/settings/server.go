package settings

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
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

// WithServer returns settings in which a server of [Settings.Servers] has another entry and is
// enabled, to try it.
func (s *Settings) WithServer(name string, entry json.RawMessage) (*Settings, error) {
	x := table.NewIndex()
	node, problem := layers.CheckEntry(x, table.ServersKey, name, entry)
	if problem != "" {
		return nil, errors.New(problem)
	}
	node.SetPos(jsonx.Pos{})
	next := *s
	next.Servers = slices.Clone(s.Servers)
	if was := next.Server(name); was != nil {
		server := decodeServer(x.Row(table.ServersKey), name, node, was.Origin)
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
