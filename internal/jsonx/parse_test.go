package jsonx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseKeepsText(t *testing.T) {
	for name, text := range map[string]string{
		"key order":       `{"z":1,"a":{"y":[],"b":{}}}`,
		"big numbers":     `[9007199254740993,1.10,-0,1E+2,0.1e-7,123456789012345678901234567890]`,
		"escapes":         `{"a":"\u00e9\n\ud83d\ude00 <>&"}`,
		"invisible":       "[\"a\u200db\u202e\"]",
		"bare values":     `[true,false,null,""]`,
		"scalar":          `"x"`,
		"many keys":       `{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0,"r":0}`,
		"nested in order": `[[[1],[2]],{"a":[{"b":1},{"c":2}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			var p Parser
			n, err := p.Parse([]byte(" \n\t\r" + text + " "))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text, string(n.AppendTo(nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNamesAreWrittenWithFewEscapes(t *testing.T) {
	n, err := Parse([]byte(`{"\u0061\/":1,"\"\\\u0001é":2,"\u2028":3}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(n.JSON()), `{"a/":1,"\"\\\u0001é":2,"\u2028":3}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		``, ` `, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{a:1}`, `[1,]`, `[1 2]`, `{"a" 1}`, `"`, `"\x"`,
		`"\u12g4"`, `"\u12`, "\"\x01\"", `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `tru`, `nul`, `NaN`, `1 2`, `{} x`,
		"\uFEFF{}", `'a'`,
	} {
		var p Parser
		if n, err := p.Parse([]byte(text)); err == nil {
			t.Errorf("%q was read as %s", text, n.AppendTo(nil))
		}
	}
}

func TestParseMendsStrings(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`:              `{"a":3,"b":2}`,
		`{"a":1,"\u0061":3}`:               `{"a":3}`,
		`["\ud800x","\udc00\ud800"]`:       `["` + "\uFFFDx\",\"\uFFFD\uFFFD\"]",
		`["\ud83d\ude00"]`:                 `["\ud83d\ude00"]`,
		"[\"a\xffb\"]":                     "[\"a\uFFFDb\"]",
		`["\ufffd is meant \ud83d\ude00"]`: "[\"\uFFFD is meant \U0001F600\"]",
	} {
		var p Parser
		n, err := p.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := string(n.AppendTo(nil)); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestParserIsReusable(t *testing.T) {
	var p Parser
	big := []byte(`[` + strings.Repeat(`{"a":[1,2,3],"b":{"c":"d"}},`, 500) + `0]`)
	for range 3 {
		n, err := p.Parse(big)
		if err != nil || string(n.AppendTo(nil)) != string(big) {
			t.Fatalf("error %v", err)
		}
		n, err = p.Parse([]byte(`{"x":[1],"y":[2]}`))
		if err != nil {
			t.Fatal(err)
		}
		n.Set("z", NewNull())
		n.Get("x").Items = append(n.Get("x").Items, NewBool(false))
		if got, want := string(n.AppendTo(nil)), `{"x":[1,false],"y":[2],"z":null}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
