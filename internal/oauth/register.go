package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// identity says who we are to the authorization server: the client of the
// settings, their client metadata document, the client that an earlier login
// registered there, or one that is registered now.
func (c *Client) identity(ctx context.Context, w *web, a *authority, redirect string, old *record) (identity, error) {
	o := c.config
	own := identity{ID: o.ClientID, Method: method(o.ClientSecret, o.PrivateKey, a.TokenEndpointAuthMethodsSupported)}
	document := isDocument(o.ClientID)
	switch {
	case o.ClientID != "" && (!document || a.ClientIDMetadataDocumentSupported):
		return own, nil
	case old != nil && old.Client.Registered && old.Issuer == a.Issuer && old.Client.RedirectURI == redirect && !c.over(old.Client.SecretExpires):
		return old.Client, nil
	case a.RegistrationEndpoint != "":
		id, err := c.register(ctx, w, a, redirect)
		if err != nil {
			return identity{}, fmt.Errorf("registering with %s: %w", a.Issuer, err)
		}
		return id, nil
	case document:
		return identity{}, fmt.Errorf("the authorization server %s reads no client metadata documents and registers no clients; register one there and set its id as oauth.clientId", a.Issuer)
	}
	return identity{}, fmt.Errorf("the authorization server %s registers no clients by itself; register one there and set its id as oauth.clientId", a.Issuer)
}

func (c *Client) over(expires int64) bool { return expires != 0 && c.now().Unix() >= expires }

// isDocument reports whether a client id is the address of a client metadata
// document (draft-ietf-oauth-client-id-metadata-document).
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/"
}

// registration is the answer to a registration (RFC 7591 section 3.2.1), as far
// as we use it.
type registration struct {
	ID            string  `json:"client_id"`
	Secret        string  `json:"client_secret"`
	Method        string  `json:"token_endpoint_auth_method"`
	SecretExpires float64 `json:"client_secret_expires_at"`
	Error         string  `json:"error"`
}

// register registers us as a new client (RFC 7591), one without a secret where
// the server takes such.
func (c *Client) register(ctx context.Context, w *web, a *authority, redirect string) (identity, error) {
	takes := a.TokenEndpointAuthMethodsSupported
	wanted := methodNone
	if len(takes) > 0 && !slices.Contains(takes, methodNone) {
		wanted = method("a secret", "", takes)
	}
	body, err := json.Marshal(&oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: wanted, ClientName: "toolreg",
		GrantTypes: []string{grantCode, grantRefresh}, ResponseTypes: []string{"code"}, ApplicationType: "native",
	})
	if err != nil {
		return identity{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil {
		return identity{}, errors.New("its endpoint is no web address")
	}
	r.Header.Set("Content-Type", "application/json")
	status, data, err := w.do(r)
	if err != nil {
		return identity{}, err
	}
	var got registration
	err = decode(data, &got)
	switch {
	case status != http.StatusCreated && status != http.StatusOK:
		return identity{}, &tokenError{status, got.Error}
	case err != nil:
		return identity{}, err
	case got.ID == "":
		return identity{}, errors.New("its answer holds no client id")
	}
	if got.Method == "" {
		got.Method = method(got.Secret, "", takes)
	}
	if got.Secret == "" {
		got.Method = methodNone
	}
	return identity{ID: got.ID, Secret: got.Secret, Method: got.Method, RedirectURI: redirect, Registered: true, SecretExpires: int64(got.SecretExpires)}, nil
}
