package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestDecodeParams(t *testing.T) {
	tests := []struct{ name, in, want, pointer, err string }{
		{name: "empty", in: "", want: "{}"},
		{name: "blank", in: " \n", want: "{}"},
		{name: "kept byte for byte", in: `{"b":1.50,"a":12345678901234567891}`, want: `{"b":1.50,"a":12345678901234567891}`},
		{name: "byte order mark", in: "\uFEFF{}", want: "{}"},
		{name: "__proto__ is an ordinary key", in: `{"__proto__":1}`, want: `{"__proto__":1}`},
		{name: "array", in: `[1]`, err: "must be a JSON object, not an array"},
		{name: "an empty object of PHP", in: ` [ ] `, want: "{}"},
		{name: "string", in: `"x"`, err: "not a string"},
		{name: "an object in a string", in: `"{\"a\":1}"`, want: `{"a":1}`},
		{name: "null", in: ` null `, want: `{}`},
		{name: "broken", in: "{\n \"a\": }", err: "line 2"},
		{name: "cut", in: `{"a":`, err: "unexpected end"},
		{name: "NaN", in: `{"a":NaN}`, err: "unexpected character 'N'"},
		{name: "duplicate", in: `{"x":{"a":1,"a":2}}`, pointer: "/x/a", err: `duplicate key "a"`},
		{name: "trailing", in: `{} {}`, err: "text after the JSON value"},
		{name: "trailing junk", in: `{} x`, err: "text after the JSON value"},
		{name: "invalid UTF-8", in: "{\"a\":\"\xff\"}", err: "invalid UTF-8 at byte 6"},
		{name: "half of a surrogate pair", in: `{"a":"x\\\ud83d"}`, err: `\ud83d at byte 9 is half of a surrogate pair`},
		{name: "the other half", in: `{"a":"\ude00\ud83d"}`, err: `\ude00 at byte 6`},
		{name: "a surrogate pair", in: `{"a":"\ud83d\ude00 \\ud83d"}`, want: `{"a":"\ud83d\ude00 \\ud83d"}`},
		{name: "raw NUL", in: "{\"a\":\"\x00\"}", err: "unexpected character"},
		{name: "depth bomb", in: strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), err: "nested deeper than 100"},
		{name: "only the beginning was read", in: strings.Repeat(" ", MaxParamsBytes+1), err: "larger than the limit of 16777216 bytes"},
		{name: "huge exponent", in: `{"a":[1e10000000]}`, pointer: "/a/0", err: "exponent over 1000"},
		{name: "huge negative exponent", in: `{"a":1e-99999999999999999999}`, pointer: "/a", err: "exponent over 1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeParams("t", []byte(tt.in))
			if tt.err == "" {
				if err != nil || string(got) != tt.want {
					t.Errorf("got %s, %v", got, err)
				}
				return
			}
			var args *ArgsError
			if !errors.As(err, &args) || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("err = %v, want %q in it", err, tt.err)
			}
			if tt.pointer != "" && args.Violations[0].Pointer != tt.pointer {
				t.Errorf("pointer %q, want %q", args.Violations[0].Pointer, tt.pointer)
			}
		})
	}
}

// FuzzDecodeParams checks that encoding/json decodes everything that DecodeParams
// accepts as an object.
func FuzzDecodeParams(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,{"b":null}]}`, `{"a":1,"a":2}`, `{"\u0061":1}`, "{\"a\":\"\xff\"}", `[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := DecodeParams("t", data)
		if err != nil {
			return
		}
		var m map[string]any
		if err := json.Unmarshal(got, &m); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Errorf("%q accepted, but: %v", data, err)
		}
	})
}

func TestFingerprintIgnoresKeyOrderAndRegisteredName(t *testing.T) {
	a, b := mcpTool("s", "t"), mcpTool("s", "t")
	a.InputSchema, b.InputSchema = json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{ "b":2, "a":1 }`)
	b.Name = "s__t"
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("fingerprints differ")
	}
	changes := map[string]func(*Tool){
		"source":      func(t *Tool) { t.Source = "mcp:r" },
		"name":        func(t *Tool) { t.ServerTool = "u" },
		"description": func(t *Tool) { t.Description = "x" },
		"schema":      func(t *Tool) { t.InputSchema = json.RawMessage(`{"a":2,"b":2}`) },
		"output":      func(t *Tool) { t.OutputSchema = json.RawMessage(`{}`) },
		"annotations": func(t *Tool) { t.Annotations = json.RawMessage(`{}`) },
		"behind":      func(t *Tool) { t.Identity = json.RawMessage(`{"command":"evil"}`) },
	}
	for name, change := range changes {
		c := a
		change(&c)
		if c.Fingerprint() == a.Fingerprint() {
			t.Errorf("a changed %s does not change the fingerprint", name)
		}
	}
}
