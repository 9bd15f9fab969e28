package args

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

const toolSchema = `{"type":"object","properties":{
	"s":{"type":"string"},"n":{"type":"number"},"i":{"type":"integer"},"b":{"type":"boolean"},
	"list":{"type":"array","items":{"type":"integer"}},"words":{"type":"array","items":{"type":"string"}},
	"o":{"type":"object","properties":{"i":{"type":"integer"},"deep":{"$ref":"#/$defs/d"}}},
	"a.b":{"type":"integer"},"either":{"type":["string","integer"]},"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"text":{"type":["string","null"]},"some":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},
	"one":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]},"level":{"enum":[1,2,"x"]},"any":{},"ids":{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"string"}}]},"upper":{"type":"integer"}},
	"$defs":{"d":{"type":"object","properties":{"flag":{"type":"boolean"}}}}}`

func files(name string) ([]byte, error) {
	if name == "f.txt" {
		return []byte("line 1\nline \"2\"\n"), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func TestParse(t *testing.T) {
	tests := []struct{ args, base, want string }{
		{args: "", want: `{}`},
		{args: "s=x", want: `{"s":"x"}`},
		{args: "s=5", want: `{"s":"5"}`},
		{args: "s=", want: `{"s":""}`},
		{args: "s=a=b", want: `{"s":"a=b"}`},
		{args: "n=1.50 i=12345678901234567891 b=true", want: `{"n":1.50,"i":12345678901234567891,"b":true}`},
		{args: "upper=3", want: `{"upper":3}`},
		{args: "list=1 list=2", want: `{"list":[1,2]}`},
		{args: "list=[3,4]", want: `{"list":[3,4]}`},
		{args: "list=7", base: `{"list":[1]}`, want: `{"list":[7]}`},
		{args: "words=1 words=true", want: `{"words":["1","true"]}`},
		{args: "o.i=1 o.deep.flag=true o.x=1", want: `{"o":{"i":1,"deep":{"flag":true},"x":"1"}}`},
		{args: "a.b=1", want: `{"a.b":1}`},
		{args: "o.i=2", base: `{"s":"kept","o":{"z":1.0,"i":1}}`, want: `{"s":"kept","o":{"z":1.0,"i":2}}`},
		{args: "s=new", base: `{"s":"old","n":1}`, want: `{"s":"new","n":1}`},
		{args: `any:={"x":[1,2]}`, want: `{"any":{"x":[1,2]}}`},
		{args: "s:=null", want: `{"s":null}`},
		{args: "any=5", want: `{"any":"5"}`},
		{args: "unknown=5", want: `{"unknown":"5"}`},
		{args: "either=5", want: `{"either":5}`},
		{args: "either=5x", want: `{"either":"5x"}`},
		{args: "maybe=null", want: `{"maybe":null}`},
		{args: "text=null", want: `{"text":"null"}`},
		{args: "some=null", want: `{"some":null}`},
		{args: "some=a some=b", want: `{"some":["a","b"]}`},
		{args: "some=a some=null", want: `{"some":["a","null"]}`},
		{args: `some=["null"]`, want: `{"some":["null"]}`},
		{args: "words=null", want: `{"words":["null"]}`},
		{args: "one=5", want: `{"one":"5"}`},
		{args: "one=5 one=6", want: `{"one":[5,6]}`},
		{args: "one=[5]", want: `{"one":[5]}`},
		{args: "ids=5", want: `{"ids":5}`},
		{args: "ids=5 ids=6", want: `{"ids":["5","6"]}`},
		{args: "ids=x", want: `{"ids":["x"]}`},
		{args: "ids=[x", want: `{"ids":["[x"]}`},
		{args: "level=2", want: `{"level":2}`},
		{args: "level=x", want: `{"level":"x"}`},
		{args: "s=@f.txt", want: `{"s":"line 1\nline \"2\"\n"}`},
		{args: "s=@@home", want: `{"s":"@home"}`},
		{args: "s=<&>", want: `{"s":"<&>"}`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got, err := Parse(strings.Fields(tt.args), Options{Schema: json.RawMessage(toolSchema), Base: json.RawMessage(tt.base), ReadFile: files})
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// TestParseUnnamedProperties checks the types of params that the schema does not
// describe by name.
func TestParseUnnamedProperties(t *testing.T) {
	const schema = `{"properties":{
		"map":{"additionalProperties":{"type":"integer"},"patternProperties":{"^is_":{"type":"boolean"},"^\\u0061t_":{"type":"boolean"}}},
		"either":{"anyOf":[{"additionalProperties":{"type":"string"}},{"properties":{"n":{"type":"integer"}}}]},
		"union":{"oneOf":[{"properties":{"v":{"type":"integer"}}},{"properties":{"v":{"type":"array","items":{"type":"boolean"}}}},{"properties":{"v":{"type":"string"}}}]},
		"pair":{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":{"type":"number"}},
		"old":{"type":"array","prefixItems":[{"type":"integer"}]},
		"based":{"$ref":"#/$defs/base","properties":{"own":{"type":"integer"}}},
		"rule":{"if":{"properties":{"k":{"const":"n"}}},"then":{"properties":{"v":{"type":"integer"}}}}},
		"$defs":{"base":{"properties":{"id":{"type":"integer"}}}},"additionalProperties":{"type":"integer"}}`
	for args, want := range map[string]string{
		"map.a=1 map.is_b=true":      `{"map":{"a":1,"is_b":true}}`,
		"map.at_b=true":              `{"map":{"at_b":true}}`,
		"either.n=1 either.x=1":      `{"either":{"n":1,"x":"1"}}`,
		"union.v=1":                  `{"union":{"v":1}}`,
		"union.v=a":                  `{"union":{"v":"a"}}`,
		"union.v=true union.v=false": `{"union":{"v":[true,false]}}`,
		"pair=1 pair=true pair=2":    `{"pair":[1,true,2]}`,
		"old=1 old=1":                `{"old":[1,"1"]}`,
		"based.id=1 based.own=2":     `{"based":{"id":1,"own":2}}`,
		"rule.k=n rule.v=3":          `{"rule":{"k":"n","v":3}}`,
		"unknown=1":                  `{"unknown":1}`,
	} {
		if got, err := Parse(strings.Fields(args), Options{Schema: json.RawMessage(schema)}); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", args, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		args, want string
		usage      bool
	}{
		{"s", "expected key=value", true},
		{"=x", "the key before = is missing", true},
		{":=x", "the key before = is missing", true},
		{"\xfb=x", "the key before = is not valid UTF-8", true},
		{"i=x", "expected an integer", false},
		{"b=yes", "expected a boolean", false},
		{"list=x", "expected an integer", false},
		{"o=x", "expected an object", false},
		{"s=a s=b", "given twice, but is not a list", false},
		{"list=[1] list=2", "given twice, once as a whole", false},
		{"list=2 list:=[1]", "given twice, once as a whole", false},
		{"any:={", "not valid JSON", false},
		{`any:={"a":1,"a":2}`, "duplicate key", false},
		{"s=@none.txt", "file does not exist", true},
		{"s=@", "file name after @ is missing", true},
		{"a..b=1", "empty part", false},
		{"s=x s.y=1", "is not an object", false},
		{"list=1 list.y=1", "is a list", false},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			_, err := Parse(strings.Fields(tt.args), Options{Schema: json.RawMessage(toolSchema), ReadFile: files})
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Error(), tt.want) || e.Usage != tt.usage {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, a := range []string{"s=x", "o.i=1", "any:={}", "list=1", "a.b=2", "s=@@", "=", "o.deep.flag=true", "level=\x00"} {
		f.Add(a, "n=1", `{"o":{"i":1}}`)
	}
	f.Fuzz(func(t *testing.T, a, b, base string) {
		got, err := Parse([]string{a, b}, Options{Schema: json.RawMessage(toolSchema), Base: json.RawMessage(base)})
		if err != nil {
			if fmt.Sprint(err) == "" {
				t.Error("an error has no text")
			}
			return
		}
		if _, err := registry.DecodeParams("", got); err != nil && !strings.Contains(err.Error(), "nesting") {
			t.Errorf("Parse(%q, %q, %q) = %s: %v", a, b, base, got, err)
		}
	})
}

// What cannot be said in JSON, or would be lost, is an error that says so.
func TestArgumentsThatWouldLoseSomething(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"o":{"type":"object","properties":{"p":{"type":"integer"}}},"l":{"type":"array","items":{"type":"integer"}},"s":{"type":"string"}}}`)
	for arguments, want := range map[string]string{
		"o.p=1 o={}":        `it would replace "o.p", which was given before`,
		"o.p.q=1 o.p:=2":    `it would replace "o.p.q"`,
		"o={} o.p=1":        "",
		"o.p=1 o.q=2":       "",
		"o=5":               "expected an object ({…} as JSON",
		"o={":               "is not valid JSON: unexpected end",
		"l={}":              `"l" is a list, so each argument is one item of it`,
		"s=a\xff":           "is not valid UTF-8",
		`s:="\ud800"`:       `\ud800 at byte 1 is half of a surrogate pair`,
		`s:="\ud83d\ude00"`: "",
		`s=\ud800`:          "", // text
		`o={"a":"\udc00"}`:  "half of a surrogate pair",
	} {
		_, err := Parse(strings.Fields(arguments), Options{Schema: schema})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", arguments, err, want)
		}
	}
}
