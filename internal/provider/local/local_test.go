package local

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

func parse(t *testing.T, text string) *jsonx.Value {
	t.Helper()
	v, err := jsonx.Parse([]byte(text), jsonx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFit(t *testing.T) {
	for _, tt := range []struct{ name, target, property, want string }{
		{"an open pattern", LlamaCPP, `{"type":"string","pattern":"\\S"}`, `{"type":"string","description":"(matching the pattern \\S)"}`},
		{"a plain pattern", LlamaCPP, `{"type":"string","pattern":"^[a-z]{2,8}$"}`, `{"type":"string","pattern":"^[a-z]{2,8}$"}`},
		{"a class", LlamaCPP, `{"type":"string","pattern":"^\\d{4}-\\d{2}$"}`, `{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}$"}`},
		{"a large bound", LlamaCPP, `{"type":"string","description":"A text.","minLength":1,"maxLength":65536}`, `{"type":"string","description":"A text. (at most 65536 characters)","minLength":1}`},
		{"bounds of a list in a list", LlamaCPP, `{"type":"array","maxItems":50,"items":{"type":"string","maxLength":100}}`, `{"type":"array","maxItems":50,"items":{"type":"string","description":"(at most 100 characters)"}}`},
		{"a bound that fits", LlamaCPP, `{"type":"array","maxItems":50,"items":{"type":"string","maxLength":20}}`, `{"type":"array","maxItems":50,"items":{"type":"string","maxLength":20}}`},
		{"an integer of many digits", LlamaCPP, `{"type":"integer","minimum":0,"maximum":9007199254740991}`, `{"type":"integer","minimum":0}`},
		{"a number", LlamaCPP, `{"type":"number","maximum":0.5}`, `{"type":"number","maximum":0.5}`},
		{"anything", LlamaCPP, `true`, `{"type":["string","number","boolean","object","array","null"]}`},
		{"only a description", LlamaCPP, `{"description":"x"}`, `{"description":"x","type":["string","number","boolean","object","array","null"]}`},
		{"other properties of any kind", LlamaCPP, `{"type":"object","additionalProperties":{}}`, `{"type":"object","additionalProperties":true}`},
		{"what is required together", LlamaCPP, `{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"a type for all alternatives", LlamaCPP, `{"type":"string","anyOf":[{"maxLength":3},{"enum":["long"]}]}`, `{"type":"string","anyOf":[{"type":"string","maxLength":3},{"enum":["long"]}]}`},
		{"a reference", LlamaCPP, `{"$ref":"#/$defs/a~1b"}`, `{"type":"string","minLength":1}`},
		{"a reference into nothing", LlamaCPP, `{"$ref":"#/$defs/none"}`, `{"type":["string","number","boolean","object","array","null"]}`},
		{"allOf", LlamaCPP, `{"description":"d","allOf":[{"$ref":"#/$defs/a~1b"}]}`, `{"description":"d","type":"string","minLength":1}`},
		{"a recursive one", VLLM, `{"$ref":"#/$defs/tree"}`, `{"type":"object","properties":{"next":{"type":"object","description":"(of the same form as the value that contains it)"}}}`},
		{"keywords", VLLM, `{"type":"integer","multipleOf":5}`, `{"type":"integer","description":"(a multiple of 5)"}`},
		{"a length beside a pattern", VLLM, `{"type":"string","pattern":"^a+$","maxLength":9}`, `{"type":"string","pattern":"^a+$","description":"(at most 9 characters)"}`},
		{"an unknown format", VLLM, `{"type":"string","format":"uri-ish"}`, `{"type":"string","description":"(in the format uri-ish)"}`},
		{"lookahead", VLLM, `{"type":"string","pattern":"^(?!x).+$"}`, `{"type":"string","description":"(matching the pattern ^(?!x).+$)"}`},
		{"equal items", VLLM, `{"type":"array","items":{"type":"string"},"uniqueItems":true}`, `{"type":"array","items":{"type":"string"},"description":"(no two items are equal)"}`},
		{"what its type lacks", Ollama, `{"type":"string","description":"When.","format":"date","default":"x","pattern":"^a"}`, `{"type":"string","description":"When. (in the format date; default x; matching the pattern ^a)"}`},
		{"below items everything passes", Ollama, `{"type":"array","items":{"type":"string","format":"date"}}`, `{"type":"array","items":{"type":"string","format":"date"}}`},
		{"one value", Ollama, `{"const":5}`, `{"enum":[5]}`},
		{"alternatives", Ollama, `{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		{"required inside", Ollama, `{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}`, `{"type":"object","properties":{"b":{"type":"string"}},"description":"(required: b)"}`},
		{"anything", Ollama, `true`, `{}`},
	} {
		root := parse(t, `{"type":"object","properties":{"p":`+tt.property+`},"$defs":{"a/b":{"type":"string","minLength":1},`+
			`"tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/tree"}}}}}`)
		got, _ := Fit(root, tt.target)
		if diff := cmp.Diff(`{"type":"object","properties":{"p":`+tt.want+`}}`, literal(got)); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", tt.target, tt.name, diff)
		}
	}
}

// A property that no value fits cannot be given.
func TestFitNever(t *testing.T) {
	got, changes := Fit(parse(t, `{"type":"object","properties":{"a":false,"b":{"type":"string"}}}`), LlamaCPP)
	if literal(got) != `{"type":"object","properties":{"b":{"type":"string"}}}` || len(changes) != 1 {
		t.Errorf("got %s, %q", literal(got), changes)
	}
}

// servers returns the tools of published servers and hand-made difficult ones.
func servers(t *testing.T) map[string]*jsonx.Value {
	t.Helper()
	files, err := filepath.Glob("../../../testdata/servers/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	out := map[string]*jsonx.Value{}
	for _, file := range append(files, "../../../testdata/providers/nasty.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range parse(t, string(data)).Get("tools").Items {
			if s := tool.Get("inputSchema"); s != nil {
				out[filepath.Base(file)+" "+tool.Get("name").Text()] = s
			}
		}
	}
	return out
}

// The schemas of published servers have nothing left that loses a request or is misread, and are
// the same when they are fitted again.
func TestFitServers(t *testing.T) {
	refused := map[string][]string{
		LlamaCPP: {"$ref", "allOf", "$defs"},
		VLLM:     {"$ref", "allOf", "$defs", "multipleOf", "uniqueItems", "contains"},
	}
	for name, s := range servers(t) {
		before := literal(s)
		for _, target := range Targets() {
			got, changes := Fit(s, target)
			if literal(s) != before {
				t.Fatalf("%s: the schema itself was changed", name)
			}
			var walk func(n *jsonx.Value)
			walk = func(n *jsonx.Value) {
				for _, keyword := range refused[target] {
					if n.Get(keyword) != nil {
						t.Errorf("%s for %s has %s", name, target, keyword)
					}
				}
				if target == LlamaCPP && !isShaped(n) {
					t.Errorf("%s for %s has a schema without a rule: %s", name, target, literal(n))
				}
				if properties := n.Get("properties"); properties.Is(jsonx.Object) {
					for _, p := range properties.Members {
						walk(p.Value)
					}
				}
				if items := n.Get("items"); items.Is(jsonx.Object) {
					walk(items)
				}
			}
			walk(got)
			if strings.Contains(name, "deep") {
				continue // its recursion is cut at another depth
			}
			if again, _ := Fit(got, target); literal(again) != literal(got) {
				t.Errorf("%s for %s is fitted again, after %q:\n%s", name, target, changes, cmp.Diff(literal(got), literal(again)))
			}
		}
	}
}

// A schema whose references multiply ends soon.
func TestFitBomb(t *testing.T) {
	defs := `"d0":{"type":"string"}`
	for _, i := range strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24") {
		before := map[string]string{"1": "0", "10": "9", "20": "19"}[i]
		if before == "" {
			before = i[:len(i)-1] + string(i[len(i)-1]-1)
		}
		defs += `,"d` + i + `":{"type":"object","properties":{"a":{"$ref":"#/$defs/d` + before + `"},"b":{"$ref":"#/$defs/d` + before + `"}}}`
	}
	got, _ := Fit(parse(t, `{"type":"object","properties":{"p":{"$ref":"#/$defs/d24"}},"$defs":{`+defs+`}}`), LlamaCPP)
	if n := len(literal(got)); n > 8<<20 {
		t.Errorf("%d bytes", n)
	}
}

// So does one that merges a large schema again and again.
func TestFitMergeBomb(t *testing.T) {
	var properties, parts []string
	for i := range 8000 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		parts = append(parts, `{"$ref":"#/$defs/d"}`)
	}
	root := parse(t, `{"type":"object","properties":{"p":{"allOf":[`+strings.Join(parts, ",")+`]}},"$defs":{"d":{"type":"object","properties":{`+strings.Join(properties, ",")+`}}}}`)
	got, _ := Fit(root, VLLM)
	if n := len(got.Get("properties").Get("p").Get("properties").Members); n != 8000 {
		t.Errorf("%d properties", n)
	}
}

func TestPlainPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		`^[a-z]+$`: `^[a-z]+$`, `^\d+(\.\d+)*$`: `^[0-9]+(\.[0-9]+)*$`, `^(?:a|b)c?$`: `^(a|b)c?$`, `^[\w.-]{1,64}$`: `^[A-Za-z0-9_.-]{1,64}$`, `^a\-b$`: `^a-b$`,
		`[a-z]+`: "", `^a`: "", `^.+$`: "", `^[^/]+$`: "", `^\S+$`: "", `^(?!a)b$`: "", `^a|b$`: "", `^a**$`: "", `^()$`: "", `^(a$`: "", `^a)$`: "", `^a{1,1000}$`: "",
		`^"$`: "", `^[\]]$`: "", `^\bx$`: "", `$`: "", `^$`: "", `^é$`: "", `^*$`: "", `^(|a)$`: "", `^(a|)$`: "", `^[a$`: "", `^\$`: "",
	} {
		if got, ok := plainPattern(pattern); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", pattern, got, ok)
		}
	}
}

// A pattern that is taken accepts what it did before, and stays as it is.
func FuzzPlainPattern(f *testing.F) {
	for _, seed := range []string{`^[a-z]+$`, `^\d+(\.\d+)*$`, `^(?:a|b)c?$`, `^[\w.-]{1,64}$`, `^a\-b$`, `^(a{2}|[0-9_])$`} {
		f.Add(seed, "ab.9")
		f.Add(seed, "12.3")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		plain, ok := plainPattern(pattern)
		if !ok {
			return
		}
		is, err := regexp.Compile(pattern)
		if err != nil {
			t.Skip()
		}
		now, err := regexp.Compile(plain)
		if err != nil {
			t.Fatalf("%q became %q: %v", pattern, plain, err)
		}
		if is.MatchString(text) != now.MatchString(text) {
			t.Errorf("%q and %q differ for %q", pattern, plain, text)
		}
		if again, ok := plainPattern(plain); again != plain || !ok {
			t.Errorf("%q became %q, then %q", pattern, plain, again)
		}
	})
}

func literal(v *jsonx.Value) string { return string(v.JSON()) }
