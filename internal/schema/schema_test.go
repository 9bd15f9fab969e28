package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

func parse(t *testing.T, text string) *jsonx.Value {
	t.Helper()
	v, err := jsonx.Parse([]byte(text), jsonx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWithin(t *testing.T) {
	s := parse(t, `{"title":"no","properties":{"a":{"title":"1"},"b":true},"items":[{"title":"2"}],"not":{"title":"3","not":{"title":"deeper"}},
		"default":{"title":"no"},"x-own":{"title":"no"},"anyOf":[{"title":"4"},false],"additionalProperties":{"title":"5"},"dependencies":{"a":["b"],"b":{"title":"6"}}}`)
	var got []string
	for sub := range Within(s) {
		got = append(got, sub.Get("title").Text())
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "6"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range Within(s) {
		break // the iterator must stop too
	}
	for range Within(nil) {
		t.Error("a nil value yields a schema")
	}
}

func TestLookup(t *testing.T) {
	many := strings.Builder{}
	for i := range 2 * manyMembers {
		fmt.Fprintf(&many, `"m%d":{"title":"m%d"},`, i, i)
	}
	s := parse(t, `{"title":"root","$defs":{"a/b":{"title":"slash"},"c d":{"title":"space"},"e~f":{"title":"tilde"}},"anyOf":[{},{"title":"second"}],"definitions":{`+many.String()+`"z":{}}}`)
	refs := NewRefs(s)
	for ref, want := range map[string]string{
		"#": "root", "#/$defs/a~1b": "slash", "#/$defs/c%20d": "space", "#/$defs/e~0f": "tilde", "#/anyOf/1": "second", "#/definitions/m40": "m40",
		"#/anyOf/2": "", "#/anyOf/-1": "", "#/$defs/none": "", "#/$defs/none/x": "", "#/definitions/none": "", "#anchor": "", "": "", "other.json#/a": "",
	} {
		if got := refs.Lookup(ref).Get("title").Text(); got != want {
			t.Errorf("%q leads to %q, want %q", ref, got, want)
		}
	}
}

func TestLookupNames(t *testing.T) {
	refs := NewRefs(parse(t, `{"$id":"https://example.com/s","title":"root","$defs":{"a":{"$anchor":"a","title":"anchor"},"b":{"$id":"b.json","title":"id"},
		"c":{"id":"#c","title":"draft 4"},"d":{"$dynamicAnchor":"d","title":"dynamic"}},"properties":{"id":{"title":"a param"}}}`))
	for ref, want := range map[string]string{
		"#a": "anchor", "b.json": "id", "#c": "draft 4", "#d": "dynamic", "https://example.com/s": "root", "https://example.com/s#": "root",
		"https://example.com/s#/$defs/b": "id", "https://example.com/s#a": "anchor", "https://example.com/s2": "", "#b": "", "c": "", "": "",
	} {
		if got := refs.Lookup(ref).Get("title").Text(); got != want {
			t.Errorf("%q leads to %q, want %q", ref, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	refs := NewRefs(parse(t, `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"title":"end"},"c":{"$ref":"#/$defs/c"},"d":{"$ref":"#/nowhere"},"e":{"$ref":5}}}`))
	at := func(name string) (*jsonx.Value, error) { return refs.Resolve(refs.Root().Get("$defs").Get(name)) }
	if s, err := at("a"); err != nil || s.Get("title").Text() != "end" {
		t.Errorf("a: %v", err)
	}
	if _, err := at("c"); !errors.Is(err, ErrCycle) {
		t.Errorf("c: %v", err)
	}
	if _, err := at("d"); err == nil || err.Error() != `its reference "#/nowhere" does not exist in the schema` {
		t.Errorf("d: %v", err)
	}
	if s, err := at("e"); err != nil || s.Get("$ref") == nil {
		t.Errorf("e: %v", err)
	}
}

// TestResolveMerges resolves references that have keywords next to them.
func TestResolveMerges(t *testing.T) {
	for name, c := range map[string]struct{ beside, target, want string }{
		"text":         {`"description":"own"`, `{"description":"d","type":"string"}`, `{"description":"own","type":"string"}`},
		"properties":   {`"properties":{"a":{},"b":{}},"required":["a","b"]`, `{"properties":{"b":true,"c":{}},"required":["b","c"]}`, `{"properties":{"a":{},"b":{},"c":{}},"required":["a","b","c"]}`},
		"enum":         {`"enum":[1]`, `{"enum":[1,2],"allOf":[{}]}`, `{"enum":[1],"allOf":[{"enum":[1,2]},{}]}`},
		"definitions":  {`"$defs":{}`, `{"type":"string"}`, `{"type":"string"}`},
		"next further": {`"title":"t"`, `{"$ref":"#/$defs/end","default":1}`, `{"title":"t","default":1,"type":"string"}`},
		"no object":    {`"title":"t"`, `true`, `true`},
		"conditions": {`"title":"t"`, `{"properties":{"a":{}},"then":{"properties":{"a":false,"b":{}}},"allOf":[{"else":{"properties":{"b":true,"c":{}}}}]}`,
			`{"title":"t","properties":{"a":{},"b":{"anyOf":[{},true]},"c":{}},"then":{"properties":{"a":false,"b":{}}},"allOf":[{"else":{"properties":{"b":true,"c":{}}}}]}`},
		"a condition on itself": {`"title":"t"`, `{"dependentSchemas":{"x":{"$ref":"#/$defs/at"},"y":{"$ref":"#/$defs/end"}}}`, `{"title":"t","dependentSchemas":{"x":{"$ref":"#/$defs/at"},"y":{"$ref":"#/$defs/end"}}}`},
		"within itself":         {`"title":"t"`, `{"properties":{"a":{"$ref":"#/$defs/at"}}}`, `{"title":"t","properties":{"a":{"$ref":"#/$defs/at"}}}`},
	} {
		refs := NewRefs(parse(t, `{"$defs":{"at":{"$ref":"#/$defs/to",`+c.beside+`},"to":`+c.target+`,"end":{"type":"string"}}}`))
		at := refs.Root().Get("$defs").Get("at")
		got, err := refs.Resolve(at)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := refs.Resolve(at); again != got {
			t.Errorf("%s: merged twice", name)
		}
		if text := string(got.AppendTo(nil)); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// Conditions that are made to cost much cost little.
func TestConditionsAreBounded(t *testing.T) {
	var properties, conditions strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&properties, `"p%d":{"title":"%d"},`, i, i)
		fmt.Fprintf(&conditions, `{"then":{"$ref":"#/$defs/a"},"else":{"$ref":"#/$defs/b"}},`)
	}
	refs := NewRefs(parse(t, `{"$defs":{"a":{"properties":{`+properties.String()+`"z":{}}},"b":{"properties":{`+properties.String()+`"z":{}}}},"oneOf":[`+conditions.String()+`{}]}`))
	members := 0
	for _, one := range refs.Root().Get("oneOf").Items {
		s, err := refs.Resolve(one)
		if err != nil {
			t.Fatal(err)
		}
		if p := s.Get("properties"); p != nil {
			members += len(p.Members)
		}
	}
	if members == 0 || members > maxConditionWork {
		t.Errorf("%d properties", members)
	}
}

func TestTypes(t *testing.T) {
	for _, tt := range []struct {
		schema string
		want   bool
	}{
		{`{"type":"string"}`, true}, {`{"type":["null","string"]}`, true}, {`{"type":["null"]}`, false},
		{`{"type":"strings"}`, false}, {`{"type":5}`, false}, {`{}`, false}, {`true`, false},
	} {
		if got := HasType(parse(t, tt.schema), "string"); got != tt.want {
			t.Errorf("%s has the type: %v", tt.schema, got)
		}
	}
	for value, want := range map[string]string{
		`{}`: "object", `[]`: "array", `"1"`: "string", `1`: "integer", `-10`: "integer", `1.0`: "number", `1e2`: "number", `1E2`: "number", `true`: "boolean", `false`: "boolean", `null`: "null",
	} {
		if got := TypeOf(parse(t, value)); got != want {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
	}
	if got := string(OfType("null").AppendTo(nil)); got != `{"type":"null"}` {
		t.Errorf("got %s", got)
	}
	if !HoldsNull(parse(t, `[1,null]`).Items) || HoldsNull(parse(t, `[0,"null",[null]]`).Items) {
		t.Error("HoldsNull is wrong")
	}
}

func TestRequired(t *testing.T) {
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true}, Required(parse(t, `{"required":["a","b","a"],"properties":{"c":{}}}`))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Required(parse(t, `{}`)); got["a"] {
		t.Errorf("got %v", got)
	}
}
