package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/settings"
)

func TestScopesOfTools(t *testing.T) {
	tests := []struct {
		scopes    string
		spellings []string
		want      []string // or a part of the error
	}{
		{`[a, b]`, nil, []string{"a", "b"}},
		{`[a, b]`, []string{"write_file"}, []string{"a", "b"}},
		{`[]`, []string{"write_file"}, nil},
		{`{}`, nil, nil},
		{`{'*': a, 'write_*': b, srv__x: c}`, nil, []string{"a"}},
		{`{'*': a, 'write_*': b, srv__x: c}`, []string{"write_file"}, []string{"a", "b"}},
		{`{'*': a, 'write_*': b, srv__x: c}`, []string{"x", "srv__x"}, []string{"a", "c"}},
		{`{' Write_File@latest ': b}`, []string{"write_file"}, []string{"b"}},
		{`{'**': b}`, nil, nil}, // a glob of all tools is not for every request
		{`{'**': b}`, []string{"x"}, []string{"b"}},
		{`a`, nil, []string{"expected a list of scopes, or an object of scopes by tool"}},
		{`[1]`, nil, []string{"serve.oauth.scopes[0]: expected a scope"}},
		{`['a b']`, nil, []string{`serve.oauth.scopes[0]: "a b" is not a scope`}},
		{`['']`, nil, []string{`serve.oauth.scopes[0]: "" is not a scope`}},
		{`{x: [a]}`, nil, []string{"serve.oauth.scopes.x: expected a scope"}},
		{`{'[': a}`, nil, []string{`"[" is not the name or a glob of tools`}},
	}
	file := filepath.Join(t.TempDir(), "s.yaml")
	for _, test := range tests {
		if err := os.WriteFile(file, []byte("serve: {oauth: {scopes: "+test.scopes+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		set, _, err := settings.Load(settings.Options{Dir: filepath.Dir(file), Files: []string{file}, NoUser: true})
		if err != nil {
			if len(test.want) != 1 || !strings.Contains(err.Error(), test.want[0]) {
				t.Errorf("%s: %v", test.scopes, err)
			}
			continue
		}
		var got []string
		for _, s := range set.Serve.OAuth.Required(test.spellings...) {
			got = append(got, s.Scope)
			if s.Origin.Line != 1 {
				t.Errorf("%s: %s is at %s", test.scopes, s.Scope, s.Origin)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s for %q: got %q, want %q", test.scopes, test.spellings, got, test.want)
		}
	}
}
