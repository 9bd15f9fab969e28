package args

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	for _, keyword := range []string{"anyOf", "allOf"} {
		s := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"` + keyword + `":[` + strings.Repeat(`{"$ref":"#/$defs/d"},`, 999) + `{}]}}}`
		Describe(&registry.Definition{InputSchema: json.RawMessage(s)})
	}
	if got, err := Parse([]string{"a=b"}, Options{Schema: s}); err != nil || string(got) != `{"a":"b"}` {
		t.Errorf("%s, %v", got, err)
	}
}

// BenchmarkLongSchema shows whether the time grows with the square of a schema's size: the longer
// ones have ten times as many alternatives.
func BenchmarkLongSchema(b *testing.B) {
	for _, keyword := range []string{"allOf", "anyOf"} {
		for _, n := range []int{2_000, 20_000} {
			var list strings.Builder
			for i := range n {
				fmt.Fprintf(&list, `{},{"properties":{"p%d":{"type":"string"}}},`, i)
			}
			def := &registry.Definition{InputSchema: json.RawMessage(`{"` + keyword + `":[` + list.String() + `{}]}`)}
			b.Run(fmt.Sprint(keyword, n), func(b *testing.B) {
				for b.Loop() {
					Describe(def)
				}
			})
		}
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

// An example that a person copies must be accepted: a placeholder that the schema refuses is left out.
func TestSamplesAreValid(t *testing.T) {
	for property, want := range map[string]string{
		`{"type":"string"}`:                                        `p=TEXT`,
		`{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`:            ``,
		`{"type":"string","maxLength":2}`:                          ``,
		`{"type":"string","format":"ipv4"}`:                        `p=192.0.2.1`,
		`{"type":"string","format":"date","enum":["2020-01-01"]}`:  `p=2020-01-01`,
		`{"type":"integer","minimum":10}`:                          `p=10`,
		`{"type":"integer","exclusiveMinimum":5}`:                  ``,
		`{"type":"integer","maximum":-3}`:                          `p=-3`,
		`{"anyOf":[{"type":"null"},{"type":"string"}]}`:            `p=TEXT`,
		`{"allOf":[{"type":"integer"}]}`:                           `p=1`,
		`{"type":"array","items":{"type":"integer","minimum":3}}`:  `p=3`,
		`{"type":"array","minItems":2,"items":{"enum":["a","b"]}}`: ``,
		`{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"b":{"type":"boolean"}}}`: `p={"id":"TEXT"}`,
		`{"type":"string","default":"no","minLength":3}`:                                                   ``, // its default is wrong
		`{"type":"string","not":{"const":"TEXT"}}`:                                                         ``,
	} {
		def := &registry.Definition{InputSchema: json.RawMessage(`{"type":"object","required":["p","q"],"properties":{"q":{},"p":` + property + `}}`)}
		params := WithoutInvalidExamples(t.Context(), def, Describe(def))
		if got := strings.Join(params[1].Example, " "); got != want {
			t.Errorf("%s: %q, want %q", property, got, want)
		}
	}
}

// Published servers have params of every kind; hardly any is left without an example.
func TestSamplesOfServers(t *testing.T) {
	files, err := filepath.Glob("../../testdata/servers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all, without := 0, []string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var listing struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &listing); err != nil {
			t.Fatal(file, err)
		}
		for _, tool := range listing.Tools {
			def := &registry.Definition{InputSchema: tool.InputSchema}
			for _, p := range WithoutInvalidExamples(t.Context(), def, Describe(def)) {
				if p.Element {
					continue
				}
				if all++; p.Example == nil {
					without = append(without, filepath.Base(file)+" "+tool.Name+" "+p.Name+" "+p.Type)
				}
			}
		}
	}
	if all < 500 || len(without) > all/100 {
		t.Errorf("%d of %d have no example:\n%s", len(without), all, strings.Join(without, "\n"))
	}
}
