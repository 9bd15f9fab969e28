package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeepsTheText(t *testing.T) {
	for name, text := range map[string]string{
		"key order":       `{"z":1,"a":{"y":[],"b":{}}}`,
		"big numbers":     `[9007199254740993,1.10,-0,1E+2,0.1e-7,123456789012345678901234567890]`,
		"escapes":         `{"\u0061\/":"\u00e9\n\ud83d\ude00 <>&"}`,
		"invisible":       "[\"a\u200db\u202e\"]",
		"bare values":     `[true,false,null,""]`,
		"scalar":          `"x"`,
		"many keys":       `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0,"r":0}`,
		"nested in order": `[[[1],[2]],{"a":[{"b":1},{"c":2}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			var p Parser
			n, err := p.Parse([]byte(" \n\t\r"+text+" "), 10)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, string(n.AppendTo(nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{a:1}`, `[1,]`, `[1 2]`, `{"a" 1}`, `"`, `"\x"`,
		`"\u12g4"`, `"\u12`, "\"\x01\"", `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `tru`, `nul`, `NaN`, `1 2`, `{} x`,
		"\uFEFF{}", `1e400`, `'a'`, `[1e999999999]`,
	} {
		var p Parser
		if n, err := p.Parse([]byte(text), 10); err == nil {
			t.Errorf("%q was read as %s", text, n.AppendTo(nil))
		}
	}
}

func TestParseMends(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`:              `{"a":3,"b":2}`,
		`{"a":1,"\u0061":3}`:               `{"a":3}`,
		`["\ud800x","\udc00\ud800"]`:       `["` + "\uFFFDx\",\"\uFFFD\uFFFD\"]",
		`["\ud83d\ude00"]`:                 `["\ud83d\ude00"]`,
		"[\"a\xffb\"]":                     "[\"a\uFFFDb\"]",
		`["\ufffd is meant \ud83d\ude00"]`: "[\"\uFFFD is meant \U0001F600\"]",
	} {
		var p Parser
		n, err := p.Parse([]byte(text), 10)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := string(n.AppendTo(nil)); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestParseFindsDuplicatesInLargeObjects(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range 100 {
		b.WriteString(`"k` + strings.Repeat("x", i) + `":0,`)
	}
	b.WriteString(`"kx":1}`)
	var p Parser
	n, err := p.Parse([]byte(b.String()), 10)
	if err != nil || !p.Duplicate || len(n.Members) != 100 || n.Get("kx").Token != "1" {
		t.Errorf("duplicate %v, %d members, kx %v, error %v", p.Duplicate, len(n.Members), n.Get("kx"), err)
	}
}

func TestParseDepth(t *testing.T) {
	var p Parser
	if _, err := p.Parse([]byte(strings.Repeat("[", 10)+strings.Repeat("]", 10)), 10); err != nil {
		t.Errorf("depth 10 of 10: %v", err)
	}
	for _, n := range []int{11, 1_000_000} {
		if _, err := p.Parse([]byte(strings.Repeat("[", n)), 10); err == nil || errors.Is(err, errSyntax) {
			t.Errorf("depth %d of 10: %v", n, err)
		}
	}
}

func TestParserIsReusable(t *testing.T) {
	var p Parser
	big := []byte(`[` + strings.Repeat(`{"a":[1,2,3],"b":{"c":"d"}},`, 500) + `0]`)
	for range 3 {
		n, err := p.Parse(big, 10)
		if err != nil || string(n.AppendTo(nil)) != string(big) {
			t.Fatalf("error %v", err)
		}
		n, err = p.Parse([]byte(`{"x":[1],"y":[2]}`), 10)
		if err != nil {
			t.Fatal(err)
		}
		n.Set("z", NewNull())
		n.Get("x").Items = append(n.Get("x").Items, NewFalse())
		if got, want := string(n.AppendTo(nil)), `{"x":[1,false],"y":[2],"z":null}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e3,"\u00e9\n",true,false,null,{}]}`, `"\ud83d"`, `[1e400]`, `{"a":1,"a":2}`, ` [ ] `, "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Parser
		n, err := p.Parse(data, 200)
		if valid := json.Valid(data); err == nil && !valid || errors.Is(err, errSyntax) && valid {
			t.Fatalf("%q: valid %v, error %v", data, valid, err)
		}
		if err != nil {
			return
		}
		out := n.AppendTo(nil)
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%q was written as %q", data, out)
		}
		if p.Duplicate || !utf8.Valid(data) || bytes.Contains(bytes.ToLower(data), []byte(`\ud`)) {
			return
		}
		var want bytes.Buffer
		if json.Compact(&want, data) != nil || want.String() != string(out) {
			t.Fatalf("%q was written as %q, want %q", data, out, want.String())
		}
	})
}
