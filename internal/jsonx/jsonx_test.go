package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func strict(limit int) Options {
	return Options{Depth: limit, Strict: true, Number: func(token string) string {
		if len(token) > 20 {
			return "a long number"
		}
		return ""
	}}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		text, message, pointer string
		offset                 int
	}{
		{`{"a":[1,-2.5e+3,true,false,null,"\u00e9"]}`, "", "", 0},
		{` 1 `, "", "", 0},
		{``, "unexpected end, at line 1, column 1", "", 0},
		{`{"a":  `, "unexpected end, at line 1, column 6", "/a", 5},
		{`{"a":"x`, "unexpected end, at line 1, column 6", "/a", 5},
		{`{"a" 1}`, "unexpected character '1' after a key, at line 1, column 6", "/a", 5},
		{`{"a":1 2}`, "unexpected character '2' after a member of an object, at line 1, column 8", "", 7},
		{`{"a":1,}`, "unexpected character '}' instead of a key, at line 1, column 8", "", 7},
		{`{1:2}`, "unexpected character '1', at line 1, column 2", "", 1},
		{`[1,,2]`, "unexpected character ',' instead of a value, at line 1, column 4", "/1", 3},
		{`[1 2]`, "unexpected character '2' after an element of an array, at line 1, column 4", "", 3},
		{`[01]`, "unexpected character '1' after an element of an array, at line 1, column 3", "", 2},
		{`[-x]`, "unexpected character 'x' in a number, at line 1, column 2", "/0", 1},
		{`[1.]`, "unexpected character ']' after the decimal point of a number, at line 1, column 2", "/0", 1},
		{`[1ex]`, "unexpected character 'x' in the exponent of a number, at line 1, column 2", "/0", 1},
		{`[tru]`, "unexpected word \"tru\", at line 1, column 2", "/0", 1},
		{`["\x"]`, "unexpected character 'x' in an escape of a string, at line 1, column 2", "/0", 1},
		{`["\u12x4"]`, `unexpected character 'x' in a \u escape of a string, at line 1, column 2`, "/0", 1},
		{"[\"\n\"]", `unexpected character '\n' in a string, at line 1, column 2`, "/0", 1},
		{"\v1", `unexpected character '\v' instead of a value, at line 1, column 1`, "", 0},
		{"[\"\x1f\"]", `unexpected character '\x1f' in a string, at line 1, column 2`, "/0", 1},
		{`['a']`, `unexpected character '\'' instead of a value, at line 1, column 2`, "/0", 1},
		{`{"a""b"}`, `unexpected character '"' after a key, at line 1, column 5`, "/a", 4},
		{`{} x`, "text after the JSON value, at line 1, column 4", "", 3},
		{`{"a/b":{"c~":1,"c~":2}}`, `duplicate key "c~", at line 1, column 20`, "/a~1b/c~0", 19},
		{"\"\xff\"", "invalid UTF-8 at byte 1", "", 1},
		{`{"a":[[[]]]}`, "nested deeper than 3 levels", "/a/0/0", 8},
		{`[123456789012345678901]`, "a long number", "/0", 22},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			err := Check([]byte(tt.text), strict(3))
			if err == nil {
				err = &SyntaxError{}
			}
			want := &SyntaxError{Message: tt.message, Pointer: tt.pointer, Offset: tt.offset}
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// at returns the value at a JSON pointer; nil if there is none.
func at(v *Value, pointer string) *Value {
	for token := range Tokens(pointer) {
		v = v.Step(token)
	}
	return v
}

func TestParseKeepsOrderAndText(t *testing.T) {
	text := `{"z":1.50,"a":{"é":"\u00e9\/"},"n":12345678901234567890,"e":[],"o":{}}`
	v, err := Parse([]byte(" "+text+"\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(v.AppendTo(nil)); got != text {
		t.Errorf("got %s", got)
	}
	if got := at(v, "/a/é").Text(); got != "é/" {
		t.Errorf("text %q", got)
	}
}

func TestParseMends(t *testing.T) {
	p := Parser{}
	v, err := p.Parse([]byte("{\"a\":1,\"b\":2,\"a\":\"\\ud800\\u0078\xff\"}"))
	if err != nil || !p.Duplicate {
		t.Fatalf("%v, duplicate %v", err, p.Duplicate)
	}
	if got, want := string(v.AppendTo(nil)), "{\"a\":\"\uFFFDx\uFFFD\",\"b\":2}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := p.Parse([]byte(`{"a":1}`)); err != nil || p.Duplicate {
		t.Errorf("%v, duplicate %v", err, p.Duplicate)
	}
	var syntax *SyntaxError
	if _, err := p.Parse([]byte(`{`)); !errors.As(err, &syntax) || syntax.Message != "unexpected end, at line 1, column 2" {
		t.Errorf("%v", err)
	}
}

// TestValuesGrowIndependently adds members to values that are adjacent in the
// parser's memory, which must not overwrite their neighbors.
func TestValuesGrowIndependently(t *testing.T) {
	v, err := Parse([]byte(`[{"a":1},{"b":2},[3],[4]]`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	v.Items[0].Set("new", NewNull())
	v.Items[2].Items = append(v.Items[2].Items, NewNull())
	if got, want := string(v.AppendTo(nil)), `[{"a":1,"new":null},{"b":2},[3,null],[4]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	members := v.Items[0].Members
	v.Items[0].Remove("a")
	if members[0].Name != "a" || members[1].Name != "new" {
		t.Errorf("a loop over the old members sees changed members: %v", members)
	}
}

func TestManyKeys(t *testing.T) {
	var b strings.Builder
	for i := range 3 * maxScan {
		b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	text := "{" + b.String() + `"kx":2}`
	nested, err := Parse([]byte(`{"k":0,"in":`+text+`}`), Options{})
	if err != nil || nested.Get("k").Token != "0" || nested.Get("in").Get("k").Token != "1" || nested.Get("in").Get("kx").Token != "2" {
		t.Errorf("%v", err)
	}
	if err := Check([]byte(text), Options{Strict: true}); err == nil || !strings.HasPrefix(err.Message, `duplicate key "kx", at line 1`) {
		t.Errorf("%v", err)
	}
	v, err := Parse([]byte(text), Options{})
	if err != nil || len(v.Members) != 3*maxScan || v.Get("kx").Token != "2" || v.Members[1].Name != "kx" {
		t.Errorf("%v", err)
	}
}

func TestDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := Check(nested(maxDepth), Options{}); err != nil {
		t.Error(err)
	}
	if err := Check(nested(maxDepth+1), Options{}); err == nil || err.Message != "nested deeper than 10000 levels" {
		t.Errorf("%v", err)
	}
	if err := Check([]byte(`[1,{"a":2}]`), Options{Values: 4}); err != nil {
		t.Error(err)
	}
	if err := Check([]byte(`[1,{"a":2}]`), Options{Values: 3}); err == nil || err.Message != "more than 3 values" {
		t.Errorf("four values: %v", err)
	}
	if err := Check(nested(4), Options{Depth: 3}); err == nil || err.Message != "nested deeper than 3 levels" {
		t.Errorf("%v", err)
	}
}

func TestPointers(t *testing.T) {
	v := NewObject(NewMember("a/b", NewArray(NewString("x"))), NewMember("~1", NewString("y")), NewMember("", NewString("z")))
	for pointer, want := range map[string]string{
		"/a~1b/0": "x", "/" + EscapeToken("a/b") + "/0": "x", "/~01": "y", "/" + EscapeToken("~1"): "y", "/": "z", "/a~1b/1": "", "/a~1b/x": "", "/none/deeper": "",
	} {
		if got := at(v, pointer).Text(); got != want {
			t.Errorf("%q leads to %q, want %q", pointer, got, want)
		}
	}
	if at(v, "") != v {
		t.Error("the empty pointer must denote the whole document")
	}
}

func TestChanges(t *testing.T) {
	v := NewObject(NewMember("b", NewString("<&>")))
	v.Set("c", NewArray(NewBool(true), NewBool(false), NewNull()))
	v.Prepend("a", NewObject())
	copied := v.Clone()
	v.Set("b", NewString("\"\n"))
	v.Rename("c", "d/e")
	v.Get("d/e").Items[0] = NewString("new")
	if !v.Remove("a") || v.Remove("a") {
		t.Error("Remove must report true once for a")
	}
	if got, want := string(v.AppendTo(nil)), `{"b":"\"\n","d/e":["new",false,null]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(copied.AppendTo(nil)), `{"a":{},"b":"<&>","c":[true,false,null]}`; got != want {
		t.Errorf("the copy is %s, want %s", got, want)
	}
	if !v.Get("b").IsText("\"\n") || at(v, "/d~1e/0").Text() != "new" || at(v, "/d~1e/3") != nil || at(v, "/b/x") != nil {
		t.Error("Get does not return the value that was set")
	}
	var none *Value
	if none.Get("a") != nil || none.Text() != "" || none.Is(Null) || !none.Is(None) {
		t.Error("methods of a missing value must return zero values")
	}
	if data, err := json.Marshal(map[string]any{"v": copied.Get("c")}); err != nil || string(data) != `{"v":[true,false,null]}` {
		t.Errorf("%s, %v", data, err)
	}
}

func TestRaw(t *testing.T) {
	raw := json.RawMessage(` { "a" : [1, {"x":"]"} ,"\""] , "\u0062":"\ud83d\ude00", "a":null } `)
	var keys []string
	for k := range Members(raw) {
		keys = append(keys, k)
	}
	if diff := cmp.Diff([]string{"a", "b", "a"}, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Get(raw, "a"); !IsNull(got) {
		t.Errorf("got %s, want the last value", got)
	}
	if s, ok := Text(Get(raw, "b")); !ok || s != "😀" {
		t.Errorf("%q", s)
	}
	for _, list := range []string{`[]`, ` [ ] `} {
		if got, ok := Elements(json.RawMessage(list)); !ok || len(got) != 0 {
			t.Errorf("%s: %s", list, got)
		}
	}
	got, ok := Elements(json.RawMessage(`[1, {"x":"]"} ,"\"]"]`))
	if !ok || len(got) != 3 || string(got[1]) != `{"x":"]"}` || string(got[2]) != `"\"]"` {
		t.Errorf("%s", got)
	}
	if _, ok := Elements(json.RawMessage(`{}`)); ok {
		t.Error("an object is accepted as an array")
	}
	for text, want := range map[string]Kind{"": None, " {": Object, "[": Array, `"`: String, "t": True, "f": False, "n": Null, "-1": Number, "0": Number, "x": None} {
		if got := KindOf(json.RawMessage(text)); got != want {
			t.Errorf("%q: kind %d, want %d", text, got, want)
		}
	}
}

func TestFlattenKeepsShallowValues(t *testing.T) {
	for in, want := range map[string]string{
		`[[[1]],2]`:            `[[null],2]`,
		`[{"a":{"b":[1]}},3]`:  `[{"a":null},3]`,
		`["[[[[","\"[[{",[1]]`: `["[[[[","\"[[{",[1]]`,
		`[[["]\"]"]],{}]`:      `[[null],{}]`,
		`[[[1`:                 `[[null`,
		`["x`:                  `["x`,
	} {
		if got := string(Flatten([]byte(in), 2)); got != want {
			t.Errorf("Flatten(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestDepthOfText(t *testing.T) {
	for text, want := range map[string]int{`1`: 0, `[]`: 1, `{"a":[{"b":"[[["}],"c":{}}`: 3, `["\"["]`: 1, `["x`: 1} {
		if got := Depth(json.RawMessage(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	l := NewLines([]byte("ab\né€x\n"))
	for _, tt := range [][3]int{{0, 1, 1}, {1, 1, 2}, {3, 2, 1}, {5, 2, 2}, {8, 2, 3}, {0, 1, 1}, {10, 3, 1}, {99, 3, 1}, {-1, 1, 1}} {
		if line, column := l.At(tt[0]); line != tt[1] || column != tt[2] {
			t.Errorf("offset %d: line %d, column %d, want %d, %d", tt[0], line, column, tt[1], tt[2])
		}
	}
}

func TestMarshal(t *testing.T) {
	if got, err := Marshal(map[string]string{"a": "<b> & c"}); err != nil || string(got) != `{"a":"<b> & c"}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := Marshal(func() {}); err == nil {
		t.Error("a function was encoded")
	}
	if v, err := Decode([]byte(`[1.50]`)); err != nil || v.([]any)[0] != json.Number("1.50") {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := Decode([]byte(`1 2`)); err == nil {
		t.Error("text after the value is accepted")
	}
}

// FuzzJSON compares this package with encoding/json: both must accept the same texts
// and decode the same values.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"b":[1,2.50,-0e+1],"a":{"x":"\ud83d\ude00\n\/","y":null},"a":true}`, `"\ud800\u2028<&>"`, "\"\xff\"", `[01]`, `[1,]`, `{"a":1 }x`, ` [ { } , [ ] ] `, `1e400`, `"`, `{`,
		``, `{}`, `[]`, ` [ 1 , [ ] , { } ] `, `{"b":1,"a":{"d":[1,2],"c":null}}`, `{"a":1,"a":2,"A":3}`, `{"\u0061":1,"a":2}`,
		`"\/\u00e9\ud83d\ude00\ud800x"`, "\"\xff\u2028\"", `12345678901234567890.10e+5`, `{"a":1} trailing`, `{"a":`, `nonsense`, `{"a" : true , "b" : -0}`,
		`"<&>"`, `"\u007f` + "\x7f" + `"`, `{"":{"":{}}}`, `[{"b":"\\","a":"\""}]`,
		`{"a":[{"b":1},{"b":{"c":1,"b":2}}],"x":{"\ud800":1,"\ufffd":2}}`, "{\"\xff\":1,\"\xfe\":2}", `{"a":{},"b":[{"a":"\"a\":"}],"a\"":1}`, `[{"a":1},{"a":1,"a":1}]`,
		"a\"\\\b\f\n\r\t\x00\x7f\u2028\u2029\uFFFD\xff<&>😀",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if want, err := Marshal(string(data)); err != nil || Quote(string(data)) != string(want) {
			t.Errorf("quoted %s, want %s (%v)", Quote(string(data)), want, err)
		}
		if got, want := Canonical(data), decodedAndEncoded(data); got != want {
			t.Errorf("canonical %q, want %q", got, want)
		}
		v, err := Parse(data, Options{})
		if valid := json.Valid(data); valid != (err == nil) {
			t.Fatalf("valid: %v; %v", valid, err)
		}
		if refused := Check(data, Options{}); (refused == nil) != (err == nil) || refused != nil && *refused != *(err.(*SyntaxError)) {
			t.Fatalf("Check says %v, Parse %v", refused, err)
		}
		p := Parser{}
		_, _ = p.Parse(data)
		if _, twice := DuplicateKey(data); twice != (err == nil && p.Duplicate) {
			t.Fatalf("duplicate key: %v", twice)
		}
		if err != nil { // reading invalid JSON must not panic
			Elements(data)
			Get(data, "a")
			Text(data)
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil || !bytes.Equal(AppendCompact(nil, data), compact.Bytes()) {
			t.Errorf("compact %q, want %q (%v)", AppendCompact(nil, data), compact.Bytes(), err)
		}
		want, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"tree": v.AppendTo(nil), "canonical": []byte(Canonical(data)), "raw": rawCopy(nil, data)} {
			if got, err := Decode(text); err != nil || !cmp.Equal(want, got) {
				t.Errorf("%s: %v\n%s", name, err, cmp.Diff(want, got))
			}
		}
		if tree, whole := Canonical(v.AppendTo(nil)), Canonical(data); tree != whole {
			t.Errorf("canonical form of the tree %s, of the text %s", tree, whole)
		}
	})
}

// rawCopy writes a value with the results of Members, Elements and Text.
func rawCopy(dst []byte, raw json.RawMessage) []byte {
	raw = bytes.TrimSpace(raw)
	switch KindOf(raw) {
	case Object:
		dst = append(dst, '{')
		for k, v := range Members(raw) {
			if len(dst) > 0 && dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = rawCopy(append(AppendQuote(dst, k), ':'), v)
		}
		return append(dst, '}')
	case Array:
		dst = append(dst, '[')
		list, _ := Elements(raw)
		for i, v := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = rawCopy(dst, v)
		}
		return append(dst, ']')
	case String:
		s, _ := Text(raw)
		return AppendQuote(dst, s)
	}
	return append(dst, raw...)
}

func BenchmarkParse(b *testing.B) {
	data := []byte("[" + strings.Repeat(`{"type":"object","properties":{"path":{"type":"string","description":"A path \"quoted\""},"limit":{"type":"integer","minimum":1}},"required":["path"]},`, 1000) + "1]")
	b.Run("tree", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		p := Parser{}
		for b.Loop() {
			if _, err := p.Parse(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := Check(data, Options{Strict: true, Depth: 100}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			dec := json.NewDecoder(bytes.NewReader(data))
			dec.UseNumber()
			for {
				if _, err := dec.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
