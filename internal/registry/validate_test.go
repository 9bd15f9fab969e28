package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateReturnsAllViolationsSorted(t *testing.T) {
	schema := `{"type":"object","required":["b","a"],"additionalProperties":false,
		"properties":{"a":{"type":"string"},"b":{},"n":{"type":"integer","minimum":3},"e":{"enum":["x","y"]},"file_path":{"type":"string"},"d e":{"items":{"type":"number"}}},
		"patternProperties":{"^q":{"minLength":3},"q$":{"pattern":"^x"}}}`
	doc := `{"zz":1,"q":"q","n":1,"e":"z","filepath":"f","d e":[1,"two"]}`
	want := []Violation{
		{Pointer: "", Keyword: "required", Message: `missing property "b"`},
		{Pointer: "", Keyword: "required", Message: `missing property "a"`},
		{Pointer: "/d e/1", Keyword: "type", Message: "expected number, but got string", Expected: "number"},
		{Pointer: "/e", Keyword: "enum", Message: `value must be one of "x", "y"`, Expected: `["x","y"]`},
		{Pointer: "/filepath", Keyword: "additionalProperties", Message: `unknown property "filepath", did you mean "file_path"?`,
			Expected: "one of a, b, d e, e, file_path, n"},
		{Pointer: "/n", Keyword: "minimum", Message: "must be >= 3 but found 1", Expected: "3"},
		{Pointer: "/q", Keyword: "minLength", Message: "length must be >= 3, but got 1", Expected: "3"},
		{Pointer: "/q", Keyword: "pattern", Message: "does not match pattern '^x'", Expected: "^x"},
		{Pointer: "/zz", Keyword: "additionalProperties", Message: `unknown property "zz"`, Expected: "one of a, b, d e, e, file_path, n"},
	}
	for range 20 { // the library's own order is random
		got, err := NewValidator(json.RawMessage(schema)).Validate(t.Context(), json.RawMessage(doc))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// If a constant distinguishes alternatives, only the mistakes in the selected one
// are violations.
func TestAlternativesWithConstant(t *testing.T) {
	const schema = `{"properties":{"p":{"oneOf":[
		{"properties":{"do":{"const":"add"},"title":{"type":"string"}},"required":["do","title"],"additionalProperties":false},
		{"$ref":"#/$defs/drop"}]},
		"q":{"anyOf":[{"properties":{"mode":{"enum":["x"]}}},{"required":["id"]}]},
		"r":{"anyOf":[{"properties":{"a":{}},"required":["a"],"additionalProperties":false},{"properties":{"b":{}},"required":["b"],"additionalProperties":false}]},
		"s":{"contains":{"type":"string"}}},
		"$defs":{"drop":{"properties":{"do":{"$ref":"#/$defs/word"},"id":{"type":"integer"}},"required":["do","id"],"additionalProperties":false},"word":{"enum":["drop","remove"]}}}`
	v := NewValidator(json.RawMessage(schema))
	for doc, want := range map[string][]string{
		`{"p":{"do":"drop","title":"x"}}`: {`/p missing property "id"`, `/p/title unknown property "title"`},
		`{"p":{"do":"add","title":5}}`:    {`/p/title expected string, but got number`},
		`{"p":{"do":"ad"}}`:               {`/p/do value must be one of "add", "drop", "remove"`},
		`{"p":{"id":1}}`:                  {`/p missing property "do", whose value must be one of "add", "drop", "remove"`},
		`{"r":{"other":1}}`:               {`/r missing property "a"`, `/r missing property "b"`, `/r/other unknown property "other"`},
		`{"s":[]}`:                        {`/s at least one item must match the schema of contains`},
		`{"q":{"mode":"z"}}`:              {`/q missing property "id"`, `/q/mode value must be "x"`},
	} {
		found, err := v.Validate(t.Context(), json.RawMessage(doc))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Pointer+" "+f.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", doc, diff)
		}
	}
}

func TestNullable(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"a":{"type":"STRING","enum":["x"],"nullable":true},"b":{"type":["string"],"nullable":true},"nullable":{"type":"string"}}}`))
	if found, err := v.Validate(t.Context(), json.RawMessage(`{"a":null,"b":null,"nullable":"x"}`)); err != nil || found != nil {
		t.Errorf("null: %v, %v", found, err)
	}
	if found, err := v.Validate(t.Context(), json.RawMessage(`{"nullable":null}`)); err != nil || len(found) != 1 {
		t.Errorf("a param named nullable: %v, %v", found, err)
	}
}

// A union of constants is one violation that lists them all; for other unions there
// is a violation for each branch.
func TestUnionsOfConstants(t *testing.T) {
	const defs = `,"$defs":{"c":{"const":"c"},"b":{"const":"b","type":"string"}}`
	for property, want := range map[string][]string{
		`{"anyOf":[{"const":"a"},{"$ref":"#/$defs/b"},{"enum":[1.50,"c"]},{"type":"null"},{"const":"a"}]}`: {`/p anyOf value must be one of "a", "b", 1.50, "c", null`},
		`{"oneOf":[{"type":"string","const":"a","description":"x"},{"type":"string","const":"b"}]}`:        {`/p oneOf value must be one of "a", "b"`},
		`{"type":"array","items":{"oneOf":[{"const":"a"},{"const":"b"}]}}`:                                 {`/p type expected array, but got string`},
		`{"anyOf":[{"const":"a"},{"type":"integer"}]}`:                                                     {`/p const value must be "a"`, `/p type expected integer, but got string`},
		`{"anyOf":[{"anyOf":[{"const":"a"},{"const":"b"}]},{"type":"integer"}]}`:                           {`/p anyOf value must be one of "a", "b"`, `/p type expected integer, but got string`},
	} {
		v := NewValidator(json.RawMessage(`{"properties":{"p":` + property + `}` + defs + `}`))
		found, err := v.Validate(t.Context(), json.RawMessage(`{"p":"zz"}`))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Pointer+" "+f.Keyword+" "+f.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n%s", property, diff)
		}
	}
	twice := NewValidator(json.RawMessage(`{"oneOf":[{"enum":["a"]},{"const":"a"}]}`))
	if found, err := twice.Validate(t.Context(), json.RawMessage(`"a"`)); err != nil || len(found) != 1 || strings.Contains(found[0].Message, "one of") {
		t.Errorf("a value that two branches allow: %+v, %v", found, err)
	}
}

// In a union, only the alternatives for values of the given type are reported, if there are any.
func TestUnionsOfTypes(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"anyOf":[{"$ref":"#/$defs/o"},{"type":"array","items":{"type":"string"}},
		{"anyOf":[{"type":"string","pattern":"^\\d$"},{"type":["null","boolean"]}]}],"$defs":{"o":{"type":"object","required":["a"]}}}`))
	for doc, want := range map[string][]string{
		`{"b":1}`: {` missing property "a"`},
		`[1]`:     {`/0 expected string, but got number`},
		`"x"`:     {` does not match pattern '^\d$'`},
		`5`:       {` expected object or array or string or null or boolean, but got number`},
	} {
		found, err := v.Validate(t.Context(), json.RawMessage(doc))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.Pointer+" "+f.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", doc, diff)
		}
	}
}

// Params of other agents' tools get a message with our names.
func TestNamesOfOtherAgents(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"command":{},"background":{},"file_path":{},"expected_replacements":{},"pattern":{}},"additionalProperties":false}`))
	for given, ours := range map[string]string{"replace_all": "expected_replacements", "run_in_background": "background", "path": "file_path", "cmd": "command", "query": "pattern", "comand": "command"} {
		got, err := v.Validate(t.Context(), json.RawMessage(`{"`+given+`":1}`))
		if want := fmt.Sprintf("unknown property %q, did you mean %q?", given, ours); err != nil || len(got) != 1 || got[0].Message != want {
			t.Errorf("%+v, %v; want %s", got, err, want)
		}
	}
}

// The keyword of a violation is one of the schema, not the place in its value.
func TestKeywords(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"dependentRequired":{"a":["b"],"dependentRequired":["c","d"]},"properties":{"dependentRequired":{"required":["x"]}}}`))
	for doc, want := range map[string]string{`{"a":1}`: "dependentRequired", `{"dependentRequired":{"x":1},"c":1}`: "dependentRequired", `{"dependentRequired":{},"c":1,"d":1}`: "required"} {
		got, err := v.Validate(t.Context(), json.RawMessage(doc))
		if err != nil || len(got) != 1 || got[0].Keyword != want {
			t.Errorf("%s: %+v, %v; want %s", doc, got, err, want)
		}
	}
}

// Values in messages are JSON.
func TestMessagesHaveJSON(t *testing.T) {
	for _, c := range [][3]string{
		{`{"enum":[1,2,null,"auto"]}`, `"high"`, `value must be one of 1, 2, null, "auto"`},
		{`{"enum":[null]}`, `1`, `value must be null`},
		{`{"enum":[{"a":null},[true]]}`, `1`, `value must be one of {"a":null}, [true]`},
		{`{"const":null}`, `1`, `value must be null`},
		{`{"const":1.50}`, `1`, `value must be 1.50`},
		{`{"const":{"a":[1]}}`, `1`, `value must be {"a":[1]}`},
		{`{"maximum":1000000}`, `12345678901234567891`, `must be <= 1000000 but found 12345678901234567891`},
		{`{"exclusiveMinimum":0}`, `-0.5`, `must be > 0 but found -0.5`},
		{`{"multipleOf":0.01}`, `1.005`, `1.005 is not a multiple of 0.01`},
		{`{"not":{"type":"null"}}`, `null`, `the schema forbids such a value`},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, `at least 2 items must match the schema of contains`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `at most 1 items may match the schema of contains`},
		{`{"anyOf":[{"const":1},{"const":null}]}`, `2`, `value must be one of 1, null`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":0,"exclusiveMinimum":true}`, `0`, `must be > 0 but found 0`},
	} {
		got, err := NewValidator(json.RawMessage(`{"properties":{"p":`+c[0]+`}}`)).Validate(t.Context(), json.RawMessage(`{"p":`+c[1]+`}`))
		if err != nil || len(got) != 1 || got[0].Message != c[2] {
			t.Errorf("%s against %s: %+v, %v; want %s", c[1], c[0], got, err, c[2])
		}
	}
}

func TestValidateKeepsNumbersExact(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"id":{"const":12345678901234567891}}}`))
	for doc, bad := range map[string]bool{`{"id":12345678901234567891}`: false, `{"id":12345678901234567890}`: true} {
		got, err := v.Validate(t.Context(), json.RawMessage(doc))
		if err != nil || (len(got) > 0) != bad {
			t.Errorf("%s: %v, %v", doc, got, err)
		}
	}
}

func TestHugeExponentsAreRefusedWithTheirReason(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"n":{"type":"integer","maximum":5}}}`))
	for _, n := range []string{"1e999999999", "1e-30000000"} {
		if _, err := v.Validate(t.Context(), json.RawMessage(`{"n":`+n+`}`)); err == nil || !strings.Contains(err.Error(), "number "+n+" has an exponent over 1000") {
			t.Errorf("%s: %v", n, err)
		}
	}
}

func TestFormatAnnotates(t *testing.T) {
	for _, draft := range []string{"", `"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"https://json-schema.org/draft/2020-12/schema",`} {
		v := NewValidator(json.RawMessage(`{` + draft + `"properties":{"to":{"type":"string","format":"email"}}}`))
		for doc, bad := range map[string]bool{`{"to":"nobody"}`: false, `{"to":5}`: true} {
			if got, err := v.Validate(t.Context(), json.RawMessage(doc)); err != nil || (len(got) > 0) != bad {
				t.Errorf("%s: %s: %+v, %v", draft, doc, got, err)
			}
		}
	}
}

func TestOlderDraftsWithoutSchemaKeyword(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`,
		`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`,
	} {
		if _, err := NewValidator(json.RawMessage(schema)).Compile(t.Context()); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestGeminiTypesAreUnderstood(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"type":"OBJECT","properties":{"n":{"type":"INTEGER"},"c":{"const":{"type":"STRING"}},"default":{"type":"STRING"}}}`))
	for doc, bad := range map[string]int{`{"n":1,"c":{"type":"STRING"}}`: 0, `{"n":"x","c":{"type":"string"},"default":1}`: 3} {
		if got, err := v.Validate(t.Context(), json.RawMessage(doc)); err != nil || len(got) != bad {
			t.Errorf("%s: %v, %v", doc, got, err)
		}
	}
}

func doubling(levels int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range levels {
		fmt.Fprintf(&b, `"l%d":{"anyOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"l%d":{"type":"string"}}}`, levels)
	return b.String()
}

func TestExpensiveSchemasAreRejected(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200)
	tests := []struct{ name, schema, want string }{
		{"exponential", doubling(29), "branches"},
		{"deep", deep, "nested deeper than 100"},
		{"huge exponent", `{"multipleOf":1e10000000}`, "exponent"},
		{"over the size", `{"description":"` + strings.Repeat("x", MaxSchemaBytes) + `"}`, "but the limit is"},
		{"ill-typed", `{"type":"strin"}`, "/type"},
		{"not a schema", `"foo"`, "must be an object or a boolean"},
		{"null", `null`, "must be an object or a boolean"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewValidator(json.RawMessage(tt.schema)).Compile(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// Nothing outside a schema is read, and a reference that leads nowhere is not checked.
func TestReferencesThatLeadNowhere(t *testing.T) {
	for name, schema := range map[string]string{
		"file":     `{"properties":{"a":{"$ref":"file:///etc/passwd"},"b":{"type":"string"}}}`,
		"relative": `{"properties":{"a":{"$ref":"secret.json"},"b":{"type":"string"}}}`,
		"http":     `{"properties":{"a":{"$ref":"http://127.0.0.1:1/x"},"b":{"type":"string"}}}`,
		"missing":  `{"properties":{"a":{"$ref":"#/$defs/a"},"b":{"type":"string"}}}`,
		"loop":     `{"properties":{"a":{"$ref":"#/$defs/a"},"b":{"type":"string"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`,
		"itself":   `{"properties":{"a":{"$ref":"#/properties/a"},"b":{"type":"string"}}}`,
	} {
		v := NewValidator(json.RawMessage(schema))
		if notes, err := v.Compile(t.Context()); err != nil || len(notes) != 1 {
			t.Errorf("%s: notes %q, %v", name, notes, err)
		}
		for doc, bad := range map[string]bool{`{"a":[1],"b":"x"}`: false, `{"a":1,"b":2}`: true} {
			if got, err := v.Validate(t.Context(), json.RawMessage(doc)); err != nil || (len(got) > 0) != bad {
				t.Errorf("%s: %s: %+v, %v", name, doc, got, err)
			}
		}
	}
	if _, err := NewValidator(json.RawMessage(`{"$schema":"https://example.com/s"}`)).Compile(t.Context()); err != nil {
		t.Errorf("unknown dialect: %v", err)
	}
}

func TestNestingLimitIsExact(t *testing.T) {
	for depth, ok := range map[int]bool{MaxDepth: true, MaxDepth + 1: false} {
		schema := strings.Repeat(`{"not":`, depth) + `true` + strings.Repeat(`}`, depth)
		if _, err := NewValidator(json.RawMessage(schema)).Compile(t.Context()); (err == nil) != ok {
			t.Errorf("%d deep: %v", depth, err)
		}
	}
}

func TestRecursiveSchema(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"type":"integer"}}}}}`))
	got, err := v.Validate(t.Context(), json.RawMessage(`{"v":1,"next":{"v":2,"next":{"v":"three"}}}`))
	if err != nil || len(got) != 1 || got[0].Pointer != "/next/next/v" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestUnsupportedPatternsAreRemovedAndReported(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"properties":{"a":{"pattern":"^(?=x)y"},"b":{"pattern":"^\\u0041+$"},"c":{"pattern":"^(a+)+$"},"n":{"type":"integer"}}}`))
	notes, err := v.Compile(t.Context())
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "(?=x)") {
		t.Fatalf("notes = %q, err = %v", notes, err)
	}
	doc := `{"a":"anything","b":"AAB","c":"` + strings.Repeat("a", 50_000) + `!","n":"x"}`
	got, err := v.Validate(t.Context(), json.RawMessage(doc))
	var at []string
	for _, g := range got {
		at = append(at, g.Pointer)
	}
	if d := cmp.Diff([]string{"/b", "/c", "/n"}, at); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

// A value that the tool takes is not refused because a pattern or a reference is not checked.
func TestUncheckedPartsRefuseNothing(t *testing.T) {
	for schema, c := range map[string]struct{ takes, refuses string }{
		`{"not":{"pattern":"^(?=b)"}}`: {`"a"`, ""},
		`{"oneOf":[{"type":"string","pattern":"^(?!a)"},{"type":"string","pattern":"^a"}]}`:                 {`"abc"`, `1`},
		`{"if":{"type":"string","pattern":"^(?=b)"},"then":{"maxLength":1},"type":"string"}`:                {`"abc"`, `1`},
		`{"not":{"required":["a"],"properties":{"a":{"patternProperties":{"^(?=b)":{}}}}},"type":"object"}`: {`{"a":{}}`, `1`},
		`{"not":{"$ref":"#/$defs/a"},"type":"string","$defs":{"a":{"pattern":"^(?=b)"}}}`:                   {`"a"`, `1`},
		`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"type":"object"}`:                             {`{}`, `1`},
		`{"oneOf":[{"type":"string","pattern":"^a"},{"type":"string"}]}`:                                    {`"b"`, `"a"`},
	} {
		v := NewValidator(json.RawMessage(schema))
		if got, err := v.Validate(t.Context(), json.RawMessage(c.takes)); err != nil || len(got) > 0 {
			t.Errorf("%s refuses %s: %v, %v", schema, c.takes, got, err)
		}
		if c.refuses == "" {
			continue
		}
		if got, err := v.Validate(t.Context(), json.RawMessage(c.refuses)); err != nil || len(got) == 0 {
			t.Errorf("%s takes %s: %v", schema, c.refuses, err)
		}
	}
}

// The cost of a recursive schema grows with the depth of the params, so it cannot
// be limited by looking at the schema alone. When the deadline expires, validation
// must fail.
func TestDeadlineFailsClosed(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"anyOf":[{"properties":{"x":{"$ref":"#"},"y":false}},{"properties":{"x":{"$ref":"#"},"z":false}}]}`))
	if _, err := v.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	doc := strings.Repeat(`{"x":`, 40) + `{"y":1,"z":1}` + strings.Repeat(`}`, 40)
	if _, err := v.Validate(ctx, json.RawMessage(doc)); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("err = %v", err)
	}
}

// A process with much more work than processors must not refuse valid params.
func TestTimeLimitCountsOwnTime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	over := make(chan struct{})
	var busy sync.WaitGroup
	defer busy.Wait()
	defer close(over)
	for range 25 {
		busy.Go(func() {
			for n := 0; ; n++ {
				if n%1e6 == 0 {
					select {
					case <-over:
						return
					default:
					}
				}
			}
		})
	}
	checked := func() error {
		for range 3 { // each turn of it waits for one of all others
			runtime.Gosched()
		}
		return nil
	}
	if err := withTimeLimit(t.Context(), 20*validateSlice, checked); err != nil {
		t.Error(err)
	}
}

func TestRegistryValidate(t *testing.T) {
	good, bad := mcpTool("s", "good"), mcpTool("s", "bad")
	good.InputSchema = json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"pattern":"(?=x)"}}}`)
	bad.InputSchema = json.RawMessage(`{"type":"strin"}`)
	reg := load(t, Options{}, sourcesOf(good, bad)...)
	g, _ := reg.Lookup("good")
	if one, again := reg.Validator(g), reg.Validator(g); one != again {
		t.Error("a tool has two validators")
	}
	var args *ArgsError
	if err := reg.Validate(t.Context(), g, json.RawMessage(`{}`)); !errors.As(err, &args) || args.Tool != "good" {
		t.Errorf("good: %v", err)
	}
	if hidden := reg.Hidden(); len(hidden) != 1 || hidden[0].Err == nil || !strings.Contains(hidden[0].Reason, `"/type" is not a type`) {
		t.Errorf("bad: %+v", hidden)
	}
	if d := cmp.Diff([]string{"schema_partly_checked good"}, codesOf(reg.CompileAll(t.Context()))); d != "" {
		t.Error(d)
	}
}

// What was sent stays for listings and fingerprints.
func TestToolsAreSettled(t *testing.T) {
	tools := []Tool{mcpTool("s", "as_sent"), mcpTool("s", "older"), mcpTool("s", "open"), mcpTool("s", "bad_output"), mcpTool("s", "dangling_output"), mcpTool("s", "no_object")}
	const older, dangling = `{"type":"object","properties":[]}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`
	tools[0].InputSchema = json.RawMessage(`{ "type":"object" }`)
	tools[1].InputSchema, tools[1].OutputSchema = json.RawMessage(older), json.RawMessage(older)
	tools[2].InputSchema = json.RawMessage(dangling)
	tools[3].OutputSchema = json.RawMessage(`{"type":"objekt"}`)
	tools[4].OutputSchema = json.RawMessage(dangling)
	tools[5].InputSchema = json.RawMessage(`{"type":"string"}`)
	var fingerprints []string
	for i := range tools {
		fingerprints = append(fingerprints, tools[i].Fingerprint())
	}
	reg := load(t, Options{}, sourcesOf(tools...)...)
	want := map[string][2]string{
		"as_sent": {`{ "type":"object" }`}, "older": {`{"type":"object","properties":{}}`, `{"type":"object","properties":{}}`},
		"open": {`{"type":"object","properties":{"a":{}}}`}, "bad_output": {}, "dangling_output": {},
	}
	for i, tool := range reg.Tools() {
		if got := [2]string{string(tool.InputSchema), string(tool.OutputSchema)}; got != want[tool.Name] {
			t.Errorf("%s: %q, want %q", tool.Name, got, want[tool.Name])
		}
		if sent := tool.AsSent(); string(sent.InputSchema)+string(sent.OutputSchema) != string(tools[i].AsSent().InputSchema)+string(tools[i].AsSent().OutputSchema) || tool.Fingerprint() != fingerprints[i] {
			t.Errorf("%s: what was sent is lost: %s %s", tool.Name, sent.InputSchema, sent.OutputSchema)
		}
	}
	if d := cmp.Diff([]string{"schema_partly_checked open", "schema_invalid bad_output", "schema_invalid dangling_output", "schema_invalid no_object"}, codesOf(reg.Diagnostics())); d != "" {
		t.Error(d)
	}
}

func FuzzGuardSchema(f *testing.F) {
	for _, s := range []string{`{}`, `true`, doubling(4), `{"$ref":"#/a~1b","a/b":{"pattern":"\\u00"}}`, `{"patternProperties":{"(?!x)":1}}`, `{"$ref":"#"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v := NewValidator(data)
		if _, err := v.Compile(t.Context()); err == nil && len(data) > 0 {
			if _, err := v.Validate(t.Context(), json.RawMessage(`{"a":[1,"x",{"b":null}]}`)); err != nil && strings.Contains(err.Error(), "panic") {
				t.Error(err)
			}
		}
	})
}

// A caller that is canceled while the schema is compiled must not affect other
// callers.
func TestCompileOutlivesItsCaller(t *testing.T) {
	v := NewValidator(json.RawMessage(`{"type":"string"}`))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = v.Compile(gone)
	if got, err := v.Validate(t.Context(), json.RawMessage(`"x"`)); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
}
