package wire

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestCheckParamHeaders(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"a":` + p + `}}` }
	tests := []struct{ name, schema, want string }{
		{"none", property(`{"type":"array"}`), ""},
		{"string", property(`{"type":"string","x-mcp-header":"Region"}`), ""},
		{"nested", property(`{"type":"object","properties":{"b":{"x-mcp-header":"B","type":"integer"}}}`), ""},
		{"a param of that name", `{"type":"object","properties":{"x-mcp-header":{"type":"array"}}}`, ""},
		{"data", property(`{"type":"array","default":[{"x-mcp-header":""}],"enum":[{"x-mcp-header":1}]}`), ""},
		{"empty", property(`{"type":"string","x-mcp-header":""}`), "is not a non-empty string"},
		{"not a string", property(`{"type":"string","x-mcp-header":5}`), "is not a non-empty string"},
		{"number", property(`{"type":"number","x-mcp-header":"A"}`), "not a string, integer or boolean"},
		{"untyped", property(`{"x-mcp-header":"A"}`), "not a string, integer or boolean"},
		{"nullable", property(`{"type":["string","null"],"x-mcp-header":"A"}`), "not a string, integer or boolean"},
		{"space", property(`{"type":"string","x-mcp-header":"My A"}`), "not a valid HTTP header name"},
		{"newline", property(`{"type":"string","x-mcp-header":"A\r\nHost"}`), "not a valid HTTP header name"},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"object","properties":{"c":{"type":"boolean","x-mcp-header":"sAME"}}}}}`, "occurs twice"},
		{"root", `{"type":"object","x-mcp-header":"A"}`, "properties alone"},
		{"items", property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), "properties alone"},
		{"anyOf", property(`{"anyOf":[{"type":"string"},{"type":"string","x-mcp-header":"A"}]}`), "properties alone"},
		{"$defs", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, "properties alone"},
		{"deep", strings.Repeat(`{"not":`, 200) + `{"x-mcp-header":"A"}` + strings.Repeat("}", 200), "deeper than 100 levels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !json.Valid([]byte(tt.schema)) {
				t.Fatal("the schema is no JSON")
			}
			err := CheckParamHeaders(json.RawMessage(tt.schema))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParamHeaders(t *testing.T) {
	const schema = `{"type":"object","properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"},
		"in":{"type":"object","properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}},"plain":{"type":"string"}}}`
	tests := []struct{ name, params, want string }{
		{"none", `{}`, ""},
		{"others", `{"plain":"x"}`, ""},
		{"null", `{"s":null}`, ""},
		{"another type", `{"s":["x"],"in":"x"}`, ""},
		{"text", `{"s":"eu-west"}`, "Mcp-Param-S: eu-west\r\n"},
		{"integer", `{"n":-7}`, "Mcp-Param-N: -7\r\n"},
		{"integer with a fraction of zero", `{"n":1e3}`, "Mcp-Param-N: 1000\r\n"},
		{"not an integer", `{"n":1.5}`, ""},
		{"an integer beyond exact precision", `{"n":9007199254740993}`, ""},
		{"boolean", `{"b":false}`, "Mcp-Param-B: false\r\n"},
		{"nested", `{"in":{"deep":"x"}}`, "Mcp-Param-Deep: x\r\n"},
		{"needs encoding", `{"s":"a\r\nb"}`, "Mcp-Param-S: =?base64?YQ0KYg==?=\r\n"},
		{"space around", `{"s":" a"}`, "Mcp-Param-S: =?base64?IGE=?=\r\n"},
		{"looks encoded", `{"s":"=?base64?eA==?="}`, "Mcp-Param-S: =?base64?PT9iYXNlNjQ/ZUE9PT89?=\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got strings.Builder
			if err := ParamHeaders(json.RawMessage(schema), json.RawMessage(tt.params)).Write(&got); err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.want {
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
		})
	}
}

func TestMatchParamHeaders(t *testing.T) {
	const schema = `{"properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","X-Mcp-Header":"B"},
		"c":true,"d":null,"in":{"properties":{"deep":{"type":"string","x-mcp-header":"Deep"}}}}}`
	const differ = "does not match"
	for name, tt := range map[string]struct{ schema, params, headers, want string }{
		"none":                     {schema, `{"b":true,"c":1,"d":2}`, "", ""},
		"the same":                 {schema, `{"s":"x","n":7,"in":{"deep":"y"}}`, "S:x N:7 Deep:y", ""},
		"encoded":                  {schema, `{"s":"a\r\nb"}`, "S:=?base64?YQ0KYg==?=", ""},
		"another number, the same": {schema, `{"n":1e3}`, "N:1000.0", ""},
		"another":                  {schema, `{"s":"x"}`, "S:y", differ},
		"another, nested":          {schema, `{"in":{"deep":"x"}}`, "Deep:y", differ},
		"text for a number":        {schema, `{"n":7}`, "N:seven", differ},
		"not exact":                {schema, `{"n":9007199254740993}`, "N:9007199254740993", differ},
		"not a text":               {schema, `{"s":["x"]}`, "S:x", differ},
		"missing":                  {schema, `{"s":"x"}`, "", "missing Mcp-Param-S"},
		"unexpected":               {schema, `{}`, "S:x", "unexpected Mcp-Param-S"},
		"null":                     {schema, `{"s":null}`, "S:x", "unexpected Mcp-Param-S"},
		"a schema that is wrong":   {`{"properties":{"n":{"type":"number","x-mcp-header":"N"}}}`, `{"n":1}`, "N:2", ""},
	} {
		headers := http.Header{}
		for _, line := range strings.Fields(tt.headers) {
			name, value, _ := strings.Cut(line, ":")
			headers.Set("Mcp-Param-"+name, value)
		}
		got := ""
		if err := MatchParamHeaders(json.RawMessage(tt.schema), json.RawMessage(tt.params), headers); err != nil {
			got = err.Error()
		}
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
