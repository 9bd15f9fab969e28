package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func field(t *testing.T, schema string) *Field {
	t.Helper()
	f, err := Parse(json.RawMessage(`{"type":"object","properties":{"f":` + schema + `}}`))
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return &f.Fields[0]
}

func TestAnswers(t *testing.T) {
	const (
		enum   = `{"type":"string","enum":["red","Green","3"]}`
		titled = `{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}`
		legacy = `{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}`
		multi  = `{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b,c","d"]}}`
	)
	tests := []struct{ schema, typed, want, err string }{
		{`{"type":"string"}`, " hé<llo ", `"hé<llo"`, ""},
		{`{"type":"string"}`, `""`, `""`, ""},
		{`{"type":"string","minLength":2}`, "é", "", "expected at least 2 characters, got 1"},
		{`{"type":"string","maxLength":2}`, "éé", `"éé"`, ""},
		{`{"type":"string","minLength":2,"maxLength":3}`, "abcd", "", "expected 2 to 3 characters"},
		{`{"type":"string","pattern":"^[a-z]+$"}`, "ab1", "", "does not match the pattern ^[a-z]+$"},
		{`{"type":"string","pattern":"(?=x)"}`, "anything", `"anything"`, ""},
		{`{"type":"string","pattern":"^[\\u0061-z]+$"}`, "1", "", "does not match the pattern"},
		{`{"type":"string","format":"email"}`, "ada@example.com", `"ada@example.com"`, ""},
		{`{"type":"string","format":"email"}`, "Ada <ada@example.com>", "", "an e-mail address"},
		{`{"type":"string","format":"uri"}`, "example.com", "", "an address such as"},
		{`{"type":"string","format":"date"}`, "2026-02-30", "", "a date such as"},
		{`{"type":"string","format":"date-time"}`, "2026-02-03T04:05:06+01:00", `"2026-02-03T04:05:06+01:00"`, ""},
		{`{"type":"string","format":"date-time"}`, "2026-02-03", "", "a time such as"},
		{`{"type":"integer"}`, "12345678901234567891", "12345678901234567891", ""},
		{`{"type":"integer"}`, "1e3", "", "not an integer"},
		{`{"type":"integer"}`, "1.0", "", "not an integer"},
		{`{"type":"integer"}`, "ten", "", "that is not a number; expected an integer"},
		{`{"type":"number"}`, "-1.5e3", "-1.5e3", ""},
		{`{"type":"number"}`, "1e999", "", "too large"},
		{`{"type":"number"}`, "NaN", "", "not a number"},
		{`{"type":"number"}`, "+1", "", "not a number"},
		{`{"type":"number"}`, "01", "", "not a number"},
		{`{"type":"number","minimum":0.5}`, "0.4", "", "at least 0.5"},
		{`{"type":"number","maximum":2}`, "2", "2", ""},
		{`{"type":"boolean"}`, "Y", "true", ""},
		{`{"type":"boolean"}`, "no", "false", ""},
		{`{"type":"boolean"}`, "maybe", "", "answer yes or no"},
		{enum, "red", `"red"`, ""},
		{enum, "green", `"Green"`, ""},
		{enum, "3", `"3"`, ""},
		{enum, "1", "", "not one of the choices"}, // a value looks like a number
		{`{"type":["string","null"],"enum":["a",null]}`, "2", "", "not one of the choices"},
		{titled, "green", `"g"`, ""},
		{titled, "2", `"g"`, ""},
		{titled, "3", "", "not one of the choices"},
		{titled, "0", "", "not one of the choices"},
		{legacy, "Red", `"r"`, ""},
		{multi, "a, 3", `["a","d"]`, ""},
		{multi, "b,c", `["b,c"]`, ""},
		{multi, "2,1", `["b,c","a"]`, ""},
		{multi, "a,a", "", "chosen twice"},
		{multi, "", "", "expected 1 to 2 choices, got 0"},
		{multi, "1,2,3", "", "got 3"},
		{`{"type":"array","items":{"anyOf":[{"const":"x","title":"X!"}]}}`, "x!", `["x"]`, ""},
		{`{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}`, "5", "5", ""},
		{`{"type":["null","boolean"]}`, "yes", "true", ""},
	}
	for _, tt := range tests {
		t.Run(tt.schema+" "+tt.typed, func(t *testing.T) {
			value, err := field(t, tt.schema).Read(tt.typed)
			switch {
			case tt.err == "" && (err != nil || string(value) != tt.want):
				t.Errorf("got %s, %v, want %s", value, err, tt.want)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want %s", err, tt.err)
			}
		})
	}
}

func TestUnsupportedFormsAreRejected(t *testing.T) {
	many := func(n int, entry string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(entry, i)
		}
		return strings.Join(parts, ",")
	}
	one := func(schema string) string { return `{"type":"object","properties":{"f":` + schema + `}}` }
	tests := []struct{ schema, want string }{
		{`{"type":"object","$ref":"#"}`, "references"},
		{one(`{"type":"string","$dynamicRef":"#"}`), "references"},
		{one(`{"$ref":"#/$defs/a"}`), "references"},
		{one(`{"type":"string","x":` + strings.Repeat(`{"not":`, 30) + `1` + strings.Repeat(`}`, 30) + `}`), "nested more than 20 deep"},
		{one(`{"type":"object","properties":{"b":{"type":"string"}}}`), "it is nested"},
		{one(`{"type":"array"}`), "without a type for its items"},
		{one(`{"type":"array","items":{"type":"string"}}`), "choices that are missing"},
		{one(`{"type":"array","items":{"type":"integer","enum":[1,2]}}`), "choices that are missing"},
		{one(`{"type":"null"}`), "a type that forms do not support"},
		{one(`{}`), "a type that forms do not support"},
		{one(`5`), "is not an object"},
		{one(`{"type":"string","enum":[]}`), "choices that are missing"},
		{one(`{"type":"string","enum":["a","a"]}`), "occurs twice"},
		{one(`{"type":"string","oneOf":[{"title":"A"}]}`), "choices that are missing"},
		{one(`{"type":"string","minLength":5,"maxLength":2}`), "no answer can satisfy"},
		{one(`{"type":"integer","minimum":5,"maximum":2}`), "no answer can satisfy"},
		{one(`{"type":"array","minItems":3,"items":{"enum":["a","b"]}}`), "no answer can satisfy"},
		{one(`{"type":"string","enum":[` + many(maxOptions+1, `"o%d"`) + `]}`), "201 choices, but the limit is 200"},
		{`{"type":"object","properties":{` + many(10_000, `"f%d":{}`) + `}}`, "10000 fields, but the limit is 100"},
		{`{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"boolean"}}}`, `repeats "a"`},
		{one(`{"type":"string","oneOf":[{"const":"x","title":"X","title":"Y"}]}`), `repeats "title"`},
		{`{"type":"array"}`, "must have type object"},
		{`[]`, "is not an object"},
		{`{`, "is not valid JSON"},
		{`{"x":"` + strings.Repeat("x", maxSchema) + `"}`, "the limit is 262144"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			if _, err := Parse(json.RawMessage(tt.schema)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// Clients take only fields as the protocol has them, so what libraries write instead is settled for them.
func TestSettledSchemas(t *testing.T) {
	for field, want := range map[string]string{
		`{"type":"string"}`:                            `{"type":"string"}`,
		`{ "type":"string", "oneOf":[{"const":"x"}] }`: `{ "type":"string", "oneOf":[{"const":"x"}] }`,
		`{"oneOf":[{"const":"x","title":"X"}]}`:        `{"oneOf":[{"const":"x","title":"X"}],"type":"string"}`,
		`{"enum":["a"],"title":"E"}`:                   `{"enum":["a"],"title":"E","type":"string"}`,
		`{"type":["integer","null"],"default":null}`:   `{"type":"integer"}`,
		`{"anyOf":[{"type":"string","title":"in"},{"type":"null"}],"default":null,"title":"Note"}`: `{"title":"Note","type":"string"}`,
		`{"anyOf":[{"type":"null"},{"enum":["a","b"]}],"default":"a"}`:                             `{"default":"a","enum":["a","b"],"type":"string"}`,
	} {
		const head, tail = `{"type":"object","properties":{"f":`, `},"required":["f"],"x":1e400}`
		f, err := Parse(json.RawMessage(head + field + tail))
		if err != nil || string(f.Schema) != head+want+tail {
			t.Errorf("%s: %s, %v", field, f.Schema, err)
			continue
		}
		if again, err := Parse(f.Schema); err != nil || !cmp.Equal(again.Fields, f.Fields, cmp.AllowUnexported(Field{})) {
			t.Errorf("%s: the settled schema is another form: %v, %v", field, again, err)
		}
	}
}

// A form without fields is one that asks for yes or no, also as PHP writes an empty object.
func TestPropertiesOfPHP(t *testing.T) {
	f, err := Parse(json.RawMessage(`{"type":"object","properties":[ ]}`))
	if err != nil || len(f.Fields) > 0 || string(f.Schema) != `{"type":"object","properties":{}}` {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := Parse(json.RawMessage(`{"type":"object","properties":["a"]}`)); err == nil {
		t.Error("a list is taken for fields")
	}
}

func TestFieldsKeepTheirOrder(t *testing.T) {
	f, err := Parse(json.RawMessage(`{"properties":{"z":{"type":"string","default":"d"},"a":{"type":"integer","default":"no"},"m":{"type":"boolean","default":true}},"required":["m"]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	values := map[string]json.RawMessage{}
	for _, field := range f.Fields {
		got = append(got, fmt.Sprintf("%s %s %v", field.Name, field.Default, field.Required))
		values[field.Name] = field.Default
	}
	// A default that does not fit is ignored.
	if diff := cmp.Diff([]string{`z "d" false`, `a  false`, `m true true`}, got); diff != "" {
		t.Error(diff)
	}
	if content := string(f.Encode(values)); content != `{"z":"d","m":true}` {
		t.Errorf("content %s", content)
	}
}

// FuzzForm checks that for any schema and any typed text the answer fits the field, and
// nothing panics.
func FuzzForm(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string","enum":["x"],"enumNames":["X"]}}}`, "x")
	f.Add(`{"properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]},"default":["x"]}}}`, "1,x")
	f.Add(`{"properties":{"a":{"type":"number","minimum":1e308}}}`, "1e400")
	f.Add(`{"properties":{"a":{"type":"string","pattern":"^(a+)+$","format":"uri"}}}`, "http://[")
	f.Fuzz(func(t *testing.T, schema, typed string) {
		form, err := Parse(json.RawMessage(schema))
		if err != nil {
			return
		}
		values := map[string]json.RawMessage{}
		for i := range form.Fields {
			field := &form.Fields[i]
			_, _ = field.Expects(), field.Label()
			value, err := field.Read(typed)
			if err != nil {
				continue
			}
			if err := field.Check(value); err != nil {
				t.Errorf("%s does not fit: %v", value, err)
			}
			_ = field.Show(value)
			values[field.Name] = value
		}
		if content := form.Encode(values); !json.Valid(content) {
			t.Errorf("content %s", content)
		}
	})
}

func TestParams(t *testing.T) {
	schema := `{"$ref":"#/$defs/root","$defs":{"root":{"type":"object","required":["a","list","deep"],"properties":{
		"b":{"type":"integer"},"given":{"type":"string"},"a":{"type":"string","description":"first"},"list":{"type":"array","items":{"$ref":"#/$defs/n"}},
		"deep":{"type":"object","properties":{"x":{"type":"string"}}},"any":{},"lists":{"type":"array","items":{"type":"array"}},"loop":{"$ref":"#/properties/loop"}}},"n":{"type":"number","maximum":3}}}`
	needed, more := Params(json.RawMessage(schema), json.RawMessage(`{"given":null}`))
	kinds := func(f *Form) (out []string) {
		for _, field := range f.Fields {
			out = append(out, fmt.Sprintf("%s %s %t", field.Name, field.Kind, field.Required))
		}
		return out
	}
	if diff := cmp.Diff([]string{"a text true", "list list true", "deep json true"}, kinds(needed)); diff != "" {
		t.Errorf("needed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b integer false", "any text false", "lists json false", "loop text false"}, kinds(more)); diff != "" {
		t.Errorf("more (-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ field, typed, want, err string }{
		{"list", "1, 2.50,", "[1,2.50]", ""}, {"list", "[9]", "[9]", ""}, {"list", "4", "", "at most 3"}, {"list", ",", "", "[] is the empty list"},
		{"deep", `{"x":1}`, `{"x":1}`, ""}, {"deep", "x", "", "not JSON"}, {"deep", `{"x":1,"x":2}`, "", "not JSON"},
	} {
		field := &needed.Fields[slices.IndexFunc(needed.Fields, func(f Field) bool { return f.Name == tt.field })]
		got, err := field.Read(tt.typed)
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || tt.err == "" && (err != nil || string(got) != tt.want) {
			t.Errorf("%s: %q: got %s, %v", tt.field, tt.typed, got, err)
		}
	}
	for _, broken := range []string{"", "{", "[]", `{"properties":7}`} {
		if needed, more := Params(json.RawMessage(broken), nil); len(needed.Fields)+len(more.Fields) > 0 {
			t.Errorf("%q has fields", broken)
		}
	}
}
