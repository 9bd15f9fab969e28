package serve

import (
	"context"
	"crypto/sha256"
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
)

const (
	// resourceMetadata is the well-known path of the metadata of a protected resource (RFC 9728).
	resourceMetadata = "/.well-known/oauth-protected-resource"
	// consoleScope is the scope with which a token may enter the console.
	consoleScope = "console"
)

// OAuth makes the server a resource server of OAuth 2.1: the tokens of clients are JSON Web
// Tokens of an issuer. Create it with [NewOAuth]. It is safe for concurrent use.
type OAuth struct {
	warn    func(error)
	current atomic.Pointer[oauthState]
}

// oauthState is what the settings say now.
type oauthState struct {
	set      settings.ServeOAuth
	verifier *accesstoken.Verifier
	replaced chan struct{} // closed when it is
}

// NewOAuth returns a resource server with the settings serve.oauth. warn receives errors of
// getting the issuer's keys.
func NewOAuth(set settings.ServeOAuth, warn func(error)) (*OAuth, error) {
	o := &OAuth{warn: warn}
	return o, o.Change(set)
}

// Change applies changed settings. What runs with tokens that they do not accept ends soon. If
// there is an error in them, the earlier ones stay. It is not called concurrently.
func (o *OAuth) Change(set settings.ServeOAuth) error {
	c := accesstoken.Config{Issuer: set.Issuer.Value, Audience: set.Audience.Value, KeysURL: set.KeysURL.Value, Name: set.Name.Value, Groups: set.Groups.Value}
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

// follow gets the keys of the issuer now and from time to time, until ctx is done.
func (o *OAuth) follow(ctx context.Context) {
	for ctx.Err() == nil {
		now := o.current.Load()
		now.verifier.Follow(ctx, now.replaced)
	}
}

// find implements tokens.
func (o *OAuth) find(ctx context.Context, token, path string) (identity, *rejection) {
	now := o.current.Load()
	if token == "" {
		return identity{}, &rejection{status: http.StatusUnauthorized, reason: "unauthorized: send an access token of " + now.set.Issuer.Value, scopes: now.scopes()}
	}
	t, err := now.verifier.Verify(ctx, token, now.resource(path))
	if _, invalid := errors.AsType[*accesstoken.InvalidError](err); err != nil && !invalid {
		return identity{}, &rejection{status: http.StatusServiceUnavailable, reason: "the token cannot be verified now: " + err.Error()}
	}
	if err == nil {
		err = checkCaller(t.Name)
	}
	if err != nil {
		return identity{}, &rejection{status: http.StatusUnauthorized, reason: "unauthorized: " + err.Error(), code: "invalid_token", scopes: now.scopes()}
	}
	from := identity{name: t.Name, groups: t.Groups, expires: t.Expires, scopes: t.Scopes, console: slices.Contains(t.Scopes, consoleScope), sum: sha256.Sum256([]byte(token)), under: now}
	return from, now.permit(from)
}

// checkCaller returns an error for a name that clients without a token have.
func checkCaller(name string) error {
	if name == caller.Stdio || name == caller.Local {
		return fmt.Errorf("%s is the name of clients without a token", name)
	}
	return nil
}

// renew implements tokens.
func (o *OAuth) renew(from identity) (identity, bool) {
	now := o.current.Load()
	return from, from.under != nil && from.under.verifier == now.verifier && now.verifier.Now().Before(from.expires) && now.permit(from) == nil
}

// permit returns why a request of an identity is rejected, which may call tools with these
// spellings; nil if it is permitted.
func (s *oauthState) permit(from identity, spellings ...string) *rejection {
	if s.set.Lacking(from.scopes, spellings...) == nil {
		return nil
	}
	// All that the client has and needs, because the next token replaces this one.
	scopes := s.scopes(spellings...)
	for _, known := range s.set.Scopes {
		if slices.Contains(from.scopes, known.Scope) && !slices.Contains(scopes, known.Scope) {
			scopes = append(scopes, known.Scope)
		}
	}
	what := "scopes "
	if len(scopes) == 1 {
		what = "scope "
	}
	return &rejection{status: http.StatusForbidden, reason: "forbidden: the request needs the " + what + strings.Join(scopes, " "), code: "insufficient_scope", scopes: scopes}
}

// scopes returns the scopes that requests need, or calls of a tool with these spellings.
func (s *oauthState) scopes(spellings ...string) (out []string) {
	for _, one := range s.set.Required(spellings...) {
		if !slices.Contains(out, one.Scope) {
			out = append(out, one.Scope)
		}
	}
	return out
}

// challenge implements tokens (RFC 6750 section 3, RFC 9728 section 5.1).
func (o *OAuth) challenge(no *rejection, path string) string {
	if no.status == http.StatusServiceUnavailable {
		return ""
	}
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, fmt.Sprintf("%s=%+q", name, value))
		}
	}
	if add("error", no.code); no.code != "" {
		_, reason, _ := strings.Cut(no.reason, ": ")
		add("error_description", reason)
	}
	add("scope", strings.Join(no.scopes, " "))
	add("resource_metadata", metadataAddress(o.current.Load().resource(path)))
	return "Bearer " + strings.Join(params, ", ")
}

// resource returns the resource that a request with a path is for: the audience or, for the
// endpoint of a profile, the address of that.
func (s *oauthState) resource(path string) string {
	if profile, ok := strings.CutPrefix(path, endpoint+"/"); ok && profile != "" {
		return strings.TrimRight(s.set.Audience.Value, "/") + "/" + profile
	}
	return s.set.Audience.Value
}

// metadataAddress returns the address of the metadata of a resource (RFC 9728 section 3.1).
func metadataAddress(resource string) string {
	u, err := url.Parse(resource)
	if err != nil { // has been checked
		return ""
	}
	return u.Scheme + "://" + u.Host + resourceMetadata + strings.TrimRight(u.EscapedPath(), "/")
}

// serveMetadata answers with the metadata of the resource (RFC 9728 section 2). Only the scopes
// of every request are in it, because clients ask for all of them; they ask for those of tools when
// they need them.
func (o *OAuth) serveMetadata(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	now := o.current.Load()
	resource, _ := now.described(r.URL.EscapedPath())
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // the client may be gone
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{resource, []string{now.set.Issuer.Value}, now.scopes(), []string{"header"}, "toolreg"})
}

// isMetadata reports whether metadata are at a path.
func (o *OAuth) isMetadata(path string) bool {
	_, ok := o.current.Load().described(path)
	return ok
}

// described returns the resource whose metadata are at a path. They are there for the host, and for
// the endpoint and those of profiles, also by the paths that clients see behind a proxy.
func (s *oauthState) described(path string) (resource string, ok bool) {
	of, ok := strings.CutPrefix(path, resourceMetadata)
	u, err := url.Parse(s.set.Audience.Value)
	switch {
	case !ok || err != nil: // the latter has been checked
		return "", false
	case of == "":
		return s.set.Audience.Value, true
	}
	for _, base := range []string{endpoint, strings.TrimRight(u.EscapedPath(), "/")} {
		if rest, ok := strings.CutPrefix(of, base); ok && base != "" && (rest == "" || strings.HasPrefix(rest, "/")) {
			return s.resource(endpoint + rest), true
		}
	}
	return "", false
}
