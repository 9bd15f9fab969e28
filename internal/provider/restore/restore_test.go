package restore

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
)

func TestRestoreListed(t *testing.T) {
	const obj = `{"type":"object","properties":{`
	for name, c := range map[string]struct{ schema, params, want string }{
		"number":                {obj + `"n":{"enum":[1,2.50,-3]}}}`, `{"n":"2.5"}`, `{"n":2.50}`},
		"boolean":               {obj + `"n":{"type":"boolean","enum":[true]}}}`, `{"n":"true"}`, `{"n":true}`},
		"beyond a double":       {obj + `"n":{"enum":[9007199254740993]}}}`, `{"n":"9007199254740992"}`, `{"n":9007199254740993}`},
		"object and list":       {obj + `"n":{"enum":[{"b":1,"a":2}]},"m":{"enum":[[1,"x"]]}}}`, `{"n":"[object Object]","m":"1,x"}`, `{"n":{"b":1,"a":2},"m":[1,"x"]}`},
		"string wins":           {obj + `"n":{"enum":[1,"1"]}}}`, `{"n":"1"}`, `{"n":"1"}`},
		"null":                  {obj + `"n":{"enum":[null,1]}}}`, `{"n":"null"}`, `{"n":null}`},
		"not in the enum":       {obj + `"n":{"enum":[1]}}}`, `{"n": "x"}`, `{"n": "x"}`},
		"already right":         {obj + `"n":{"enum":[1]}}}`, `{"n": 1}`, `{"n": 1}`},
		"in a list":             {obj + `"l":{"items":{"enum":[1,2]}}}}`, `{"l":["2","1",2,"x"]}`, `{"l":[2,1,2,"x"]}`},
		"nested":                {obj + `"o":` + obj + `"n":{"enum":[1]}}}}}`, `{"o":{"z":"1","n":"1"}}`, `{"o":{"z":"1","n":1}}`},
		"anyOf":                 {obj + `"n":{"anyOf":[{"enum":[1]},{"type":"null"}]}}}`, `{"n":"1"}`, `{"n":1}`},
		"anyOf with strings":    {obj + `"n":{"anyOf":[{"enum":[1]},{"type":["string","null"]}]}}}`, `{"n":"1"}`, `{"n":"1"}`},
		"anyOf, same string":    {obj + `"n":{"anyOf":[{"enum":[1]},{"enum":["1"]}]}}}`, `{"n":"1"}`, `{"n":"1"}`},
		"order and numbers":     {obj + `"n":{"enum":[1]}}}`, `{"z": 1.0, "n": "1", "big": 123456789012345678901}`, `{"z":1.0,"n":1,"big":123456789012345678901}`},
		"oneOf":                 {obj + `"n":{"oneOf":[{"enum":[1]}]}}}`, `{"n":"1"}`, `{"n":1}`},
		"const":                 {obj + `"n":{"const":5}}}`, `{"n":"5"}`, `{"n":5}`},
		"const of text":         {obj + `"n":{"const":"5"}}}`, `{"n":"5"}`, `{"n":"5"}`},
		"by reference":          {`{"type":"object","$defs":{"e":{"enum":[1,2]}},"properties":{"n":{"$ref":"#/$defs/e"}}}`, `{"n":"2"}`, `{"n":2}`},
		"a string by reference": {`{"type":"object","$defs":{"s":{"type":"string"}},"properties":{"n":{"anyOf":[{"enum":[1]},{"$ref":"#/$defs/s"}]}}}`, `{"n":"1"}`, `{"n":"1"}`},
		"in a circle":           {`{"type":"object","properties":{"n":{"$ref":"#/properties/n"},"m":{"allOf":[{"$ref":"#"},{"enum":[1]}]}}}`, `{"n":"1","m":"1"}`, `{"n":"1","m":1}`},
		"tuple":                 {obj + `"n":{"prefixItems":[{"const":true},{"enum":["1"]}],"items":{"enum":[3]}}}}`, `{"n":["true","1","3"]}`, `{"n":[true,"1",3]}`},
		"duplicate key":         {obj + `"n":{"enum":[1]}}}`, `{"n":"1","n":"1"}`, `{"n":"1","n":"1"}`},
		"next to a reference":   {`{"properties":{"o":{"$ref":"#/$defs/o","properties":{"n":{"enum":[1]}}}},"$defs":{"o":{"properties":{"m":{"enum":[2]}}}}}`, `{"o":{"n":"1","m":"2"}}`, `{"o":{"n":1,"m":2}}`},
		"bad params":            {obj + `"n":{"enum":[1]}}}`, `{"n":"1"`, `{"n":"1"`},
		"bad schema":            {`{`, `{"n":"1"}`, `{"n":"1"}`},
		"no schema":             {``, `{"n":"1"}`, `{"n":"1"}`},
		"odd schema":            {`{"properties":5,"items":true,"anyOf":3,"enum":"x"}`, `{"n":"1"}`, `{"n":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Values(json.RawMessage(c.schema), json.RawMessage(c.params))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRestoreListedUndoesSanitizing declares a schema and restores each of the
// declared values.
func TestRestoreListedUndoesSanitizing(t *testing.T) {
	const values = `[1,2.5,-3,1e21,0.0000001,true,[1,2],"s"]`
	schema := `{"properties":{"v":{"enum":` + values + `}}}`
	s, err := jsonx.Parse([]byte(schema), jsonx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := jsonx.Parse([]byte(values), jsonx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gemini.Sanitize(s)
	for i, v := range s.Get("properties").Get("v").Get("enum").Items {
		params := `{"v":` + v.Token + `}`
		got := string(Values(json.RawMessage(schema), json.RawMessage(params)))
		if w := `{"v":` + string(want.Items[i].AppendTo(nil)) + `}`; got != w {
			t.Errorf("%s gave %s, want %s", params, got, w)
		}
	}
}

func TestOptional(t *testing.T) {
	const alternatives = `{"oneOf":[{"properties":{"do":{"const":"note"},"text":{"type":["string","null"]}},"required":["do","text"]},
		{"properties":{"do":{"const":"count"},"n":{"type":"integer"},"text":{"type":"string"}},"required":["do","n"]}]}`
	const defs = `,"$defs":{"s":{"type":"string"},"n":{"type":["string","null"]},"loop":{"$ref":"#/$defs/loop"}}}`
	for name, c := range map[string]struct{ schema, params, want string }{
		"optional":                    {`{"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, `{"a": null, "b":1}`, `{"b":1}`},
		"required stays":              {`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, `{"a":null}`},
		"null allowed":                {`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":null}`},
		"null in enum":                {`{"properties":{"a":{"enum":["x",null]},"b":{"enum":["x"]}}}`, `{"a":null,"b":null}`, `{"a":null}`},
		"const":                       {`{"properties":{"a":{"const":"x"},"b":{"const":null}}}`, `{"a":null,"b":null}`, `{"b":null}`},
		"any value":                   {`{"properties":{"a":{},"b":true,"c":false}}`, `{"a":null,"b":null,"c":null}`, `{"a":null,"b":null}`},
		"unknown stays":               {`{"properties":{}}`, `{"x":null}`, `{"x":null}`},
		"nested":                      {`{"properties":{"o":{"properties":{"a":{"type":"string"}}},"l":{"items":{"properties":{"a":{"type":"string"}}}}}}`, `{"o":{"a":null},"l":[{"a":null},{"a":"x"}]}`, `{"o":{},"l":[{},{"a":"x"}]}`},
		"anyOf":                       {`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"anyOf":[{"type":"string"}]}}}`, `{"a":null,"b":null}`, `{"a":null}`},
		"reference":                   {`{"properties":{"a":{"$ref":"#/$defs/s"},"b":{"$ref":"#/$defs/n"},"c":{"$ref":"#/$defs/loop"}}` + defs, `{"a":null,"b":null,"c":null}`, `{"b":null,"c":null}`},
		"allOf":                       {`{"properties":{"a":{"allOf":[{"$ref":"#/$defs/s"}]},"b":{"allOf":[{"$ref":"#/$defs/n"}]}}` + defs, `{"a":null,"b":null}`, `{"b":null}`},
		"tuple":                       {`{"properties":{"l":{"prefixItems":[{"properties":{"a":{"type":["string","null"]}}}],"items":{"properties":{"a":{"type":"string"}}}}}}`, `{"l":[{"a":null},{"a":null}]}`, `{"l":[{"a":null},{}]}`},
		"next to a reference":         {`{"properties":{"o":{"$ref":"#/$defs/o","properties":{"b":{"type":"string"}}}},"$defs":{"o":{"properties":{"a":{"type":"string"}}}}}`, `{"o":{"a":null,"b":null}}`, `{"o":{}}`},
		"required by the alternative": {alternatives, `{"do":"note","text":null,"n":null}`, `{"do":"note","text":null}`},
		"optional in the alternative": {alternatives, `{"do":"count","text":null,"n":1}`, `{"do":"count","n":1}`},
		"within the alternative":      {`{"oneOf":[{"properties":{"do":{"const":"a"},"o":{"properties":{"x":{"type":"string"}}}}},{"properties":{"do":{"const":"b"},"o":{"properties":{"x":{"type":["string","null"]}}}}}]}`, `{"do":"b","o":{"x":null}}`, `{"do":"b","o":{"x":null}}`},
		"of no alternative":           {alternatives, `{"do":"other","text":null,"n":null}`, `{"do":"other"}`},
		"below a reference":           {`{"$ref":"#/$defs/o","$defs":{"o":{"properties":{"a":{"type":"string"}}}}}`, `{"a":null}`, `{}`},
		"duplicate key":               {`{"properties":{"a":{"type":"string"}}}`, `{"a":null,"a":null}`, `{"a":null,"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(Optional(json.RawMessage(c.schema), json.RawMessage(c.params))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRestoreIsBounded uses schemas that require exponential work.
func TestRestoreIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$ref":"#/$defs/e0","$defs":{`)
	for i := range 40 {
		from, to := string(rune('A'+i)), string(rune('A'+i+1))
		if i == 0 {
			from = "0"
		}
		b.WriteString(`"d` + from + `":{"anyOf":[{"$ref":"#/$defs/d` + to + `"},{"$ref":"#/$defs/d` + to + `"}]},`)
		b.WriteString(`"e` + from + `":{"anyOf":[{"$ref":"#/$defs/e` + to + `"},{"$ref":"#/$defs/e` + to + `"}]},`)
	}
	b.WriteString(`"di":{"type":"string"},"ei":{"properties":{"a":{"type":"string"}}}}}`)
	schema, params := json.RawMessage(b.String()), json.RawMessage(`{"a":null}`)
	for range 2 {
		if got := Optional(schema, params); !json.Valid(got) {
			t.Errorf("got %s", got)
		}
		Values(schema, params)
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"properties":{"n":{"enum":[1,{"a":1}]},"m":{"type":"string"}}}`), []byte(`{"n":"1","m":null}`))
	f.Add([]byte(`{"anyOf":[{"$ref":"#"},{"items":{"$ref":"#"}}]}`), []byte(`[["x"],null,{"a":null}]`))
	f.Fuzz(func(t *testing.T, schema, params []byte) {
		for _, restore := range []func(s, p json.RawMessage) json.RawMessage{Values, Optional} {
			if out := restore(schema, params); json.Valid(params) && !json.Valid(out) {
				t.Fatalf("schema %q, params %q became %q", schema, params, out)
			}
		}
	})
}
