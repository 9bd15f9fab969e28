package tool

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestDecode(t *testing.T) {
	type params struct {
		Path  string   `json:"path"`
		Limit *Integer `json:"limit"`
	}
	for text, want := range map[string]int{
		``: 7, `{}`: 7, ` {"limit": 3} `: 3, `{"limit":3.0}`: 3, `{"limit":3e1}`: 30, `{"path":"x","limit":-1}`: -1, `{"limit":null}`: 7,
		`{"limit":1e17}`: 1 << 53, `{"limit":-99999999999999999999}`: -1 << 53, `{"limit":1e400}`: 1 << 53,
	} {
		p, err := Decode[params]("tool", tooltest.Call(text))
		if err != nil || p.Limit.OrDefault(7) != want {
			t.Errorf("%s: %v, %v", text, p.Limit, err)
		}
	}
	for text, want := range map[string]string{
		`{"a/b":1}`: `unknown field "a/b"`, `{"limit":1.5}`: "not an integer",
		`{"limit":"3"}`: "not an integer", `{"path":3}`: `"path" is a number, not a string`, `[]`: "a list, not an object",
		`{`: "unexpected end",
	} {
		_, err := Decode[params]("tool", tooltest.Call(text))
		var args *registry.ArgsError
		if !errors.As(err, &args) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
