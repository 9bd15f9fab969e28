package mcptest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
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
	if !a.o.keep {
		if g.challenge == "used" {
			*g.dead = true
			return nil
		}
		used := *g
		used.challenge = "used"
		a.refresh[token] = &used
	}
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
	if kind != "client_credentials" && !a.o.noRefresh && (kind == "authorization_code" || !a.o.keep) {
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

// API is an API that the authority protects. It returns what it was sent. A GET request for
// /mcp/openapi.json returns a document of it.
func (a *Authority) API() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.count("api")
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch g := a.valid(token); {
		case r.URL.Path == "/mcp/openapi.json" && a.o.open:
		case g == nil:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			http.Error(w, "who are you? not "+token, http.StatusUnauthorized)
			return
		case a.o.need != "" && r.Method != http.MethodGet && !slices.Contains(g.scopes, a.o.need):
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, a.o.need))
			http.Error(w, "not with "+token, http.StatusForbidden)
			return
		}
		if r.URL.Path == "/mcp/openapi.json" {
			reply(w, http.StatusOK, json.RawMessage(`{"openapi": "3.1.0", "info": {"title": "Notes of `+
				token+`", "version": "1"}, "paths": {"/notes": {
				"get": {"operationId": "notes", "description": "Notes of `+token+`", "responses": {}},
				"post": {"operationId": "write", "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"text": {"type": "string"}}}}}}, "responses": {}}}}}`))
			return
		}
		body, _ := io.ReadAll(r.Body) // what there is of it
		reply(w, http.StatusOK, map[string]any{"method": r.Method, "path": r.URL.Path,
			"authorization": r.Header.Get("Authorization"), "body": string(body)})
	})
}

// MCP is the MCP server that the authority protects.
func (a *Authority) MCP() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource, err := url.Parse(a.Resource)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		switch {
		case r.URL.Path == "/.well-known/oauth-protected-resource"+resource.Path && !a.o.legacy:
			a.count("metadata")
			m := map[string]any{"resource": a.Resource, "authorization_servers": []string{a.Issuer},
				"scopes_supported": strings.Fields(a.o.scopes)}
			if a.o.fault == "resource" {
				m["resource"] = "https://elsewhere.example/mcp"
			}
			reply(w, http.StatusOK, m)
		case r.URL.Path == resource.Path:
			a.guard(w, r)
		case a.o.legacy:
			a.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// guard accepts requests with a valid token.
func (a *Authority) guard(w http.ResponseWriter, r *http.Request) {
	a.count("mcp")
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var m struct{ Method string }
	_ = json.Unmarshal(body, &m) // the server refuses invalid JSON
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	g := a.valid(token)
	if g != nil && (scheme == "DPoP") != (g.key != "") {
		g = nil
	}
	metadata := fmt.Sprintf(`resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`,
		strings.TrimSuffix(a.Resource, "/mcp"))
	if a.o.legacy {
		metadata = `realm="mcp"`
	}
	if g != nil && g.key != "" {
		if key, err := a.proof(w, r, token); err != nil || key != g.key {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`DPoP error="%v", %s`, err, metadata))
			http.Error(w, "which key?", http.StatusUnauthorized)
			return
		}
	}
	switch {
	case a.o.open, a.o.lazy && m.Method != "tools/call" && g == nil:
	case g == nil:
		w.Header().Set("WWW-Authenticate", "Bearer "+metadata)
		http.Error(w, "who are you? not "+token, http.StatusUnauthorized)
		return
	case a.o.need != "" && m.Method == "tools/call" && !slices.Contains(g.scopes, a.o.need):
		w.Header().Set("WWW-Authenticate",
			fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s", %s`, a.o.need, metadata))
		http.Error(w, "not with "+token, http.StatusForbidden)
		return
	}
	if a.o.users && g != nil {
		a.userServer(g.user).ServeHTTP(w, r)
		return
	}
	a.mcp.ServeHTTP(w, r)
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
