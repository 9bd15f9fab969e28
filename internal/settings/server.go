package settings

import (
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/imports"
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
	Resource         string   `setting:"resource"` // "" means that of the server, and none none
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

// Registry is one entry of registries. Its strings are unexpanded.
type Registry struct {
	URL     string `setting:"url"`
	Headers []Pair `setting:"headers"`
	Origin  Origin
}

// officialRegistry is used if no other one is set.
const officialRegistry = "https://registry.modelcontextprotocol.io"

// Server is one entry of mcpServers. Its strings are unexpanded: package values
// expands them when they are used.
type Server struct {
	Name       string   `setting:"*"`
	Command    string   `setting:"command"`
	Args       []string `setting:"args"`
	Split      bool     // Command and Args are the words of one command, because no file has its name
	Env        []Pair   `setting:"env"`
	InheritEnv bool     `setting:"inheritEnv"`
	// Cwd is relative to the project root. If it is empty, see [Settings.StartsOutside].
	Cwd            string        `setting:"cwd"`
	URL            string        `setting:"url"`     // streamable HTTP, falling back to SSE
	HTTPURL        string        `setting:"httpUrl"` // streamable HTTP
	Type           string        `setting:"type"`    // "", "stdio", "http", "sse", or another name of http
	Headers        []Pair        `setting:"headers"`
	OAuth          *OAuth        `setting:"oauth"`          // nil means not configured
	Timeout        time.Duration `setting:"timeout"`        // limit of a call; default 10m; 0 means none
	ConnectTimeout time.Duration `setting:"connectTimeout"` // default 30s; 0 means none
	Protocol       string        `setting:"protocol"`       // "auto" (default), "legacy", "modern"
	Trust          bool          `setting:"trust"`
	PerClient      bool          `setting:"perClient"` // each client of serve has its own process of the server
	Optional       bool          `setting:"optional"`  // serve is ready without it
	// Keep is how long the server is kept while no run uses it. Nil means
	// [Settings.KeepServers], and zero that it is not kept.
	Keep         *time.Duration   `setting:"keep"`
	TrustOrigin  Origin           // where Trust is set, or the origin of the entry if it is not set
	Description  string           `setting:"description"`
	IncludeTools List             `setting:"includeTools"` // all if absent
	ExcludeTools List             `setting:"excludeTools"`
	Disabled     bool             `setting:"disabled"`
	From         *From            `setting:"from"` // nil means it was not added from a registry or a bundle
	Program      *imports.Program // the program from whose files it was imported; nil means none
	Excluded     *Origin          // the mcp.allowed/mcp.excluded setting that excludes it; nil means connect
	Replaces     *Origin          // the entry of the person that this one of a project replaces; nil means none
	Origin       Origin
	Err          error // the mistakes in its entry, a [*document.Error], which make it unusable; nil means none
}

func (s *Server) isOwn() bool { return s.Origin.Scope == ScopeUser || s.Origin.Scope == ScopeSystem }

// API is one entry of openapi: an HTTP API with the document that describes it. Of the
// embedded Server it has the name, the headers, the limits, trust and description; URL is
// the setting baseUrl. Its strings are unexpanded.
type API struct {
	Server
	Spec      string `setting:"spec"`    // a file, relative to the project root, or an address
	Auth      []Auth `setting:"auth"`    // used together
	Include   List   `setting:"include"` // all if absent
	Exclude   List   `setting:"exclude"`
	MaxOutput *int64 `setting:"maxOutput"` // nil means limits.output
}

// Auth is one way to authenticate the requests to an API: the first of its fields that is
// set. Its strings are unexpanded and may be references.
type Auth struct {
	Bearer string  `setting:"bearer"`
	Basic  *Basic  `setting:"basic"`
	APIKey *APIKey `setting:"apiKey"`
	OAuth  *OAuth  `setting:"oauth"`
}

// Basic is a user name and a password.
type Basic struct {
	Username string `setting:"username"`
	Password string `setting:"password"`
}

// APIKey is a key that is sent with each request.
type APIKey struct {
	In    string `setting:"in"` // header, query, cookie
	Name  string `setting:"name"`
	Value string `setting:"value"`
}

// IsRemote reports whether the document is at an address.
func (a *API) IsRemote() bool { return strings.Contains(a.Spec, "://") }

// EntryState says what has become of a server's entry.
type EntryState int

// The states of an entry.
const (
	// EntryElsewhere is an entry in a file that exists but is not read in this run.
	EntryElsewhere EntryState = iota
	// EntryGone is an entry that was removed.
	EntryGone
	// EntryUntrusted is an entry in settings of the project, which are not trusted.
	EntryUntrusted
	// EntryUnreadable is an entry that may be in the project's settings, which cannot be read.
	EntryUnreadable
	// EntryInEffect is an entry of [Settings.Servers], which may be turned off.
	EntryInEffect
)

// serverFiles has the servers in each file that was read, whether or not its settings apply; nil if
// they are unknown. A folder stands for the settings file in it.
type serverFiles map[string][]serverEntry

type serverEntry struct {
	name  string
	value *jsonx.Value
}

func (f serverFiles) add(l *layers.Layer) {
	if l == nil {
		return
	}
	if l.Root == nil && len(l.Problems) > 0 {
		f[l.File] = nil
		return
	}
	servers := []serverEntry{}
	for _, e := range l.Settings {
		switch {
		case (e.Row.Name == table.ServersKey || e.Row.Name == table.APIsKey) && e.Value.Is(jsonx.Object):
			for _, m := range e.Value.Members {
				servers = append(servers, serverEntry{m.Name, m.Value})
			}
		case e.Row.Name == "mcpServerCommand":
			servers = append(servers, serverEntry{"mcp", e.Value})
		}
	}
	f[l.File] = append(servers, f[l.File]...)
}
