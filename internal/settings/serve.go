package settings

import (
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// everyRequest is the key of serve.oauth.scopes for scopes that every request needs.
const everyRequest = "*"

// ToolScope is a scope that a client's token must have (serve.oauth.scopes).
type ToolScope struct {
	Tool   string // name or glob of tools whose calls need it; "*" means that every request needs it
	Scope  string
	Origin Origin
}

// ToolScopes are the scopes of serve.oauth.scopes.
type ToolScopes []ToolScope

// DecodeSetting reads a checked list of scopes, or an object of scopes by tool; in names the file.
func (s *ToolScopes) DecodeSetting(n *jsonx.Value, in Origin) {
	add := func(tool string, scope *jsonx.Value) {
		in.Line, in.Col = scope.Place()
		*s = append(*s, ToolScope{tool, scope.Text(), in})
	}
	for _, scope := range n.Items {
		add(everyRequest, scope)
	}
	for _, f := range n.Members {
		add(registry.NameIn(f.Name), f.Value)
	}
}

// Required returns the scopes that a request needs: those of every request and, for a call, those
// of the tool with these names, ignoring case.
func (o *ServeOAuth) Required(spellings ...string) (out []ToolScope) {
	for _, s := range o.Scopes {
		matches := func(spelling string) bool { return text.MatchNameFold(s.Tool, spelling) }
		if s.Tool == everyRequest || slices.ContainsFunc(spellings, matches) {
			out = append(out, s)
		}
	}
	return out
}

// Lacking returns the first scope that such a request needs and that is not granted; nil if all are.
func (o *ServeOAuth) Lacking(granted []string, spellings ...string) *ToolScope {
	for _, one := range o.Required(spellings...) {
		if !slices.Contains(granted, one.Scope) {
			return &one
		}
	}
	return nil
}

// CallLimit is an entry of serve.limits: how many calls each of some clients may make.
type CallLimit struct {
	Client string        `setting:"client"` // glob; "" means all
	Group  string        `setting:"group"`  // glob; "" means all
	Tool   string        `setting:"tool"`   // glob; "" means all
	Calls  int           `setting:"calls"`
	Per    time.Duration `setting:"per"` // positive
	// Rank distinguishes limits for the same client, group and tool: it is the number of different
	// shorter times among them. Changing a time does not change the rank.
	Rank   int
	Origin Origin
}

// rankLimits sets the ranks of limits.
func rankLimits(limits []CallLimit) {
	for i := range limits {
		l, shorter := &limits[i], map[time.Duration]bool{}
		l.Tool = registry.NameIn(l.Tool)
		for _, other := range limits {
			if other.Client == l.Client && other.Group == l.Group && other.Tool == l.Tool && other.Per < l.Per {
				shorter[other.Per] = true
			}
		}
		l.Rank = len(shorter)
	}
}

// Serve holds the serve.* settings.
type Serve struct {
	// Idle is the idle time after which a server is closed; by default 10m. Zero means never.
	Idle time.Duration `setting:"serve.idle"`
	// Session is the idle time after which a client's session is closed; by default 10m. Zero means
	// never.
	Session    time.Duration `setting:"serve.session"`
	MaxClients int           `setting:"serve.maxClients"` // default 1000; 0 means unlimited
	// MaxCalls is the number of concurrent calls with one token; by default 64. Zero means unlimited.
	MaxCalls int `setting:"serve.maxCalls"`
	// KeepAlive is the time between comments on silent streams; by default 15s. Zero means none.
	KeepAlive time.Duration `setting:"serve.keepAlive"`
	StateKey  Entry         `setting:"serve.stateKey"` // unexpanded; "" means none
	Store     Entry         `setting:"serve.store"`    // unexpanded; "" means none
	Cert      Entry         `setting:"serve.tls.cert"` // "" means no TLS
	Key       Entry         `setting:"serve.tls.key"`
	ClientCA  Entry         `setting:"serve.tls.clientCa"` // "" means clients need no certificate
	OAuth     ServeOAuth
}

// ServeOAuth holds the serve.oauth.* settings. The issuer is "" if there are none.
type ServeOAuth struct {
	Issuer   Entry      `setting:"serve.oauth.issuer"`
	Audience Entry      `setting:"serve.oauth.audience"`
	KeysURL  Entry      `setting:"serve.oauth.jwksUri"` // "" means that of the issuer's metadata
	Name     Entry      `setting:"serve.oauth.claims.name"`
	Groups   Entry      `setting:"serve.oauth.claims.groups"`
	Scopes   ToolScopes `setting:"serve.oauth.scopes"`
}
