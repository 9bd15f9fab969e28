package typescript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/typescript"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestTypes(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`:               "string",
		`{"type":["integer","null"]}`:     "number | null",
		`{}`:                              "unknown",
		`{"type":"weird"}`:                "unknown",
		`{"type":[]}`:                     "unknown",
		`{"enum":["a*/",1,null,{"a":1}]}`: `"a*/" | 1 | null | unknown`,
		`{"const":"x"}`:                   `"x"`,
		`{"type":"array"}`:                "Array<unknown>",
		`{"type":"array","items":{"type":"boolean"}}`:                       "Array<boolean>",
		`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`:  "[string]",
		`{"type":"array","prefixItems":[{"type":"string"},{}],"title":"t"}`: "[string, unknown, ...Array<unknown>]",
		`{"type":"object"}`: "Record<string, unknown>",
		`{"type":"object","additionalProperties":{"type":"number"}}`: "Record<string, number>",
		`{"type":"object","additionalProperties":false}`:             "{}",
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:              "(string | null)",
		`{"allOf":[{"type":"string"},{"const":1}]}`:                  "string & 1",
		`{"type":["string","null"],"oneOf":[{"const":"a"}]}`:         `(string | null) & ("a")`,
		`{"$ref":"#"}`:                          "unknown",
		`{"$ref":"http://example.com"}`:         "unknown",
		`{"items":{"$ref":"#"},"type":"array"}`: "Array<unknown>",
		`{"properties":{"a-b":{},"ok":{"type":"string"}},"required":["ok"],"additionalProperties":true}`: "{\n  \"a-b\"?: unknown;\n  ok: string;\n  [key: string]: unknown;\n}",
	} {
		n, err := jsonx.Parse([]byte(schema), jsonx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(typescript.AppendType(nil, n)); got != want {
			t.Errorf("%s is %s, want %s", schema, got, want)
		}
	}
}

// TestTypesAreBounded uses references that double the type at each of 40 steps.
func TestTypesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	b.WriteString(`"d40":{"type":"string"}}}`)
	def := registry.Definition{Name: "t", Source: "command", InputSchema: json.RawMessage(b.String())}
	out := declared(t, def)
	if n := len(out); n > 2*64<<10 {
		t.Errorf("%d bytes of types", n)
	}
}

// TestDescriptionCannotEndComment checks that a description cannot end its comment.
func TestDescriptionCannotEndComment(t *testing.T) {
	def := registry.Definition{Name: "t", Source: "command", Description: "a */ evil() /*\n*/ evil() /*\r*/ evil()\n/"}
	out := declared(t, def)
	if n := strings.Count(string(out), "*/"); n != 1 {
		t.Errorf("%d ends of comments in\n%s", n, out)
	}
}

// declared returns the declaration of a tool in the format typescript.
func declared(t *testing.T, def registry.Definition) []byte {
	t.Helper()
	f, err := provider.Lookup("typescript")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := f.Encode([]registry.Definition{def}, provider.Options{})
	return out.Data
}
