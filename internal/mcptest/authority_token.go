package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// token is the token endpoint.
func (a *Authority) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_request")
		return
	}
	kind := r.PostForm.Get("grant_type")
	a.count("token " + kind)
	switch a.o.fault {
	case "down":
		http.Error(w, "echo "+r.PostForm.Encode(), http.StatusBadGateway)
		return
	case "token-redirect":
		http.Redirect(w, r, a.Issuer+"/elsewhere", http.StatusTemporaryRedirect)
		return
	case "dpop":
		reply(w, http.StatusOK, map[string]any{"access_token": "x", "token_type": "DPoP"})
		return
	}
	c := a.proven(r)
	if c == nil {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	if !a.isTarget(r.PostForm.Get("resource")) {
		refuse(w, http.StatusBadRequest, "invalid_target")
		return
	}
	key, err := a.proof(w, r, "")
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	var g *grant
	switch kind {
	case "authorization_code":
		g = a.redeem(r.PostForm, c)
	case "refresh_token":
		g = a.rotate(r.PostForm.Get("refresh_token"), c)
	case "client_credentials":
		if c.method != "none" {
			g = &grant{client: c.id, resource: r.PostForm.Get("resource"),
				scopes: strings.Fields(r.PostForm.Get("scope")), dead: new(bool)}
		}
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	if g == nil || g.key != "" && g.key != key {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	g.key = key
	out, err := a.issue(g, kind)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, http.StatusOK, out)
}

// proven returns the client of a request after authenticating it.
func (a *Authority) proven(r *http.Request) *client {
	id, secret, method := r.PostForm.Get("client_id"), r.PostForm.Get("client_secret"), "client_secret_post"
	if secret == "" {
		method = "none"
	}
	if user, password, ok := r.BasicAuth(); ok {
		var err error
		if id, err = url.QueryUnescape(user); err != nil {
			return nil
		}
		if secret, err = url.QueryUnescape(password); err != nil {
			return nil
		}
		method = "client_secret_basic"
	}
	c := a.known(id)
	if c == nil || c.secret != secret || c.method != method {
		return nil
	}
	return c
}

// redeem accepts a code once.
func (a *Authority) redeem(form url.Values, c *client) *grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.codes[form.Get("code")]
	if g == nil {
		return nil
	}
	delete(a.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if g.client != c.id || g.redirect != form.Get("redirect_uri") ||
		g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		return nil
	}
	return g
}

// rotate accepts a refresh token once; using it again ends the whole login.
func (a *Authority) rotate(token string, c *client) *grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.refresh[token]
	if g == nil || g.client != c.id || *g.dead {
		return nil
	}
	if g.challenge == "used" {
		*g.dead = true
		return nil
	}
	used := *g
	used.challenge = "used"
	a.refresh[token] = &used
	return g
}

func (a *Authority) issue(g *grant, kind string) (map[string]any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := *g
	next.challenge = ""
	token := "access-" + rand.Text()
	if a.o.jwt != "" {
		var err error
		if token, err = a.sign(g.resource, g.scopes, a.o.ttl, nil); err != nil {
			return nil, err
		}
	}
	given := next
	if a.o.ttl > 0 {
		given.expires = a.Now().Add(a.o.ttl)
	}
	a.access[token] = &given
	out := map[string]any{"access_token": token, "token_type": "Bearer"}
	if g.key != "" {
		out["token_type"] = "DPoP"
	}
	if a.o.ttl > 0 {
		out["expires_in"] = int(a.o.ttl.Seconds())
	}
	if len(g.scopes) > 0 {
		out["scope"] = strings.Join(g.scopes, " ")
	}
	if kind != "client_credentials" && !a.o.noRefresh {
		again := "refresh-" + rand.Text()
		a.refresh[again] = &next
		out["refresh_token"] = again
	}
	return out, nil
}

func (a *Authority) revoke(w http.ResponseWriter, r *http.Request) {
	a.count("revoke")
	if err := r.ParseForm(); err != nil || a.proven(r) == nil || a.o.fault == "no-revoke" {
		refuse(w, http.StatusServiceUnavailable, "temporarily_unavailable")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	token := r.PostForm.Get("token")
	for _, g := range []*grant{a.refresh[token], a.access[token]} {
		if g != nil {
			*g.dead = true
		}
	}
}

// target is the resource that tokens are for.
func (a *Authority) target() string {
	if a.o.api {
		return ""
	}
	return a.Resource
}

// isTarget reports whether tokens for a resource can be had.
func (a *Authority) isTarget(resource string) bool {
	return resource == a.target() || a.o.jwt != "" && resource != ""
}

func (a *Authority) valid(token string) *grant {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.access[token]
	if g == nil || *g.dead || g.resource != a.target() || !g.expires.IsZero() && !a.Now().Before(g.expires) {
		return nil
	}
	return g
}
