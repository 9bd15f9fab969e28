package mcpclient

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/settings"
)

// minSecret is the length from which on a value is masked: masking "1" would
// make every text unreadable and hide nothing.
const minSecret = 6

// newMask returns what hides the secret values of an expanded server wherever
// they turn up in foreign text: stderr lines, error bodies, addresses.
func newMask(raw, expanded settings.Server) *strings.Replacer {
	var secrets []string
	for _, h := range expanded.Headers {
		secrets = append(secrets, h.Value)
		if _, token, ok := strings.Cut(h.Value, " "); ok { // "Bearer …"
			secrets = append(secrets, token)
		}
	}
	for i, e := range expanded.Env {
		if isSecretName(e.Name) || i < len(raw.Env) && raw.Env[i].Value != e.Value {
			secrets = append(secrets, e.Value)
		}
	}
	for _, address := range []string{expanded.URL, expanded.HTTPURL} {
		secrets = append(secrets, secretsOf(address)...)
	}
	// The longest first: one may hold another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

// secretsOf returns the userinfo and the query values of an address.
func secretsOf(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var out []string
	if password, ok := u.User.Password(); ok {
		// As it is, and as the header that it is sent in has it.
		out = append(out, password, base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	if u.RawQuery != "" {
		out = append(out, u.RawQuery)
	}
	for _, values := range u.Query() {
		out = append(out, values...)
	}
	return out
}

// hide masks the secrets of the settings, and the token of the login, in text of
// the server.
func (c *session) hide(text string) string {
	text = c.mask.Replace(text)
	if token := c.guard.sentToken(); len(token) >= minSecret {
		text = strings.ReplaceAll(text, token, "***")
	}
	return text
}

func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}
