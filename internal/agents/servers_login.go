package agents

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// login is what an entry says about logging in to its server.
type login struct {
	ClientID         string   `json:"clientId,omitempty"`
	ClientSecret     string   `json:"clientSecret,omitempty"`
	AuthorizationURL string   `json:"authorizationUrl,omitempty"`
	TokenURL         string   `json:"tokenUrl,omitempty"`
	Scopes           []string `json:"scopes,omitempty"`
	RedirectURI      string   `json:"redirectUri,omitempty"`
}

// read reads an entry, in which programs have these fields as such, with the prefix oauth, or in
// an object oauth or auth, each in its own spelling.
func (l *login) read(entry json.RawMessage, inside bool) {
	for name, value := range jsonx.Members(entry) {
		key, prefixed := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(name, "_", "")), "oauth")
		text, _ := jsonx.Text(value)
		switch key {
		case "", "auth":
			if !inside {
				l.read(value, true)
			}
		case "clientid":
			l.ClientID = text
		case "clientsecret":
			l.ClientSecret = text
		case "authorizationendpoint":
			l.AuthorizationURL = text
		case "tokenendpoint":
			l.TokenURL = text
		case "redirecturi", "redirecturl", "callbackurl":
			l.RedirectURI = text
		case "callbackport":
			if name == "callbackPort" { // of Claude Code; other programs have other paths
				l.RedirectURI = "http://localhost:" + string(value) + "/callback"
			}
		case "scope", "scopes":
			if (inside || prefixed) && json.Unmarshal(value, &l.Scopes) != nil {
				l.Scopes = strings.Fields(text)
			}
		}
	}
}

// isEmpty reports whether nothing is said.
func (l *login) isEmpty() bool {
	return cmp.Or(l.ClientID, l.ClientSecret, l.AuthorizationURL, l.TokenURL, l.RedirectURI) == "" && len(l.Scopes) == 0
}
