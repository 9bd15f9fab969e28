package restore

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	const obj = `{"type":"object","properties":{`
	for name, c := range map[string]struct{ schema, params, want string }{
		"whole number":             {obj + `"n":{"type":"integer"}}}`, `{"n":5000.0}`, `{"n":5000}`},
		"exponent":                 {obj + `"n":{"type":"integer"}}}`, `{"n":5e3,"m":1.5e1}`, `{"n":5000,"m":1.5e1}`},
		"negative":                 {obj + `"n":{"type":["integer","null"]}}}`, `{"n":-2.0}`, `{"n":-2}`},
		"large":                    {obj + `"n":{"type":"integer"}}}`, `{"n":12345678901234567890.0}`, `{"n":12345678901234567890}`},
		"whole in lists":           {obj + `"l":{"type":"array","items":{"type":"object","properties":{"n":{"enum":[1,2]}}}}}}`, `{"l":[{"n":1.0},{"n":2}]}`, `{"l":[{"n":1},{"n":2}]}`},
		"a fraction stays":         {obj + `"n":{"type":"integer"}}}`, `{"n": 1.5}`, `{"n": 1.5}`},
		"a number stays":           {obj + `"n":{"type":"number"},"m":{}}}`, `{"n": 1.0, "m": 2.0}`, `{"n": 1.0, "m": 2.0}`},
		"huge exponent":            {obj + `"n":{"type":"integer"}}}`, `{"n": 1e999999999}`, `{"n": 1e999999999}`},
		"list in a string":         {obj + `"l":{"type":"array","items":{"type":"integer"}}}}`, `{"l":"[1, 2.0, \"3\"]"}`, `{"l":[1,2,3]}`},
		"object in a string":       {obj + `"o":{"type":"object","properties":{"l":{"type":"array"}}}}}`, `{"o":"{\"l\":\"[]\"}"}`, `{"o":{"l":[]}}`},
		"empty object of PHP":      {obj + `"o":{"type":"object"},"l":{"type":"array","items":{"type":["object","null"]}},"a":{}}}`, `{"o":[],"l":[[],[]],"a":[]}`, `{"o":{},"l":[{},{}],"a":[]}`},
		"a list is allowed":        {obj + `"a":{"type":["object","array"]}}}`, `{"a": []}`, `{"a": []}`},
		"number in a string":       {obj + `"n":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"}}}`, `{"n":"5","f":"-0.5","b":"true"}`, `{"n":5,"f":-0.5,"b":true}`},
		"whole number in a string": {obj + `"n":{"type":"integer"}}}`, `{"n":"5.0"}`, `{"n":5}`},
		"null in a string":         {obj + `"n":{"type":["integer","null"]}}}`, `{"n":"null"}`, `{"n":null}`},
		"beside listed strings":    {obj + `"a":{"anyOf":[{"enum":["x"]},{"type":"null"}]},"b":{"type":["string","null"],"enum":["x",null]},"c":{"anyOf":[{"const":"x"},{"type":"array","items":{"type":"integer"}}]},"d":{"enum":["1",null]}}}`, `{"a":"null","b":"null","c":"[\"1\"]","d":"1"}`, `{"a":null,"b":null,"c":[1],"d":"1"}`},
		"a string is allowed":      {obj + `"s":{"type":["string","array"]},"a":{},"u":{"anyOf":[{"type":"array"},{"type":"string"}]}}}`, `{"s": "[1]", "a": "[1]", "u": "[1]"}`, `{"s": "[1]", "a": "[1]", "u": "[1]"}`},
		"another type":             {obj + `"l":{"type":"array"}}}`, `{"l": "{}"}`, `{"l": "{}"}`},
		"no JSON":                  {obj + `"l":{"type":"array"}}}`, `{"l": "[1"}`, `{"l": "[1"}`},
		"a key twice":              {obj + `"o":{"type":"object"}}}`, `{"o": "{\"a\":1,\"a\":2}"}`, `{"o": "{\"a\":1,\"a\":2}"}`},
		"additional properties":    {`{"additionalProperties":{"type":"array"}}`, `{"x":"[1]"}`, `{"x":[1]}`},
		"a pattern of JavaScript":  {`{"patternProperties":{"^\\u006e":{"type":"integer"}}}`, `{"n1":"1"}`, `{"n1":1}`},
		"pattern properties":       {`{"patternProperties":{"^n":{"type":["integer","null"]},"_s$":{"type":["string","array","integer"]}},"additionalProperties":{"type":"boolean"}}`, `{"n1":"1","a_s":"[]","n_s":"1","x":"true"}`, `{"n1":1,"a_s":"[]","n_s":1,"x":true}`},
		"by reference":             {obj + `"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"type":"array"}}}`, `{"a":"[]"}`, `{"a":[]}`},
		"all of several":           {`{"allOf":[{"properties":{"a":{"type":["array","string"]}}},{"properties":{"a":{"type":["array","null"]}}}]}`, `{"a":"[]"}`, `{"a":[]}`},
		"any of several":           {`{"anyOf":[{"properties":{"a":{"type":"array"}}},{"properties":{"a":{"type":"object"}}}]}`, `{"a":"[]"}`, `{"a":[]}`},
		"any, one allows strings":  {`{"anyOf":[{"properties":{"a":{"type":"array"}}},{"properties":{"b":{"type":"object"}}}]}`, `{"a": "[]"}`, `{"a": "[]"}`},
		"object or null":           {obj + `"o":{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}]}},"$defs":{"o":{"type":"object","properties":{"n":{"type":"integer"},"o":{"oneOf":[{"$ref":"#/$defs/o"},{"type":"null"}]}}}}}`, `{"o":{"n":"1","o":{"n":"2","x":"3"}}}`, `{"o":{"n":1,"o":{"n":2,"x":"3"}}}`},
		"list or null":             {obj + `"l":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}}}`, `{"l":["1","x"]}`, `{"l":[1,"x"]}`},
		"list or a string":         {obj + `"l":{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"string"}]}}}`, `{"l":["1"]}`, `{"l":[1]}`},
		"by a constant":            {obj + `"o":{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"k":{"enum":["b"]},"n":{"type":"string"}}}]}}}`, `{"o":{"k":"a","n":"1"}}`, `{"o":{"k":"a","n":1}}`},
		"by another constant":      {obj + `"o":{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"k":{"enum":["b"]},"n":{"type":"string"}}}]}}}`, `{"o": {"k": "b", "n": "1"}}`, `{"o": {"k": "b", "n": "1"}}`},
		"a constant and a number":  {obj + `"o":{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"b"},"n":{"enum":[1,2]}}}]}}}`, `{"o":{"k":"b","n":"1"}}`, `{"o":{"k":"b","n":1}}`},
		"by a number":              {obj + `"o":{"oneOf":[{"properties":{"v":{"const":1},"l":{"type":"string"}}},{"properties":{"v":{"const":2},"l":{"type":"array"}}}]}}}`, `{"o":{"v":2,"l":"[]"}}`, `{"o":{"v":2,"l":[]}}`},
		"by a constant below":      {obj + `"o":{"oneOf":[{"allOf":[{"$ref":"#/$defs/o"},{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}}]},{"allOf":[{"$ref":"#/$defs/o"},{"properties":{"k":{"const":"b"},"n":{"type":"string"}}}]}]}},"$defs":{"o":{}}}`, `{"o":{"k":"a","n":"1"}}`, `{"o":{"k":"a","n":1}}`},
		"alternatives in another":  {obj + `"o":{"anyOf":[{"oneOf":[{"required":["x"]},{"properties":{"k":{"const":"b"}}}]},{"properties":{"n":{"type":"integer"}}}]}}}`, `{"o":{"k":"a","n":"1"}}`, `{"o":{"k":"a","n":1}}`},
		"by another type":          {obj + `"o":{"oneOf":[{"properties":{"a":{"type":"object"},"n":{"type":"integer"}}},{"properties":{"a":{"type":"integer"}}}]}}}`, `{"o":{"a":{},"n":"1"}}`, `{"o":{"a":{},"n":1}}`},
		"by what is required":      {obj + `"o":{"anyOf":[{"properties":{"n":{"type":"integer"}}},{"properties":{"s":{"type":"string"}},"required":["s"]}]}}}`, `{"o":{"n":"1"}}`, `{"o":{"n":1}}`},
		"no alternative fits":      {obj + `"o":{"anyOf":[{"properties":{"n":{"type":"integer"}},"required":["x"]},{"required":["y"]}]}}}`, `{"o": {"n": "1"}}`, `{"o": {"n": "1"}}`},
		"tuple":                    {obj + `"t":{"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"array"}}}}`, `{"t":["1","2","[3]"]}`, `{"t":[1,"2",[3]]}`},
		"recursive":                {`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}}}`, `{"next":{"next":{"v":"1"}}}`, `{"next":{"next":{"v":1}}}`},
		"big numbers keep":         {obj + `"n":{"type":"integer"}}}`, `{"n":"1","id":12345678901234567891.5}`, `{"n":1,"id":12345678901234567891.5}`},
	} {
		if got := string(Values(json.RawMessage(c.schema), json.RawMessage(c.params))); got != c.want {
			t.Errorf("%s: %s of %s became %s, want %s", name, c.params, c.schema, got, c.want)
		}
	}
}

// Schemas and params that are made to cost much cost little.
func TestValuesIsBounded(t *testing.T) {
	doubling := `{"$defs":{` + strings.Repeat(`"x":{},`, 3) + `"d":{"anyOf":[{"$ref":"#/$defs/d2"},{"$ref":"#/$defs/d2"}]},"d2":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/d"}}},{"properties":{"a":{"$ref":"#/$defs/d"}}}]}},"$ref":"#/$defs/d"}`
	params := strings.Repeat(`{"a":`, 90) + `"1"` + strings.Repeat("}", 90)
	if got := string(Values(json.RawMessage(doubling), json.RawMessage(params))); got != params {
		t.Errorf("params became %s", got)
	}
}

func BenchmarkValues(b *testing.B) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}}}`)
	for b.Loop() {
		Values(schema, json.RawMessage(`{"a":"x","n":"1"}`))
	}
}
