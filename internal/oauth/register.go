package oauth

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// identity returns our client at the authorization server: the client of the
// settings, their client metadata document, the client that an earlier login
// registered, or a newly registered client.
func (c *Client) identity(ctx context.Context, w *web, a *authority, redirect string, old *record) (identity, error) {
	o := c.config
	own := identity{ID: o.ClientID, Method: method(o.ClientSecret, o.PrivateKey, a.TokenEndpointAuthMethodsSupported)}
	document := isDocument(o.ClientID)
	switch {
	case o.ClientID != "" && (!document || a.ClientIDMetadataDocumentSupported):
		return own, nil
	case old != nil && old.Client.Registered && old.Issuer == a.Issuer && old.Client.RedirectURI == redirect && !c.expired(old.Client.SecretExpires):
		return old.Client, nil
	case a.RegistrationEndpoint != "":
		id, err := c.register(ctx, w, a, redirect)
		if err != nil {
			return identity{}, fmt.Errorf("registering with %s: %w", a.Issuer, err)
		}
		return id, nil
	case document:
		return identity{}, fmt.Errorf("the authorization server %s supports neither client metadata documents nor client registration; register a client there and set its id as oauth.clientId", a.Issuer)
	}
	return identity{}, fmt.Errorf("the authorization server %s does not support client registration; register a client there and set its id as oauth.clientId", a.Issuer)
}

func (c *Client) expired(expires int64) bool { return expires != 0 && c.now().Unix() >= expires }

// isDocument reports whether a client id is the URL of a client metadata
// document (draft-ietf-oauth-client-id-metadata-document).
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/"
}

// register registers a new client (RFC 7591), without a secret if the server
// supports that.
func (c *Client) register(ctx context.Context, w *web, a *authority, redirect string) (identity, error) {
	takes := a.TokenEndpointAuthMethodsSupported
	wanted := methodNone
	if len(takes) > 0 && !slices.Contains(takes, methodNone) {
		wanted = method("a secret", "", takes)
	}
	got, err := oauthex.RegisterClient(ctx, a.RegistrationEndpoint, clientMetadata(redirect, wanted), w.client)
	if err != nil {
		return identity{}, w.withoutAnswer(ctx, err)
	}
	id := identity{ID: got.ClientID, Secret: got.ClientSecret, Method: got.TokenEndpointAuthMethod, RedirectURI: redirect, Registered: true}
	if id.Method == "" {
		id.Method = method(id.Secret, "", takes)
	}
	if id.Secret == "" {
		id.Method = methodNone
	}
	if !got.ClientSecretExpiresAt.IsZero() {
		id.SecretExpires = got.ClientSecretExpiresAt.Unix()
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
