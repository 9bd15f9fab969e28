package agents

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

// entry is a server, converted to an entry of mcpServers.
type entry struct {
	Command        string          `json:"command,omitempty"`
	Args           []string        `json:"args,omitempty"`
	Env            pairs           `json:"env,omitempty"`
	Cwd            string          `json:"cwd,omitempty"`
	URL            string          `json:"url,omitempty"`
	HTTPURL        string          `json:"httpUrl,omitempty"`
	Type           string          `json:"type,omitempty"`
	Headers        pairs           `json:"headers,omitempty"`
	Timeout        any             `json:"timeout,omitempty"`
	ConnectTimeout any             `json:"connectTimeout,omitempty"`
	Trust          bool            `json:"trust,omitempty"`
	Description    string          `json:"description,omitempty"`
	IncludeTools   *[]string       `json:"includeTools,omitempty"`
	ExcludeTools   []string        `json:"excludeTools,omitempty"`
	OAuth          any             `json:"oauth,omitempty"` // a *login, or Gemini CLI's value unchanged
	Disabled       bool            `json:"disabled,omitempty"`
	Lifecycle      json.RawMessage `json:"lifecycle,omitempty"`
}

// expand converts all strings in which the program expands variables, and escapes
// the others.
func (e *entry) expand(d dialect) error {
	var failed []error
	apply := func(s *string, secret bool) {
		out, err := d(*s, secret)
		if err != nil {
			failed = append(failed, err)
			return
		}
		*s = out
	}
	for _, s := range []*string{&e.Command, &e.Cwd, &e.URL, &e.HTTPURL, &e.Description} {
		apply(s, false)
	}
	if l, ok := e.OAuth.(*login); ok {
		for _, s := range []*string{&l.ClientID, &l.AuthorizationURL, &l.TokenURL, &l.RedirectURI, &l.Resource} {
			apply(s, false)
		}
		apply(&l.ClientSecret, true)
	}
	for i := range e.Args {
		apply(&e.Args[i], false)
	}
	for i := range e.Env {
		apply(&e.Env[i].value, true)
	}
	for i := range e.Headers {
		apply(&e.Headers[i].value, true)
	}
	return errors.Join(failed...)
}

// pairs is an object of strings in file order.
type pairs []pair

type pair struct{ name, value string }

// MarshalJSON writes the pairs as an object.
func (p pairs) MarshalJSON() ([]byte, error) {
	object := jsonx.NewObject()
	for _, e := range p {
		object.Members = append(object.Members, jsonx.NewMember(e.name, jsonx.NewString(e.value)))
	}
	return object.MarshalJSON()
}

// UnmarshalJSON reads an object of strings, numbers and booleans; null members
// are omitted.
func (p *pairs) UnmarshalJSON(data []byte) error {
	if kind := jsonx.KindOf(data); kind != jsonx.Object && kind != jsonx.Null {
		return errors.New("expected an object of strings")
	}
	for name, value := range jsonx.Members(data) {
		switch jsonx.KindOf(value) {
		case jsonx.Null:
		case jsonx.String:
			text, _ := jsonx.Text(value)
			*p = append(*p, pair{name, text})
		case jsonx.Array, jsonx.Object:
			return errors.New("expected an object of strings")
		default:
			*p = append(*p, pair{name, string(value)})
		}
	}
	return nil
}

func imported(s jsonx.Member, e entry, d dialect, problem string) imports.Server {
	out := imports.Server{Name: s.Name, Pos: s.Pos, Problem: problem}
	if problem != "" {
		return out
	}
	if err := e.expand(d); err != nil {
		out.Problem = err.Error()
		return out
	}
	data, err := json.Marshal(e)
	if err != nil {
		out.Problem = "its entry cannot be read"
		return out
	}
	out.JSON = data
	return out
}

// login holds the fields of an entry about logging in to its server.
type login struct {
	ClientID         string   `json:"clientId,omitempty"`
	ClientSecret     string   `json:"clientSecret,omitempty"`
	AuthorizationURL string   `json:"authorizationUrl,omitempty"`
	TokenURL         string   `json:"tokenUrl,omitempty"`
	Scopes           []string `json:"scopes,omitempty"`
	RedirectURI      string   `json:"redirectUri,omitempty"`
	Resource         string   `json:"resource,omitempty"`
}

// read reads these fields from an entry. Programs have them directly in the entry, with the prefix
// oauth, or in an object oauth or auth, each with its own spelling.
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
		case "resource":
			if inside || prefixed {
				l.Resource = text
			}
		case "callbackport":
			if name == "callbackPort" { // of Claude Code; other programs use other paths
				l.RedirectURI = "http://localhost:" + string(value) + "/callback"
			}
		case "scope", "scopes":
			if (inside || prefixed) && json.Unmarshal(value, &l.Scopes) != nil {
				l.Scopes = strings.Fields(text)
			}
		}
	}
}

// isEmpty reports whether no field is set.
func (l *login) isEmpty() bool {
	return cmp.Or(l.ClientID, l.ClientSecret, l.AuthorizationURL, l.TokenURL, l.RedirectURI, l.Resource) == "" &&
		len(l.Scopes) == 0
}
