package mcpclient

import (
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
)

// newMask returns a function that hides the secrets of an expanded server, and those that
// Hide knows.
func (o *Options) newMask(expanded settings.Server) func(string) string {
	own := newReplacer(o.Server, expanded)
	if o.Hide == nil {
		return own.Replace
	}
	return func(text string) string { return o.Hide(own.Replace(text)) }
}

// newReplacer returns a replacer that hides the secret values of an expanded server
// wherever they occur in text from elsewhere: stderr lines, error bodies,
// addresses.
func newReplacer(raw, expanded settings.Server) *strings.Replacer {
	var secrets []string
	for _, h := range expanded.Headers {
		secrets = append(secrets, h.Value)
		if _, token, ok := strings.Cut(h.Value, " "); ok { // "Bearer …"
			secrets = append(secrets, token)
		}
	}
	for i, e := range expanded.Env {
		if secret.Named(e.Name) || i < len(raw.Env) && raw.Env[i].Value != e.Value {
			secrets = append(secrets, e.Value)
		}
	}
	for _, address := range []string{expanded.URL, expanded.HTTPURL} {
		secrets = append(secrets, secretsOf(address)...)
	}
	return secret.NewReplacer(secrets)
}

// secretsOf returns the userinfo and the query values of a URL.
func secretsOf(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var out []string
	if password, ok := u.User.Password(); ok {
		// The password itself, and as encoded in the header that carries it.
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

// hide masks the secrets of the settings, and the token of the login, in text
// from the server.
func (c *session) hide(text string) string {
	return secret.NewReplacer([]string{c.http.SentToken()}).Replace(c.mask(text))
}
