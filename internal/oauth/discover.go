package oauth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolreg/toolreg/internal/webaddr"
)

// metadata is what an authorization server publishes (RFC 8414).
type metadata struct {
	Issuer                string
	AuthorizationEndpoint string
	TokenEndpoint         string
	RegistrationEndpoint  string
	RevocationEndpoint    string
	Scopes                []string
	AuthMethods           []string // of clients, at the token endpoint
	ChallengeMethods      []string // of PKCE
	ProofAlgorithms       []string // RFC 9449 section 5.1
	SendsIssuer           bool     // RFC 9207
	ReadsClientDocuments  bool     // draft-ietf-oauth-client-id-metadata-document
}

func readMetadata(d document) metadata {
	return metadata{
		Issuer:                d.text("issuer"),
		AuthorizationEndpoint: d.text("authorization_endpoint"),
		TokenEndpoint:         d.text("token_endpoint"),
		RegistrationEndpoint:  d.text("registration_endpoint"),
		RevocationEndpoint:    d.text("revocation_endpoint"),
		Scopes:                d.words("scopes_supported"),
		AuthMethods:           d.words("token_endpoint_auth_methods_supported"),
		ChallengeMethods:      d.words("code_challenge_methods_supported"),
		ProofAlgorithms:       d.words("dpop_signing_alg_values_supported"),
		SendsIssuer:           d.flag("authorization_response_iss_parameter_supported"),
		ReadsClientDocuments:  d.flag("client_id_metadata_document_supported"),
	}
}

// authority is the authorization server of an MCP server.
type authority struct {
	metadata
	resource string   // resource of the tokens (RFC 8707)
	scopes   []string // supported scopes according to the MCP server
	guessed  bool     // no metadata is published, so the default endpoints of revision 2025-03-26 are used
	unnamed  bool     // the settings have the endpoints, but not the issuer
}

// discover finds the authorization server with the protected resource metadata of the MCP server,
// or else at its root as in revision 2025-03-26. Settings override both; for an API, only the
// settings are used.
func (s *server) discover(ctx context.Context, w *web, ch challenge) (*authority, error) {
	o := s.config
	a := &authority{resource: s.url} // unless the server specifies another one (RFC 8707; MCP, canonical server URI)
	issuers := []string{root(o.TokenURL)}
	if s.isAPI {
		a.resource, a.unnamed = "", o.Issuer == ""
	} else {
		var err error
		if issuers, err = s.protectedResource(ctx, w, ch, a); err != nil {
			return nil, err
		}
	}
	if o.Issuer != "" || len(issuers) == 0 {
		issuers = []string{cmp.Or(o.Issuer, root(s.url))}
	}
	if complete := o.TokenURL != "" && (o.AuthorizationURL != "" || s.unattended()); complete {
		a.Issuer = issuers[0]
	} else if err := w.authority(ctx, issuers, a); err != nil {
		return nil, err
	}
	if o.Resource != "" && o.Resource != a.resource && s.foreign { // it could get the tokens of another server
		return nil, errors.New("oauth.resource has no effect in a project: put the server into your own settings")
	}
	if override(&a.resource, o.Resource); o.Resource == "none" {
		a.resource = ""
	}
	override(&a.AuthorizationEndpoint, o.AuthorizationURL)
	override(&a.TokenEndpoint, o.TokenURL)
	override(&a.RegistrationEndpoint, o.RegistrationURL)
	return a, w.checkAuthority(a, s.unattended())
}

func override(field *string, value string) {
	if value != "" {
		*field = value
	}
}

// checkAuthority checks every URL that will be used.
func (w *web) checkAuthority(a *authority, unattended bool) error {
	type endpoint struct {
		name, address string
		needed        bool
	}
	endpoints := []endpoint{{"token endpoint", a.TokenEndpoint, true},
		{"registration endpoint", a.RegistrationEndpoint, false}, {"revocation endpoint", a.RevocationEndpoint, false}}
	if !unattended {
		endpoints = append(endpoints, endpoint{"authorization endpoint", a.AuthorizationEndpoint, true})
	}
	for _, e := range endpoints {
		if e.address == "" {
			if e.needed {
				return fmt.Errorf("the authorization server %s has no %s", a.Issuer, e.name)
			}
			continue
		}
		if err := w.checkURL(e.address); err != nil {
			return fmt.Errorf("the %s of %s: %w", e.name, a.Issuer, err)
		}
	}
	return nil
}

// protectedResource reads the metadata of the MCP server (RFC 9728) into a and
// returns its issuers, none if there is no metadata.
func (s *server) protectedResource(ctx context.Context, w *web, ch challenge, a *authority) (issuers []string, err error) {
	_, err = webaddr.FirstDocument(ctx, resourceMetadata(ch.metadata, s.url), func(address string) error {
		d, err := w.getJSON(ctx, address)
		if err != nil {
			return fmt.Errorf("reading the server's login metadata: %w", err)
		}
		resource := d.text("resource")
		if !isForServer(resource, s.url) {
			return fmt.Errorf("the server's login metadata is for another server, %q", resource)
		}
		a.resource, a.scopes = resource, cleanScopes(d.words("scopes_supported"))
		issuers = d.words("authorization_servers")
		return nil
	}, isAbsent)
	return issuers[:min(len(issuers), maxIssuers)], err
}

// isAbsent reports whether an error means that a document does not exist,
// rather than that it could not be fetched.
func isAbsent(err error) bool {
	if e, ok := errors.AsType[webaddr.StatusError](err); ok {
		return e >= 400 && e < 500
	}
	return errors.Is(err, errNotJSON)
}

// resourceMetadata returns the possible URLs of an MCP server's metadata: the
// one in its challenge, the well-known URL of its path, and that of its host.
func resourceMetadata(named, server string) []string {
	var out []string
	if named != "" {
		out = append(out, named)
	}
	const place = "/.well-known/oauth-protected-resource"
	u, err := url.Parse(server)
	if err != nil {
		return out
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if path != "" {
		out = append(out, root(server)+place+path)
	}
	return append(out, root(server)+place)
}

// isForServer reports whether metadata about resource is valid for the server:
// resource is the server's URL, or a parent of it on the same origin.
func isForServer(resource, server string) bool {
	r, err := url.Parse(resource)
	if err != nil || r.RawQuery != "" || r.User != nil {
		return false
	}
	s, err := url.Parse(server)
	if err != nil || webaddr.Origin(r) != webaddr.Origin(s) {
		return false
	}
	above, path := strings.TrimRight(r.EscapedPath(), "/"), strings.TrimRight(s.EscapedPath(), "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// maxIssuers is how many authorization servers of an MCP server are tried.
const maxIssuers = 3

// authority reads the metadata of the first authorization server that publishes any. If none does, it
// uses the default endpoints of revision 2025-03-26 at the first.
func (w *web) authority(ctx context.Context, issuers []string, a *authority) error {
	found, err := webaddr.FirstDocument(ctx, issuers, func(issuer string) (err error) {
		if a.metadata, err = w.metadata(ctx, issuer); err != nil {
			err = fmt.Errorf("asking the authorization server %s: %w", issuer, err)
		}
		return err
	}, isAbsent)
	if found || err != nil {
		return err
	}
	issuer := issuers[0]
	base := strings.TrimSuffix(issuer, "/")
	a.metadata = metadata{
		Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token",
		RegistrationEndpoint: base + "/register",
	}
	a.guessed = true
	return nil
}

// metadata reads the metadata of an authorization server (RFC 8414, OpenID Connect Discovery 1.0).
func (w *web) metadata(ctx context.Context, issuer string) (m metadata, err error) {
	if err := w.checkURL(issuer); err != nil {
		return m, err
	}
	found, err := webaddr.FirstDocument(ctx, webaddr.IssuerMetadata(issuer), func(address string) error {
		d, err := w.getJSON(ctx, address)
		if err != nil {
			return err
		}
		m = readMetadata(d)
		if !isIssuer(strings.TrimSuffix(m.Issuer, "/"), strings.TrimSuffix(issuer, "/")) {
			return fmt.Errorf("its metadata is for another issuer, %q", m.Issuer)
		}
		return nil
	}, isAbsent)
	if !found && err == nil {
		err = errNotJSON
	}
	return m, err
}

// isIssuer reports whether an issuer is the one that metadata names. The metadata of Microsoft Entra for
// several tenants has {tenantid} in place of one part of the path.
func isIssuer(named, issuer string) bool {
	before, after, several := strings.Cut(named, "/{tenantid}")
	if u, err := url.Parse(before); !several || err != nil || u.Host == "" {
		return named == issuer
	}
	tenant, ok := strings.CutPrefix(strings.TrimSuffix(issuer, after), before+"/")
	return ok && strings.HasSuffix(issuer, after) && tenant != "" && !strings.Contains(tenant, "/")
}

// identity returns our client at the authorization server: the client of the
// settings, their client metadata document, the client that an earlier login
// registered, or a newly registered client.
func (s *server) identity(ctx context.Context, w *web, a *authority,
	redirect string, scopes []string, old *record) (identity, error) {
	o := s.config
	own := identity{ID: o.ClientID, Method: method(o.ClientSecret, o.PrivateKey, a.AuthMethods)}
	document := isDocument(o.ClientID)
	switch {
	case o.ClientID != "" && (!document || a.ReadsClientDocuments):
		return own, nil
	case old != nil && old.Client.Registered && !old.Client.Doubted && old.Issuer == a.Issuer &&
		old.Client.RedirectURI == redirect && !s.expired(old.Client.SecretExpires) && old.Client.covers(scopes):
		return old.Client, s.doubt(ctx, old.Client.ID)
	case a.RegistrationEndpoint != "":
		id, err := s.register(ctx, w, a, redirect, scopes)
		refused, isRefused := errors.AsType[*tokenError](err)
		if isRefused && !refused.mayPass() && len(scopes) > 0 { // some issuers let no client choose its scopes
			id, err = s.register(ctx, w, a, redirect, nil)
		}
		if err != nil {
			err = fmt.Errorf("registering with %s: %w", a.Issuer, err)
		}
		if err != nil && isRefused && !refused.mayPass() {
			err = fmt.Errorf("%w; register a client there yourself and set its id as oauth.clientId", err)
		}
		return id, err
	case document:
		return identity{}, fmt.Errorf("the authorization server %s supports neither client metadata documents nor client registration; register a client there and set its id as oauth.clientId",
			a.Issuer)
	}
	return identity{}, fmt.Errorf("the authorization server %s does not support client registration; register a client there and set its id as oauth.clientId",
		a.Issuer)
}

// covers reports whether a registered client can request scopes.
func (i identity) covers(scopes []string) bool {
	return len(i.Scopes) == 0 ||
		!slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(i.Scopes, s) })
}

// doubt records in the stored login that its client may be unknown to the issuer. A login that
// succeeds replaces it.
func (s *server) doubt(ctx context.Context, id string) error {
	return s.update(ctx, func(r *record) (*record, error) {
		if r != nil && r.Client.ID == id {
			r.Client.Doubted = true
		}
		return r, nil
	})
}

func (s *server) expired(expires int64) bool { return expires != 0 && s.now().Unix() >= expires }

// isDocument reports whether a client id is the URL of a client metadata
// document (draft-ietf-oauth-client-id-metadata-document).
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/"
}

// register registers a new client (RFC 7591), without a secret if the server supports that, for the
// given scopes; without any, the server decides.
func (s *server) register(ctx context.Context, w *web, a *authority,
	redirect string, scopes []string) (identity, error) {
	takes := a.AuthMethods
	wanted := methodNone
	if len(takes) > 0 && !slices.Contains(takes, methodNone) {
		wanted = method("a secret", "", takes)
	}
	described := clientMetadata(redirect, wanted)
	described.Scope = strings.Join(scopes, " ")
	body, err := json.Marshal(described)
	if err != nil {
		return identity{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil { // cannot happen: the URL was checked
		return identity{}, errors.New("its registration endpoint is not a web address")
	}
	r.Header.Set("Content-Type", "application/json")
	status, data, err := w.do(r)
	if err != nil {
		return identity{}, err
	}
	got, err := answered(status, data)
	if err != nil {
		return identity{}, err
	}
	id := identity{
		ID:            got.text("client_id"),
		Secret:        got.text("client_secret"),
		Method:        got.text("token_endpoint_auth_method"),
		RedirectURI:   redirect,
		Registered:    true,
		SecretExpires: int64(got.number("client_secret_expires_at")),
		Scopes:        scopes,
	}
	switch {
	case id.ID == "":
		return identity{}, errors.New("its answer has no client_id")
	case id.Secret == "":
		id.Method = methodNone
	case id.Method == "":
		id.Method = method(id.Secret, "", takes)
	}
	return id, nil
}

// clientMetadata describes our client with a redirect URI.
func clientMetadata(redirect, method string) *oauthex.ClientRegistrationMetadata {
	kind := "native"
	if u, err := url.Parse(redirect); err == nil && u.Scheme == "https" {
		kind = "web"
	}
	return &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, ClientName: "toolreg",
		GrantTypes: []string{grantCode, grantRefresh}, ResponseTypes: []string{"code"}, ApplicationType: kind,
	}
}
