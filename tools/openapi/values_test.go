package main

import (
	"net/http"
	"testing"
)

func TestGeneratedParamsAreValid(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"integer","minimum":3,"maximum":4},"b":{"enum":["x",null]},"c":{"type":"string","pattern":"^[a-z]{3}-[0-9]+$","minLength":8}},"required":["a"]}`,
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"},"at":{"type":"string","format":"date-time"}},"required":["at"]}}}`,
		`{"type":"object","properties":{"o":{"oneOf":[{"type":"string","maxLength":2},{"type":"array","items":{"type":"number","multipleOf":0.5},"minItems":2}]},"m":{"allOf":[{"minimum":5},{"type":"integer","maximum":6}]}}}`,
	} {
		for seed := range uint64(20) {
			g, err := newGenerator([]byte(schema), seed)
			if err != nil {
				t.Fatal(err)
			}
			for _, optional := range []amount{required, all, some} {
				if params, err := g.params(optional); err != nil { // params validates
					t.Errorf("%s: %v: %v", schema, params, err)
				}
			}
		}
	}
}

func TestVerdictIsAboutTheRequest(t *testing.T) {
	for _, tt := range []struct {
		violations, body, refusal string
	}{
		{`[{"location":["response","body"],"severity":"Error","code":"x","message":"m"}]`, "", ""},
		{`[{"location":["request"],"severity":"Error","code":415,"message":"m"}]`, "", "request: m"},
		{"", `{"type":"https://stoplight.io/prism/errors#UNPROCESSABLE_ENTITY","validation":[{"location":["body","a"],"severity":"Error","code":"x","message":"m"}]}`, "body.a: m"},
		{"", `{"type":"https://stoplight.io/prism/errors#NO_RESPONSE_DEFINED"}`, ""},
		{"", `{"type":"https://stoplight.io/prism/errors#UNAUTHORIZED","detail":"d"}`, "UNAUTHORIZED: d"},
	} {
		if got := judge(422, http.Header{"Sl-Violations": {tt.violations}}, []byte(tt.body)); got.refusal != tt.refusal {
			t.Errorf("%s %s: %q, want %q", tt.violations, tt.body, got.refusal, tt.refusal)
		}
	}
}
