package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/oauth/accesstoken"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// resourceMetadata is the well-known path of the metadata of a protected resource (RFC 9728).
	resourceMetadata = "/.well-known/oauth-protected-resource"
	// consoleScope is the scope that permits the console.
	consoleScope = "console"
)

// OAuth makes the server a resource server of OAuth 2.1: the tokens of clients are JSON Web
// Tokens of an issuer. Create it with [NewOAuth]. It is safe for concurrent use.
type OAuth struct {
	warn    func(error)
	current atomic.Pointer[oauthState]
}

// oauthState is derived from the current settings.
type oauthState struct {
	set      settings.ServeOAuth
	verifier *accesstoken.Verifier
	replaced chan struct{} // closed when this state is replaced
}

// NewOAuth returns a resource server with the settings serve.oauth. warn receives errors in
// fetching the issuer's keys.
func NewOAuth(set settings.ServeOAuth, warn func(error)) (*OAuth, error) {
	o := &OAuth{warn: warn}
	return o, o.Change(set)
}

// Change applies changed settings. What runs with tokens that the settings no longer accept ends
// soon. If they have an error, the earlier ones stay in effect. Change must not be called
// concurrently.
func (o *OAuth) Change(set settings.ServeOAuth) error {
	c := accesstoken.Config{
		Issuer:   set.Issuer.Value,
		Audience: set.Audience.Value,
		KeysURL:  set.KeysURL.Value,
		Name:     set.Name.Value,
		Groups:   set.Groups.Value,
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("serve.oauth: %w", err)
	}
	next := &oauthState{set: set, replaced: make(chan struct{})}
	now := o.current.Load()
	switch {
	case now == nil:
		next.verifier = accesstoken.New(c, nil, o.warn, nil)
	case now.verifier.Config() == c:
		next.verifier = now.verifier
	default:
		next.verifier = accesstoken.New(c, now.verifier, o.warn, nil)
	}
	if o.current.Store(next); now != nil {
		close(now.replaced)
	}
	return nil
}

// Follow fetches the keys of the issuer now and from time to time, until ctx is done.
func (o *OAuth) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		now := o.current.Load()
		now.verifier.Follow(ctx, now.replaced)
	}
}

// Find implements [Verifier].
func (o *OAuth) Find(ctx context.Context, token, path string) (Identity, *Rejection) {
	now := o.current.Load()
	if token == "" {
		return Identity{}, &Rejection{
			Status: http.StatusUnauthorized,
			Reason: "unauthorized: send an access token of " + now.set.Issuer.Value, scopes: now.scopes(),
		}
	}
	t, err := now.verifier.Verify(ctx, token, now.resource(path))
	if _, invalid := errors.AsType[*accesstoken.InvalidError](err); err != nil && !invalid {
		return Identity{}, &Rejection{Status: http.StatusServiceUnavailable,
			Reason: "the token cannot be verified now: " + err.Error()}
	}
	if err == nil && (t.Name == caller.Stdio || t.Name == caller.Local) {
		err = fmt.Errorf("%s is the name of clients without a token", t.Name)
	}
	if err != nil {
		return Identity{}, &Rejection{Status: http.StatusUnauthorized,
			Reason: "unauthorized: " + err.Error(), code: "invalid_token", scopes: now.scopes()}
	}
	from := Identity{
		Name: t.Name, Groups: t.Groups, Expires: t.Expires, Scopes: t.Scopes,
		Console: slices.Contains(t.Scopes, consoleScope), Sum: HashOf(token), verifier: now.verifier,
	}
	return from, now.permit(from)
}

// Renew implements [Verifier].
func (o *OAuth) Renew(from Identity) (Identity, bool) {
	now := o.current.Load()
	return from, from.verifier != nil && from.verifier == now.verifier &&
		now.verifier.Now().Before(from.Expires) && now.permit(from) == nil
}

// Settings returns the settings in effect.
func (o *OAuth) Settings() settings.ServeOAuth { return o.current.Load().set }

// Vouched returns the identity of a token that another replica with the same settings has verified.
func (o *OAuth) Vouched(from Identity) Identity {
	from.verifier = o.current.Load().verifier
	return from
}

// Permit returns why a request that may call tools with these spellings is rejected; nil if it is
// permitted.
func (o *OAuth) Permit(from Identity, spellings ...string) *Rejection {
	return o.current.Load().permit(from, spellings...)
}

// permit returns why a request that may call tools with these spellings is rejected; nil if it is
// permitted.
func (s *oauthState) permit(from Identity, spellings ...string) *Rejection {
	if s.set.Lacking(from.Scopes, spellings...) == nil {
		return nil
	}
	// This names the scopes that the client has too, because its next token replaces this one.
	scopes := s.scopes(spellings...)
	for _, known := range s.set.Scopes {
		if slices.Contains(from.Scopes, known.Scope) && !slices.Contains(scopes, known.Scope) {
			scopes = append(scopes, known.Scope)
		}
	}
	return &Rejection{
		Status: http.StatusForbidden,
		Reason: "forbidden: the request needs the " + text.Plural(len(scopes), "scope") + " " + strings.Join(scopes, " "),
		code:   "insufficient_scope", scopes: scopes,
	}
}

// scopes returns the scopes that every request needs, and those for calls of a tool with these
// spellings.
func (s *oauthState) scopes(spellings ...string) (out []string) {
	for _, one := range s.set.Required(spellings...) {
		out = text.AppendNew(out, one.Scope)
	}
	return out
}

// Challenge implements [Verifier] (RFC 6750 section 3, RFC 9728 section 5.1).
func (o *OAuth) Challenge(no *Rejection, path string) string {
	if no.Status != http.StatusUnauthorized && no.code == "" {
		return ""
	}
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, fmt.Sprintf("%s=%+q", name, value))
		}
	}
	if add("error", no.code); no.code != "" {
		_, reason, _ := strings.Cut(no.Reason, ": ")
		add("error_description", reason)
	}
	add("scope", strings.Join(no.scopes, " "))
	add("resource_metadata", metadataAddress(o.current.Load().resource(path)))
	return "Bearer " + strings.Join(params, ", ")
}

// resource returns the resource that a path belongs to: the audience or, for the endpoint of a
// profile, the URL of that.
func (s *oauthState) resource(path string) string {
	if profile, ok := strings.CutPrefix(path, Endpoint+"/"); ok && profile != "" {
		return strings.TrimRight(s.set.Audience.Value, "/") + "/" + profile
	}
	return s.set.Audience.Value
}

// metadataAddress returns the address of the metadata of a resource (RFC 9728 section 3.1).
func metadataAddress(resource string) string {
	u, err := url.Parse(resource)
	if err != nil { // was checked before
		return ""
	}
	return u.Scheme + "://" + u.Host + resourceMetadata + strings.TrimRight(u.EscapedPath(), "/")
}

// ServeMetadata answers with the metadata of the resource (RFC 9728 section 2), and returns false
// if the path is not that of any metadata. It lists only scopes that every request needs, because
// clients ask for all that are listed; they ask for those of tools when they need them.
func (o *OAuth) ServeMetadata(w http.ResponseWriter, r *http.Request) bool {
	now := o.current.Load()
	resource, ok := now.described(r.URL.EscapedPath())
	if !ok {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // the client may be gone
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{resource, []string{now.set.Issuer.Value}, now.scopes(), []string{"header"}, "toolreg"})
	return true
}

// described returns the resource whose metadata is at a path. There is metadata for the host, for
// the endpoint, and for those of profiles, also under the paths that clients see behind a proxy.
func (s *oauthState) described(path string) (resource string, ok bool) {
	of, ok := strings.CutPrefix(path, resourceMetadata)
	u, err := url.Parse(s.set.Audience.Value)
	switch {
	case !ok || err != nil: // the error was checked before
		return "", false
	case of == "":
		return s.set.Audience.Value, true
	}
	for _, base := range []string{Endpoint, strings.TrimRight(u.EscapedPath(), "/")} {
		if rest, ok := strings.CutPrefix(of, base); ok && base != "" && (rest == "" || strings.HasPrefix(rest, "/")) {
			return s.resource(Endpoint + rest), true
		}
	}
	return "", false
}
