package webaddr

import (
	"net/url"
	"strings"
)

// IssuerMetadata returns the possible addresses of the metadata of an authorization server, in
// the order of the MCP specification (2025-11-25, authorization server metadata discovery; RFC
// 8414 section 3.1, OpenID Connect Discovery 1.0 section 4.1). It returns nil if issuer is not a URL.
func IssuerMetadata(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	base, path := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return []string{base + oauth, base + openID}
	}
	return []string{base + oauth + "/" + path, base + openID + "/" + path, base + "/" + path + openID}
}
