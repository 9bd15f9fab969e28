package oauth

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// unknownIssuerError reports that a secret of the settings would be sent to an
// authorization server that only the MCP server specified.
type unknownIssuerError struct{ server, issuer, setting string }

func (e *unknownIssuerError) Error() string {
	return fmt.Sprintf("it names the authorization server %s, which would get %s; if that is right, set oauth.issuer to it, or run toolreg servers login %s at a terminal",
		e.issuer, e.setting, shellWord(e.server))
}

// Is reports whether target is registry.ErrNeedsConfirmation.
func (e *unknownIssuerError) Is(target error) bool { return target == registry.ErrNeedsConfirmation }

// disclosing reports whether a secret of the settings would be sent to an
// authorization server that the MCP server specifies. Signatures of a private
// key are not such secrets, because they are valid for only one issuer.
func (c *Client) disclosing() bool {
	o := c.config
	return o.ClientID != "" && o.ClientSecret+o.Assertion != "" && o.Issuer == "" && o.TokenURL == ""
}

// checkIssuer refuses to send secrets of the settings to an issuer that neither
// the settings nor the user chose, because the MCP server specifies it. A
// stored login implies the user's consent to its issuer.
func (c *Client) checkIssuer(old *record, issuer string) error {
	o := c.config
	switch {
	case o.ClientSecret+o.PrivateKey+o.Assertion+o.IDToken == "", o.Issuer != "", issuer == c.agreed, old != nil && old.Issuer == issuer:
		return nil
	case old != nil:
		return fmt.Errorf("it names another authorization server (%s) than before (%s), which would receive the client's secret; if that is right, set oauth.issuer", issuer, old.Issuer)
	case c.disclosing() && o.ClientSecret == "":
		return &unknownIssuerError{c.name, issuer, "oauth.assertion"}
	case c.disclosing():
		return &unknownIssuerError{c.name, issuer, "oauth.clientSecret"}
	}
	return nil
}

// consent asks the user whether an issuer may receive a secret.
func (c *Client) consent(ctx context.Context, old *record, issuer string, agree func(ctx context.Context, issuer, setting string) (bool, error)) error {
	err := c.checkIssuer(old, issuer)
	unknown, ok := errors.AsType[*unknownIssuerError](err)
	if !ok || agree == nil {
		return err
	}
	yes, err := agree(ctx, issuer, unknown.setting)
	if err == nil && !yes {
		err = ErrRefused
	}
	if err == nil {
		c.agreed = issuer
	}
	return err
}

// revocation returns the endpoint that revokes tokens and requires the secret;
// "" if the settings choose the token endpoint but the MCP server chooses the
// others.
func (c *Client) revocation(a *authority) string {
	if c.config.TokenURL != "" && c.config.Issuer == "" && c.config.ClientSecret != "" {
		return ""
	}
	return a.RevocationEndpoint
}
