package settings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

func TestEntriesOfAPIs(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{`"auth": {"bearer": "x"}`, ""},
		{`"auth": [{"bearer": "x"}, {"apiKey": {"in": "query", "name": "a b", "value": "x"}}, {"apiKey": {"in": "header", "name": "X-Key", "value": "x"}}]`, ""},
		{`"auth": [{"bearer": "x"}, {"basic": {"username": "a", "password": "b"}}]`, "only one of bearer, basic and oauth"},
		{`"auth": [{"oauth": {"issuer": "https://i"}}, {"oauth": {"issuer": "https://i"}}]`, "only one of bearer, basic and oauth"},
		{`"auth": {"bearer": "x", "basic": {"username": "a", "password": "b"}}`, "each way is one of"},
		{`"auth": {"apiKey": {"in": "header", "name": "a b", "value": "x"}}`, "auth.apiKey.name is not a valid name"},
		{`"auth": {"apiKey": {"in": "header", "name": "host", "value": "x"}}`, "auth.apiKey.name is not a valid name"},
		{`"auth": {"oauth": {"issuer": "https://i"}}`, ""},
		{`"auth": {"oauth": {"tokenUrl": "https://t", "authorizationUrl": "https://a"}}`, ""},
		{`"auth": {"oauth": {"tokenUrl": "https://t", "grant": "client_credentials"}}`, ""},
		{`"auth": {"oauth": {"tokenUrl": "https://t"}}`, "auth.oauth needs issuer, or tokenUrl and authorizationUrl"},
		{`"auth": {"oauth": {"tokenUrl": "https://t", "grant": "authorization_code"}}`, "auth.oauth needs issuer"},
		{`"auth": {"oauth": {"authorizationUrl": "https://a", "grant": "client_credentials"}}`, "auth.oauth needs issuer"},
		{`"auth": {"oauth": {"authorizationUrl": "https://a"}}, "disabled": true`, ""},
		{`"headers": {"A": "b"}`, ""},
		{`"include": ["GET /pets/{id}", "pet*"]`, ""},
		{`"include": ["pets", "[a"]`, "include: \"[a\" is not a valid glob"},
		{`"exclude": ["{a"]`, "exclude: \"{a\" is not a valid glob"},
	} {
		got := layers.CheckEntry(table.APIsKey, "a", json.RawMessage(`{"spec": "api.yaml", "baseUrl": "https://b", `+tt.fields+`}`))
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.fields, got, tt.want)
		}
	}
	for entry, want := range map[string]string{
		`{"spec": "api.yaml", "headers": {"A": "b"}}`:        "headers and auth need baseUrl",
		`{"spec": "api.yaml", "auth": {"bearer": "x"}}`:      "headers and auth need baseUrl",
		`{"spec": "https://a/x", "auth": {"bearer": "x"}}`:   "",
		`{"spec": "https://u:p@a/x"}`:                        "must not have a user",
		`{"spec": "api.yaml", "baseUrl": "https://u@a/x"}`:   "must not have a user",
		`{"spec": "api.yaml", "baseUrl": "https://a/x#y"}`:   "must not have a fragment",
		`{"spec": "file:///etc/passwd"}`:                     "must begin with http",
		`{"spec": "api.yaml", "baseUrl": "127.0.0.1:8080"}`:  "must begin with http",
		`{"spec": "api.yaml", "baseUrl": "https://a/${X}x"}`: "",
	} {
		if got := layers.CheckEntry(table.APIsKey, "a", json.RawMessage(entry)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}

// Fields that only servers have are unknown in an API, so they have no effect.
func TestUnknownFieldsOfAPIsHaveNoEffect(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", `openapi:
  a: {spec: api.yaml, baseUrl: "https://b", oauth: {issuer: "https://i"}, command: x, auth: {oauth: {issuer: "https://i", per: client}}}
  b: {spec: api.yaml, oauth: {issuer: "https://i"}}
`)
	s := b.load(b.options())
	if a := s.APIs[0]; a.Command != "" || a.OAuth == nil || a.OAuth.Per != "" {
		t.Errorf("command %q, oauth %+v", a.Command, a.OAuth)
	}
	if s.APIs[1].OAuth != nil {
		t.Errorf("oauth %+v", s.APIs[1].OAuth)
	}
}
