package mcptest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// NewAuthority returns an Authority configured by command-line flags; see the
// flags for the options.
func NewAuthority(args ...string) (*Authority, error) {
	a := &Authority{
		Now: time.Now, counts: map[string]int{}, clients: map[string]*client{}, codes: map[string]*grant{},
		access: map[string]*grant{}, refresh: map[string]*grant{}, proofs: map[string]bool{},
	}
	f := flag.NewFlagSet("authority", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&a.o.ttl, "ttl", time.Hour, "lifetime of access tokens; 0 = not said")
	f.StringVar(&a.o.scopes, "scopes", "", "scopes that the metadata of both name")
	f.StringVar(&a.o.need, "need", "", "scope that tools/call needs")
	f.StringVar(&a.o.clientID, "client", "", "`ID` of a client that is registered already")
	f.StringVar(&a.o.secret, "secret", "", "its secret")
	f.StringVar(&a.o.method, "method", "none", "how clients prove themselves")
	f.StringVar(&a.o.fault, "fault", "", "what to do wrong")
	f.BoolVar(&a.o.noDCR, "no-registration", false, "register no clients")
	f.BoolVar(&a.o.cimd, "documents", false, "take client metadata documents")
	f.BoolVar(&a.o.legacy, "legacy", false,
		"publish nothing, as in revision 2025-03-26, and be at the server's own address")
	f.BoolVar(&a.o.open, "open", false, "want no login, though one is possible")
	f.BoolVar(&a.o.noRefresh, "no-refresh", false, "give no refresh tokens")
	f.BoolVar(&a.o.lazy, "lazy", false, "want a login for tools/call alone")
	f.BoolVar(&a.o.api, "api", false, "protect an API, and know no resources")
	f.StringVar(&a.o.host, "host", "", "name this `URL` as the issuer's endpoints")
	f.StringVar(&a.o.hang, "hang", "", "never answer at this `PATH`")
	f.BoolVar(&a.o.dpop, "dpop", false, "bind tokens to the keys of proofs")
	f.BoolVar(&a.o.nonces, "nonces", false, "want a new nonce in every proof")
	f.StringVar(&a.o.jwt, "jwt", "",
		"give access tokens that are JSON Web Tokens, signed with this algorithm, for any resource")
	f.StringVar(&a.o.person, "person", "person", "their subject")
	f.StringVar(&a.o.groups, "groups", "", "their groups")
	f.BoolVar(&a.o.users, "users", false,
		"give each user, who is the one in the cookie \"user\" of the browser, tools, prompts and resources of their own")
	f.BoolVar(&a.away, "away", false, "answer nothing until /back is requested; /away begins it again")
	f.StringVar(&a.o.mark, "mark", "", "write to `FILE` when that begins")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o := options{}
	a.mcp = o.handler()
	if a.o.jwt != "" {
		if err := a.Rotate(); err != nil {
			return nil, err
		}
	}
	if a.o.clientID != "" {
		a.clients[a.o.clientID] = &client{id: a.o.clientID, secret: a.o.secret, method: a.o.method}
	}
	return a, nil
}

// ServeHTTP serves the authorization server.
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.o.hang != "" && r.URL.Path == a.o.hang {
		_, _ = io.Copy(io.Discard, r.Body)
		if a.o.mark != "" && writeWhole(a.o.mark, "here") != nil {
			return
		}
		<-r.Context().Done()
		return
	}
	a.mu.Lock()
	switch r.URL.Path {
	case "/away", "/back":
		a.away = r.URL.Path == "/away"
		a.mu.Unlock()
		return
	}
	away := a.away
	a.mu.Unlock()
	if away {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	switch r.URL.Path {
	case "/keys":
		a.keys(w, r)
	case "/issue":
		token, err := a.Token(r.FormValue("resource"), strings.Fields(r.FormValue("scope")), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, token)
	case "/rotate":
		if err := a.Rotate(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration":
		a.metadata(w, r)
	case "/register":
		a.register(w, r)
	case "/authorize":
		a.authorize(w, r)
	case "/token":
		a.token(w, r)
	case "/revoke":
		a.revoke(w, r)
	case "/expire":
		a.Expire()
	case "/counts":
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(a.counts)) {
			fmt.Fprintf(w, "%s: %d\n", name, a.counts[name])
		}
	default:
		http.NotFound(w, r)
	}
}

func (a *Authority) metadata(w http.ResponseWriter, r *http.Request) {
	a.count("metadata")
	if a.o.legacy || strings.HasSuffix(r.URL.Path, "openid-configuration") {
		http.NotFound(w, r)
		return
	}
	base := a.Issuer
	if a.o.host != "" {
		base = a.o.host
	}
	m := map[string]any{
		"issuer": a.Issuer, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
		"revocation_endpoint": base + "/revoke", "registration_endpoint": base + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{a.o.method},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          a.o.cimd,
		"scopes_supported":                               strings.Fields(a.o.scopes),
	}
	if a.o.jwt != "" {
		m["jwks_uri"] = base + "/keys"
	}
	if a.o.dpop {
		m["dpop_signing_alg_values_supported"] = []string{"ES256"}
	}
	if a.o.noDCR {
		delete(m, "registration_endpoint")
	}
	switch a.o.fault {
	case "issuer":
		m["issuer"] = "https://elsewhere.example"
	case "no-pkce":
		delete(m, "code_challenge_methods_supported")
	case "huge":
		m["padding"] = strings.Repeat("x", 2<<20)
	case "private-redirect":
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		return
	}
	if address, ok := strings.CutPrefix(a.o.fault, "authorize="); ok {
		m["authorization_endpoint"] = address
	}
	if address, ok := strings.CutPrefix(a.o.fault, "token="); ok {
		m["token_endpoint"] = address
	}
	reply(w, http.StatusOK, m)
}

func (a *Authority) register(w http.ResponseWriter, r *http.Request) {
	a.count("register")
	var m struct {
		RedirectURIs []string `json:"redirect_uris"`
		Method       string   `json:"token_endpoint_auth_method"`
		GrantTypes   []string `json:"grant_types"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m)
	if a.o.noDCR || err != nil || len(m.RedirectURIs) != 1 ||
		m.Method != a.o.method || !slices.Contains(m.GrantTypes, "refresh_token") {
		refuse(w, http.StatusBadRequest, "invalid_client_metadata")
		return
	}
	c := &client{id: "registered-" + rand.Text(), method: m.Method, redirect: m.RedirectURIs[0]}
	out := map[string]any{"client_id": c.id, "redirect_uris": m.RedirectURIs, "token_endpoint_auth_method": m.Method}
	if m.Method != "none" {
		c.secret = "secret-" + rand.Text()
		out["client_secret"], out["client_secret_expires_at"] = c.secret, 0
	}
	a.mu.Lock()
	a.clients[c.id] = c
	a.mu.Unlock()
	reply(w, http.StatusCreated, out)
}

// authorize grants access at once, as if the user were already logged in.
func (a *Authority) authorize(w http.ResponseWriter, r *http.Request) {
	a.count("authorize")
	q := r.URL.Query()
	c := a.known(q.Get("client_id"))
	back, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case c == nil:
		http.Error(w, "unknown client", http.StatusBadRequest)
		return
	case err != nil || c.redirect != "" && c.redirect != q.Get("redirect_uri"):
		http.Error(w, "unknown redirect_uri", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		len(q.Get("code_challenge")) != 43 ||
		q.Get("state") == "" || !a.isTarget(q.Get("resource")) || len(q["resource"]) > 1:
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	g := &grant{client: c.id, redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
		resource: q.Get("resource"), scopes: strings.Fields(q.Get("scope")), dead: new(bool)}
	if user, err := r.Cookie("user"); err == nil {
		g.user = user.Value
	}
	code := "code-" + rand.Text()
	a.mu.Lock()
	a.codes[code] = g
	a.mu.Unlock()
	out := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.Issuer}}
	switch a.o.fault {
	case "state":
		out.Set("state", "another")
	case "iss":
		out.Set("iss", "https://elsewhere.example")
	case "no-iss":
		out.Del("iss")
	case "deny":
		out = url.Values{"error": {"access_denied"}, "error_description": {"the person\x1b[31m said no"},
			"state": {q.Get("state")}, "iss": {a.Issuer}}
	case "silence":
		_, _ = io.WriteString(w, "think about it")
		return
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// keys answers with the keys of the authority.
func (a *Authority) keys(w http.ResponseWriter, r *http.Request) {
	a.count("keys")
	if a.o.fault == "keys-elsewhere" && strings.HasPrefix(r.Host, "127.") {
		http.Redirect(w, r, strings.Replace(a.Issuer, "127.0.0.1", "localhost", 1)+"/keys", http.StatusFound)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	set := map[string]any{"keys": []any{map[string]string{"kty": "new", "kid": "of another kind"}, a.signer.public}}
	if a.o.fault == "huge-keys" {
		set["padding"] = strings.Repeat("x", 2<<20)
	}
	reply(w, http.StatusOK, set)
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
