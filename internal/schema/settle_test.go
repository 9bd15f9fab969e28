package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// settleText settles a schema and returns it, or what is wrong with it.
func settleText(t *testing.T, raw string) (text string, open []string) {
	t.Helper()
	s := Settler{}
	got, err := s.Settle([]byte(raw))
	if err != nil {
		return err.Error(), nil
	}
	again, err := new(Settler).Settle(got.Raw)
	if err != nil || string(again.Raw) != string(got.Raw) || len(again.Open) > 0 {
		t.Errorf("%s: a settled schema is settled again: %s, %q, %v", raw, again.Raw, again.Open, err)
	}
	return string(got.Raw), got.Open
}

func TestSettle(t *testing.T) {
	const new, draft4, draft7 = `"$schema":"https://json-schema.org/draft/2020-12/schema"`, `"$schema":"http://json-schema.org/draft-04/schema#"`, `"$schema":"http://json-schema.org/draft-07/schema#"`
	for kind, cases := range map[string][][2]string{
		"nothing to settle": {
			{`{ "type": "object", "properties": {"a": {"type": ["string", "null"], "x-own": null, "default": null}}, "const": null}`, ""},
			{`{` + draft7 + `,"definitions":{"a":{}},"properties":{"a":{"$ref":"#/definitions/a"}}}`, ""},
			{`{"properties":{"nullable":{"type":"boolean"},"id":{},"$ref":{},"required":{"type":"array"},"items":{}},"required":[]}`, ""},
			{`{"enum":[1,"a",null,{"properties":[]}],"examples":[{"items":[]}]}`, ""},
			{`true`, ""}, {`{}`, ""}, {`{"anyOf":[true,{"not":{}}]}`, ""},
			{`{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}`, ""},
		},
		"null": {
			{`{"properties":null,"required":null,"items":null,"additionalProperties":null,"type":null}`, `{}`},
			{`{"properties":{"a":null,"b":{"description":null,"enum":null,"minimum":null}}}`, `{"properties":{"a":{},"b":{}}}`},
			{`{"anyOf":[null,{"type":"string"}],"allOf":[null],"$ref":null,"$schema":null}`, `{"anyOf":[{"type":"string"}]}`},
			{`{"const":null,"default":null,"x-own":null,"title":null}`, `{"const":null,"default":null,"x-own":null}`},
			{`{"$defs":null,"properties":{"a":{"$ref":"#/$defs/b","nullable":null}}}`, `{"properties":{"a":{}}}`},
		},
		"empty list": {
			{`{"properties":[],"required":[]}`, `{"properties":{},"required":[]}`},
			{`{"items":[]}`, `{"items":{}}`},
			{`{"properties":{"a":[],"b":{"properties":[]}},"additionalProperties":[]}`, `{"properties":{"a":{},"b":{"properties":{}}},"additionalProperties":{}}`},
			{`{"anyOf":[],"oneOf":[],"allOf":[],"prefixItems":[],"enum":[],"type":[]}`, `{}`},
			{`{"$defs":[],"patternProperties":[],"dependentSchemas":[]}`, `{"$defs":{},"patternProperties":{},"dependentSchemas":{}}`},
		},
		"empty object": {{`{"anyOf":{},"properties":{"a":{"allOf":{}}}}`, `{"properties":{"a":{}}}`}},
		"older words": {
			{`{` + new + `,"minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, `{` + new + `,"exclusiveMinimum":0,"maximum":9}`},
			{`{` + draft4 + `,"maximum":5,"exclusiveMaximum":true}`, `{"exclusiveMaximum":5}`},
			{`{"exclusiveMinimum":true}`, `{}`},
			{`{"type":["string",null],"enum":["a",null]}`, `{"type":["string","null"],"enum":["a",null]}`},
			{`{"type":[null]}`, `{"type":["null"]}`},
			{`{"anyOf":[{"type":null},{"type":"integer"},{"type":null,"enum":["a"]}],"not":{"type":null}}`, `{"anyOf":[{"type":"null"},{"type":"integer"},{"enum":["a"]}],"not":{}}`},
			{`{` + draft7 + `,"dependencies":{"a":["b","b"],"c":{"$ref":"#/dependencies/d"},"d":{"required":["e"]},"f":false}}`, `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"$ref":"#/dependentSchemas/d"},"d":{"required":["e"]},"f":false}}`},
			{`{"dependentRequired":{"a":["b"]},"dependencies":{"a":["c"],"d":[]}}`, `{"dependentRequired":{"a":["b"],"d":[]}}`},
			{`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{}],"additionalItems":false}`, `{"prefixItems":[{}],"items":false}`},
			{`{"properties":{"a":{"required":true},"b":{"required":false},"c":{"required":true}},"required":["c"]}`, `{"properties":{"a":{},"b":{},"c":{}},"required":["c","a"]}`},
			{`{"required":true,"items":{"required":true}}`, `{"items":{}}`},
			{`{"items":[{"type":"string"}],"additionalItems":false}`, `{"prefixItems":[{"type":"string"}],"items":false}`},
			{`{"type":"OBJECT","properties":{"a":{"type":["STRING","NULL"]},"b":{"type":"any"}}}`, `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{}}}`},
			{`{"properties":{"a":{"type":"int"},"b":{"type":["str","None"]},"c":{"type":"Date"},"d":{"type":["bool","any"]},"e":{"type":"list"}}}`, `{"properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"c":{"type":"string"},"d":{},"e":{"type":"array"}}}`},
			{`{"type":["string","string"],"required":["a","a"]}`, `{"type":["string"],"required":["a"]}`},
			{`{"description":["a"],"title":5,"examples":"x","deprecated":"yes","$ref":5}`, `{}`},
		},
		"values of another type": {
			{`{"type":"string","enum":[1.10,true,"a",null,["b"]],"default":2,"const":false}`, `{"type":"string","enum":["1.10","true","a",null,["b"]],"default":"2","const":"false"}`},
			{`{"type":"integer","enum":["1","2.5","x",3.0],"default":"1"}`, `{"type":"integer","enum":[1,"2.5","x",3.0],"default":1}`},
			{`{"type":["number","boolean","null"],"enum":["1","2.5","true","null",null]}`, `{"type":["number","boolean","null"],"enum":[1,2.5,true,"null",null]}`},
			{`{"type":["string","integer"],"enum":["1",2,true]}`, `{"type":["string","integer"],"enum":["1",2,"true"]}`},
			{`{"type":"array","enum":["a"],"items":{"type":"string"}}`, `{"type":"array","items":{"type":"string","enum":["a"]}}`},
			{`{"type":["array","null"],"enum":["1"],"items":{"type":"array","items":{"type":"integer"}}}`, `{"type":["array","null"],"items":{"type":"array","items":{"type":"integer","enum":[1]}}}`},
			{`{"type":"array","default":"[]","enum":["{}",1]}`, `{"type":"array","default":"[]","items":{"enum":["{}",1]}}`},
			{`{"type":"array","enum":["a"],"items":{"enum":["b"]}}`, ""}, {`{"type":"array","enum":["a"],"items":false}`, ""},
			{`{"type":"array","enum":["a",[]]}`, ""}, {`{"type":["array","string"],"enum":["a"]}`, ""},
			{`{"type":"null","enum":["a","b"]}`, `{"type":"null"}`}, {`{"type":"null","enum":["a",null]}`, ""}, {`{"type":"integer","enum":["a"]}`, ""},
			{`{"enum":["1",1],"default":"2"}`, ""},
			{`{"type":"string","nullable":true,"enum":[1]}`, `{"type":["string","null"],"enum":["1",null]}`},
		},
		"older references": {
			{`{` + draft4 + `,"properties":{"a":{"id":"#a","type":"string"},"b":{"$ref":"#a"}}}`, `{"properties":{"a":{"id":"#a","type":"string"},"b":{"$ref":"#/properties/a"}}}`},
			{`{` + draft7 + `,"definitions":{"a":{}},"properties":{"b":{"$ref":"#/definitions/a","description":"d","minLength":5}}}`, `{"definitions":{"a":{}},"properties":{"b":{"$ref":"#/definitions/a","description":"d"}}}`},
			{`{"properties":{"a":{"$recursiveRef":"#"}}}`, `{"properties":{"a":{"$ref":"#"}}}`},
			{`{"$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}}}`, `{"$dynamicAnchor":"n","properties":{"a":{"$ref":"#"}}}`},
			{`{"$id":"https://example.com/s","$defs":{"a/b":{"$id":"x","$defs":{"c":{}},"not":{"$ref":"#/$defs/c"}}},"$ref":"https://example.com/s#/$defs/a~1b"}`,
				`{"$id":"https://example.com/s","$defs":{"a/b":{"$defs":{"c":{}},"not":{"$ref":"#/$defs/a~1b/$defs/c"}}},"$ref":"#/$defs/a~1b"}`},
			{`{"properties":{"a":{"items":[{"type":"string"}]},"b":{"$ref":"#/properties/a/items/0"}}}`, `{"properties":{"a":{"prefixItems":[{"type":"string"}]},"b":{"$ref":"#/properties/a/prefixItems/0"}}}`},
		},
		"nested definitions": {
			{`{"properties":{"a":{"$ref":"#/$defs/x","$defs":{"x":{"type":"string"}}}}}`, `{"properties":{"a":{"$ref":"#/properties/a/$defs/x","$defs":{"x":{"type":"string"}}}}}`},
			{`{"definitions":{"x":{}},"$ref":"#/$defs/x"}`, `{"definitions":{"x":{}},"$ref":"#/definitions/x"}`},
			{`{"components":{"schemas":{"a":{"items":[]}}},"not":{"$ref":"#/components/schemas/a"}}`, `{"components":{"schemas":{"a":{"items":{}}}},"not":{"$ref":"#/components/schemas/a"}}`},
			{`{"$defs":{"a b%":{}},"not":{"$ref":"#/$defs/a b%"}}`, `{"$defs":{"a b%":{}},"not":{"$ref":"#/$defs/a%20b%25"}}`},
			{`{"properties":{"a":{"$defs":{"x":{}}},"b":{"$defs":{"x":{}}},"c":{"$ref":"#/$defs/x"}}}`, `{"properties":{"a":{"$defs":{"x":{}}},"b":{"$defs":{"x":{}}},"c":{}}}`},
		},
		"nullable": {
			{`{"type":"string","nullable":true}`, `{"type":["string","null"]}`},
			{`{"type":"string","enum":["a"],"nullable":true}`, `{"type":["string","null"],"enum":["a",null]}`},
			{`{"enum":["a"],"nullable":true}`, `{"enum":["a",null]}`},
			{`{"anyOf":[{"type":"string"}],"nullable":true,"title":"t"}`, `{"anyOf":[{"type":"string"},{"type":"null"}],"title":"t"}`},
			{`{"nullable":true,"description":"d"}`, `{"description":"d"}`},
			{`{"type":"string","nullable":false}`, `{"type":"string"}`},
			{`{"$defs":{"a":{"type":"string"}},"properties":{"p":{"$ref":"#/$defs/a","nullable":true,"title":"t"}}}`, `{"$defs":{"a":{"type":"string"}},"properties":{"p":{"title":"t","anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}`},
			{`{"type":"string","const":"a","nullable":true}`, `{"anyOf":[{"type":"string","const":"a"},{"type":"null"}]}`},
		},
		"cannot be used": {
			{`{"properties":{"a/b":{"type":"strin"}}}`, `"/properties/a~1b/type" is not a type or a list of types`},
			{`{"properties":{"p":"c"}}`, `"/properties/p" is a string, not a schema`},
			{`{"properties":["a"]}`, `"/properties" is an array, not an object`},
			{`{"anyOf":"x"}`, `"/anyOf" is not a list of schemas`},
			{`{"allOf":[{},{"not":5}]}`, `"/allOf/1/not" is a number, not a schema`},
			{`{"required":[1]}`, `"/required" is not a list of names`}, {`{"required":"a"}`, `"/required" is not a list of names`},
			{`{"enum":"a"}`, `"/enum" is not a list`}, {`{"minimum":"1"}`, `"/minimum" is not a number`}, {`{"multipleOf":0}`, `"/multipleOf" is not a positive number`},
			{`{"minLength":-1}`, `"/minLength" is not a non-negative integer`}, {`{"maxItems":1.5}`, `"/maxItems" is not a non-negative integer`},
			{`{"uniqueItems":"yes"}`, `"/uniqueItems" is not a boolean`}, {`{"items":{"pattern":["a"]}}`, `"/items/pattern" is not a string`},
			{`{"dependentRequired":{"a":"b"}}`, `"/dependentRequired" is not an object with lists of names`},
			{`"foo"`, `schema must be an object or a boolean`}, {`null`, `schema must be an object or a boolean`},
		},
	} {
		for _, c := range cases {
			if c[1] == "" {
				c[1] = c[0]
			}
			if got, _ := settleText(t, c[0]); got != c[1] {
				t.Errorf("%s: %s\nis settled as %s\nwant          %s", kind, c[0], got, c[1])
			}
		}
	}
}

func TestSettleOpensReferences(t *testing.T) {
	for raw, want := range map[string]struct {
		text string
		open int
	}{
		`{"properties":{"a":{"$ref":"#/$defs/b","description":"d"},"c":{"$ref":"#/$defs/b"}}}`: {`{"properties":{"a":{"description":"d"},"c":{}}}`, 1},
		`{"$ref":"file:///etc/passwd"}`: {`{}`, 1},
		`{"items":{"$ref":"https://example.com/s.json#/a"},"not":{"$ref":"other.json"}}`: {`{"items":{}}`, 2},
		`{"$ref":"#"}`: {`{}`, 1},
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`:                 {`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{}}}`, 1},
		`{"$defs":{"a":{"anyOf":[{"type":"string"},{"not":{"$ref":"#/$defs/a"}}]}}}`:                       {`{"$defs":{"a":{"anyOf":[{"type":"string"},{}]}}}`, 1},
		`{"properties":{"a":{"oneOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/c"}],"anyOf":[{}]}}}`:          {`{"properties":{"a":{"anyOf":[{}],"allOf":[{"anyOf":[{},{}]}]}}}`, 2},
		`{"if":{"$ref":"#/$defs/b"},"then":{"minimum":1},"$defs":{"b":{"items":{"$ref":"#/$defs/c"}}}}`:    {`{"then":{"minimum":1},"$defs":{"b":{"items":{}}}}`, 1},
		`{"not":{"not":{"$ref":"#/$defs/b"}},"oneOf":[{"not":{"type":"string"}}]}`:                         {`{"oneOf":[{"not":{"type":"string"}}]}`, 1},
		`{"properties":{"x":{"$ref":"#/$defs/p/allOf/0"}},"$defs":{"p":{"allOf":[{"$ref":"#/$defs/p"}]}}}`: {`{"properties":{"x":{"$ref":"#/$defs/p/allOf/0"}},"$defs":{"p":{"allOf":[{}]}}}`, 1},
		`{"properties":{"a":{"$ref":"#/title"},"b":{"$ref":"#/properties"}},"title":"t"}`:                  {`{"properties":{"a":{},"b":{"$ref":"#/properties"}},"title":"t"}`, 1},
		`{"$defs":{"a":{"properties":{"n":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`:                     {`{"$defs":{"a":{"properties":{"n":{"$ref":"#/$defs/a"}}}},"$ref":"#/$defs/a"}`, 0},
	} {
		got, open := settleText(t, raw)
		if got != want.text || len(open) != want.open {
			t.Errorf("%s is settled as\n%s, want\n%s; %q", raw, got, want.text, open)
		}
	}
}

func TestSettleLimits(t *testing.T) {
	s := Settler{Parser: jsonx.Parser{Options: jsonx.Options{Depth: 100}}}
	if _, err := s.Settle([]byte(strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200))); err == nil || !strings.Contains(err.Error(), "nested deeper than 100") {
		t.Errorf("deep: %v", err)
	}
	// Many references to a large part cost no more than its size.
	var large strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&large, `"p%d":{"$ref":"#/$defs/l"},`, i)
	}
	if _, err := s.Settle([]byte(`{"$defs":{"l":{"properties":{` + strings.TrimSuffix(large.String(), ",") + `}}}}`)); err != nil {
		t.Error(err)
	}
	var dangling strings.Builder // nor do many that lead nowhere, or words of draft 3
	for i := range 20_000 {
		fmt.Fprintf(&dangling, `"p%d":{"$ref":"#/$defs/d%d","required":true},`, i, i)
	}
	if got, err := s.Settle([]byte(`{"properties":{` + strings.TrimSuffix(dangling.String(), ",") + `}}`)); err != nil || len(got.Open) != maxOpen+1 {
		t.Error(got.Open, err)
	}
	if err := CheckObject(OfType("string")); err == nil {
		t.Error("the schema of a string is one of objects")
	}
	if diff := cmp.Diff(nil, CheckObject(&jsonx.Value{Kind: jsonx.Object})); diff != "" {
		t.Error(diff)
	}
}
