package args

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestDescribe(t *testing.T) {
	def := &registry.Definition{
		InputSchema: json.RawMessage(`{"type":"object","required":["path","page"],"properties":{
			"path":{"type":"string","minLength":1,"description":"The file."},
			"limit":{"type":"integer","minimum":1,"maximum":50,"default":20},
			"mode":{"enum":["fast","slow"]},
			"tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":3},
			"page":{"$ref":"#/$defs/page"},
			"all":{"type":"boolean"},
			"when":{"type":["string","null"],"format":"date"},
			"any":{},
			"self":{"$ref":"#"}},
			"$defs":{"page":{"type":"object","description":"Where.","required":["size"],"properties":{"size":{"type":"number","exclusiveMinimum":0}}}}}`),
		Examples: []registry.Example{{Params: json.RawMessage(`{"path":"go.mod","page":{"size":2.5}}`)}},
	}
	got := Describe(def)
	if len(got) > 40 {
		t.Fatalf("a schema that contains itself has %d params", len(got))
	}
	want := []Param{
		{Name: "path", Type: "string", Required: true, Allowed: "not empty", Example: []string{"path=go.mod"}, Description: "The file."},
		{Name: "limit", Type: "integer", Default: "20", Allowed: "1 to 50", Example: []string{"limit=20"}},
		{Name: "mode", Type: "string", Allowed: "fast, slow", Values: []string{"fast", "slow"}, Example: []string{"mode=fast"}},
		{Name: "tags", Type: "string[]", Allowed: "a, b; at most 3 items", Values: []string{"a", "b"}, Example: []string{"tags=a"}},
		{Name: "page", Type: "object", Required: true, Example: []string{`page={"size":2.5}`}, Description: "Where."},
		{Name: "page.size", Type: "number", Required: true, Allowed: "more than 0", Example: []string{"page.size=2.5"}},
		{Name: "all", Type: "boolean", Values: []string{"true", "false"}, Example: []string{"all=true"}},
		{Name: "when", Type: "string|null", Allowed: "date", Example: []string{"when=2026-01-31"}},
		{Name: "any", Type: "any", Example: []string{"any=TEXT"}},
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDescribeUnusualSchemas(t *testing.T) {
	for _, s := range []string{``, `true`, `{"properties":[]}`, `{"properties":{"a":true,"b":{"$ref":"#/nowhere"},"c":{"type":5}}}`, `{"$ref":"#"}`} {
		for _, p := range Describe(&registry.Definition{InputSchema: json.RawMessage(s)}) {
			if p.Type != "any" || p.Required {
				t.Errorf("%s: %+v", s, p)
			}
		}
	}
}

// A server may send a schema whose alternatives refer back to themselves.
func TestRecursiveSchema(t *testing.T) {
	circle := `{"$ref":"#"}`
	s := json.RawMessage(`{"anyOf":[` + strings.Repeat(circle+",", 9) + circle + `],"type":"array","items":` + circle + `}`)
	Describe(&registry.Definition{InputSchema: s})
	if got, err := Parse([]string{"a=b"}, Options{Schema: s}); err != nil || string(got) != `{"a":"b"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFormat(t *testing.T) {
	s := `{"properties":{"n":{"type":"integer"},"s":{"type":"string"},"list":{"type":"array","items":{"type":"string"}},"o":{"type":"object"},"u":{"type":["string","integer"]},"a.b":{"type":"string"}}}`
	for params, want := range map[string]string{
		`{"n":3,"s":"a b"}`:         `n=3 | s=a b`,
		`{"s":"@x"}`:                `s=@@x`,
		`{"s":"two\nlines"}`:        `s:="two\nlines"`,
		`{"s":"\u202e"}`:            `s:="\u202e"`,
		`{"list":["a","b"]}`:        `list=a | list=b`,
		`{"list":[]}`:               `list=[]`,
		`{"list":["[1]"]}`:          `list:=["[1]"]`,
		`{"o":{"k":[1]}}`:           `o={"k":[1]}`,
		`{"u":"3"}`:                 `u:="3"`,
		`{"free":true,"other":"x"}`: `free:=true | other=x`,
		`{"a.b":"x"}`:               `a.b=x`,
		`{}`:                        ``,
	} {
		got, ok := Format(json.RawMessage(params), json.RawMessage(s))
		if !ok || strings.Join(got, " | ") != want {
			t.Errorf("%s: %q, %v; want %q", params, got, ok, want)
		}
	}
	for _, params := range []string{`{"a=b":1}`, `{"":1}`, `{"a\nb":1}`, `[]`, `{`} {
		if got, ok := Format(json.RawMessage(params), nil); ok {
			t.Errorf("%s: %q", params, got)
		}
	}
}
