package oauth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolreg/toolreg/internal/settings/table"
)

// challenge is the server's challenge when it refused a request (RFC 6750
// section 3, RFC 9728 section 5.1).
type challenge struct {
	given    bool // there was a header
	token    bool // one of its schemes is Bearer or DPoP
	metadata string
	scopes   []string
	err      string
}

// readChallenge parses WWW-Authenticate headers. It ignores what it cannot
// parse.
func readChallenge(headers []string) challenge {
	c := challenge{given: len(headers) > 0}
	for _, h := range headers {
		parsed, err := oauthex.ParseWWWAuthenticate([]string{h})
		if err != nil {
			scheme, _, _ := strings.Cut(strings.TrimSpace(h), " ")
			c.token = c.token || isTokenScheme(scheme)
			continue
		}
		for _, p := range parsed {
			if !isTokenScheme(p.Scheme) {
				continue
			}
			c.token = true
			if v := p.Params["resource_metadata"]; v != "" {
				c.metadata = v
			}
			if v := p.Params["scope"]; v != "" {
				c.scopes = cleanScopes(strings.Fields(v))
			}
			if v := p.Params["error"]; v != "" {
				c.err = v
			}
		}
	}
	return c
}

// isTokenScheme reports whether an authentication scheme takes access tokens.
func isTokenScheme(s string) bool {
	return strings.EqualFold(s, "bearer") || strings.EqualFold(s, "dpop")
}

const (
	// maxScopes is how many scopes a server can make us request.
	maxScopes = 200
	// maxScope is the maximum length of a scope.
	maxScope = 500
)

// cleanScopes returns the valid scope tokens (RFC 6749 section 3.3) without
// duplicates.
func cleanScopes(in []string) []string {
	var out []string
	for _, s := range in {
		if len(s) <= maxScope && table.IsScope(s) && !slices.Contains(out, s) && len(out) < maxScopes {
			out = append(out, s)
		}
	}
	return out
}

// ParseScopes parses scopes of the command line; each string may contain
// several, separated by spaces.
func ParseScopes(given []string) ([]string, error) {
	var out []string
	for _, text := range given {
		for s := range strings.FieldsSeq(text) {
			if !table.IsScope(s) {
				return nil, fmt.Errorf("%q is not a valid scope", s)
			}
			out = append(out, s)
		}
	}
	return out, nil
}
