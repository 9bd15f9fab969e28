package overrides

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// randomSchema returns a schema for the same object, with conditions on a, b and c.
func randomSchema(r *rand.Rand, depth int) string {
	param := func() string { return []string{"a", "b", "c"}[r.IntN(3)] }
	value := func() string {
		return []string{`{}`, `{"const":1}`, `{"const":2}`, `{"type":"string"}`, `{"type":"integer"}`, `{"enum":[1,"x"]}`, `false`}[r.IntN(7)]
	}
	under := func() string { return randomSchema(r, depth-1) }
	var out []string
	for range 1 + r.IntN(2) {
		kinds := 14
		if depth == 0 {
			kinds = 5
		}
		switch r.IntN(kinds) {
		case 0, 1:
			out = append(out, fmt.Sprintf(`"properties":{%q:%s,"b":%s}`, []string{"a", "c"}[r.IntN(2)], value(), value()))
		case 2, 3:
			out = append(out, fmt.Sprintf(`"required":[%q]`, param()))
		case 4:
			out = append(out, []string{`"additionalProperties":false`, `"minProperties":1`, `"type":"object"`, `"maxProperties":2`, `"patternProperties":{"a|b":{"const":1}}`}[r.IntN(5)])
		case 5, 6:
			out = append(out, fmt.Sprintf(`"oneOf":[%s,%s]`, under(), under()))
		case 7, 8:
			out = append(out, fmt.Sprintf(`"anyOf":[%s,%s]`, under(), under()))
		case 9:
			out = append(out, fmt.Sprintf(`"not":%s`, under()))
		case 10:
			out = append(out, fmt.Sprintf(`"if":%s,"then":%s,"else":%s`, under(), under(), under()))
		case 11:
			out = append(out, fmt.Sprintf(`"dependentRequired":{%q:[%q]}`, param(), param()))
		case 12:
			out = append(out, fmt.Sprintf(`"dependentSchemas":{%q:%s}`, param(), under()))
		case 13:
			out = append(out, `"$ref":"#/$defs/d"`)
		}
	}
	seen := map[string]bool{}
	kept := out[:0]
	for _, keyword := range out {
		name, _, _ := strings.Cut(keyword, ":")
		if !seen[name] {
			kept = append(kept, keyword)
		}
		seen[name] = true
	}
	return "{" + strings.Join(kept, ",") + "}"
}

// The new shape of a tool accepts exactly the calls that the tool accepts with the
// fixed param, whatever conditions its schema has.
func TestSettledMeansTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	settled := 0
	for range 500 {
		conditions := []string{"anyOf", "oneOf", "allOf"}[r.IntN(3)]
		given := fmt.Sprintf(`{"type":"object","properties":{"a":{},"b":{}},%q:[%s,%s],"$defs":{"d":%s}}`, conditions, randomSchema(r, 2), randomSchema(r, 2), randomSchema(r, 0))
		if newObject(json.RawMessage(given)).conditional("a") == "" {
			continue
		}
		override, sent := `{a: {const: 1}}`, `"a":1`
		switch r.IntN(3) {
		case 0:
			override, sent = `{a: {const: x}}`, `"a":"x"`
		case 1:
			override, sent = `{a: {hidden: true}}`, ""
		}
		rec := newRecorder(given)
		out := newSet(t, "overrides: {x: {params: "+override+"}}").Reshape(t.Context(), &rec.Tool, []string{"x"})
		impossible := out.Quarantine != nil && strings.Contains(out.Quarantine.Error(), "can satisfy")
		if out.Quarantine != nil && !impossible {
			continue
		}
		settled++
		old, now := registry.NewValidator(json.RawMessage(given)), registry.NewValidator(out.InputSchema)
		for _, call := range []string{``, `"b":1`, `"b":"x"`, `"c":1`, `"c":2,"b":2`, `"c":"x","b":1`, `"d":1`} {
			was, err := old.Validate(t.Context(), json.RawMessage("{"+strings.Trim(call+","+sent, ",")+"}"))
			if err != nil {
				t.Fatalf("%s: %v", given, err)
			}
			accepts := false
			if !impossible {
				is, err := now.Validate(t.Context(), json.RawMessage("{"+call+"}"))
				if err != nil {
					t.Fatalf("%s became %s: %v", given, out.InputSchema, err)
				}
				accepts = len(is) == 0
			}
			if accepts != (len(was) == 0) {
				t.Fatalf("%s with %s became %s (%v): {%s} is accepted: %t, was %t", given, override, out.InputSchema, out.Quarantine, call, accepts, len(was) == 0)
			}
		}
	}
	if settled < 100 {
		t.Errorf("only %d of the schemas could be settled", settled)
	}
	t.Logf("%d of 500", settled)
}
