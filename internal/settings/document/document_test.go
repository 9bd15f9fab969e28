package document

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readDoc(t *testing.T, name, text string) (*Document, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	doc, problems := Read(path)
	var told []string
	for _, p := range problems {
		told = append(told, strings.TrimPrefix(p.String(), path))
	}
	return doc, told
}

func TestDocumentRecordsPositions(t *testing.T) {
	yaml, _ := readDoc(t, "p.yaml", "id: x\ntools:\n  - name: a\n    a/b: 1\n  - {name: b}\n")
	json, _ := readDoc(t, "p.json", "{\"id\": \"x\", // why\n \"tools\": [\n  {\"name\": \"a\",\n   \"a/b\": 1},\n  {\"name\": \"b\"}]}")
	for pointer, want := range map[string][2]string{
		"":                   {"1:1", "1:1"},
		"/id":                {"1:1", "1:2"},
		"/tools/0/a~1b":      {"4:5", "4:4"},
		"/tools/1":           {"5:5", "5:3"},
		"/tools/1/name":      {"5:6", "5:4"},
		"/tools/1/none":      {"5:5", "5:3"},
		"/tools/7/none":      {"2:1", "2:2"},
		"/tools/-1":          {"2:1", "2:2"},
		"/tools/0/name/deep": {"3:5", "3:4"},
	} {
		for i, doc := range []*Document{yaml, json} {
			p := doc.Problem(pointer, "wrong", "fix it")
			if got := strings.TrimPrefix(p.String(), doc.File+":"); got != want[i]+": wrong (fix it)" {
				t.Errorf("%s: %q is at %q, want %s", filepath.Base(doc.File), pointer, got, want[i])
			}
		}
	}
	if got := string(json.JSON()); got != `{"id":"x","tools":[{"name":"a","a/b":1},{"name":"b"}]}` {
		t.Errorf("JSON: %s", got)
	}
	if yaml.Sum == json.Sum || len(yaml.Sum) != 64 {
		t.Errorf("sums %q and %q", yaml.Sum, json.Sum)
	}
}

func TestMistakesInDocuments(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"syntax":                     {"p.yaml", "a: [1,\nb: }", ":"},
		"not a map":                  {"p.json", "[1]", ":1:1: expected an object"},
		"path":                       {"p.json", `{"a": "\u00e9\"C:\users"}`, `:1:7: invalid JSON: a string has a backslash that does not begin an escape (write \\ or / `},
		"yaml path":                  {"p.yaml", "a: 1\nb: \"C:\\Users\"\n", ":2:1: invalid YAML: text in double quotes has a backslash that does not begin an escape (put "},
		"yaml path of another drive": {"p.yaml", "b: \"C:\\dev\"\n", ":1:1: invalid YAML: text in double quotes has a backslash that does not begin an escape (put "},
		"line":                       {"p.json", "{\"a\": \"C:\\\\x\n\"}", ":1:7: invalid JSON: invalid literal"},
		"anchor":                     {"p.yaml", "a: 1\nb: *none\n", ":2:1: invalid YAML: unknown anchor 'none' referenced"},
		"duplicate":                  {"p.yaml", "a: 1\na: 2\n", `:2:1: duplicate key "a", first on line 1`},
		"tag":                        {"p.yaml", "a: !!python/object x\n", ":1:"},
		"big":                        {"p.yaml", strings.Repeat("# x\n", 1<<19), ": is larger than 1 MiB"},
		"deep":                       {"p.json", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			_, told := readDoc(t, c.file, c.text)
			if len(told) == 0 || !strings.Contains(told[0], c.want) {
				t.Errorf("got %q, want %q", told, c.want)
			}
		})
	}
	if doc, problems := Read(filepath.Join(t.TempDir(), "none.yaml")); doc != nil || len(problems) != 1 || problems[0].Message != "no such file" {
		t.Errorf("a missing file: %v, %v", doc, problems)
	}
	if doc, problems := Read(t.TempDir()); doc != nil || len(problems) != 1 {
		t.Errorf("a folder: %v, %v", doc, problems)
	}
}

func TestJSONNumbers(t *testing.T) {
	for s, want := range map[string]bool{"0": true, "-0": true, "10": true, "1.5": true, "1e3": true, "1E+3": true, "1.5e-3": true,
		"": false, "-": false, "01": false, "+1": false, ".5": false, "1.": false, "1e": false, "0x1": false, "1_0": false, ".inf": false, "1e3x": false} {
		if got := IsNumber(s); got != want {
			t.Errorf("IsNumber(%q) = %v", s, got)
		}
	}
}

func TestVisibleEscapesInvisibleCharacters(t *testing.T) {
	if got := Visible("a\xffb\x1b\u202eé"); got != `a\xffb\x1b\u202eé` {
		t.Errorf("invisible characters became %q", got)
	}
}

func TestJSONNamesMayBeUnquoted(t *testing.T) {
	const text = "{\n  // a comment, {with: signs}\n  tools: {allow: [\"a: b\", /* c: */ \"d\",],},\n  \"x\": true, $y_1 : null, z: {\"deep\": 5 ,last: \"\\\"q: \"},\n}"
	doc, problems := Parse("s.json", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got, want := string(doc.JSON()), `{"tools":{"allow":["a: b","d"]},"x":true,"$y_1":null,"z":{"deep":5,"last":"\"q: "}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	last := doc.Root.Get("z").Members[1]
	if last.Line != 4 || last.Col != 42 || last.Value.Col != 48 {
		t.Errorf("last is at %d:%d, its value at column %d", last.Line, last.Col, last.Value.Col)
	}
	for _, bad := range []string{"{a b: 1}", "{a: b}", "[a: 1]", "{a", "{a:", "{a-b: 1}"} {
		if _, problems := Parse("s.json", []byte(bad)); len(problems) == 0 {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// A file that ends in .json5 is read as JSON: comments, unquoted names and strings in
// single quotes, none of which YAML reads alike.
func TestJSON5(t *testing.T) {
	const text = "{ // it's a \"comment\"\n  a: 'it\\'s \"so\" \\\\', 'b': ['{', \"'\"], last: 1 }"
	doc, problems := Parse("s.json5", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got, want := string(doc.JSON()), `{"a":"it's \"so\" \\","b":["{","'"],"last":1}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if last := doc.Root.Members[2]; last.Line != 2 || int(last.Value.Col) != strings.Index(strings.Split(text, "\n")[1], "1")+1 {
		t.Errorf("the last value is at %d:%d", last.Line, last.Value.Col)
	}
	for _, bad := range []string{"{a: 'b}", "{a: 'b\\", "{a: '\\", "'", "a: b"} {
		if _, problems := Parse("s.json5", []byte(bad)); len(problems) == 0 {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestForeignParsesAFileOnce(t *testing.T) {
	var docs Foreign
	first, _ := docs.Parse("a.json", []byte(`{"x": 1}`))
	if again, _ := docs.Parse("a.json", []byte(`{"x": 1}`)); again != first {
		t.Error("the same content was parsed again")
	}
	if changed, _ := docs.Parse("a.json", []byte(`{"x": 2}`)); changed.Root.Get("x").Token != "2" {
		t.Error("the changed content was not parsed")
	}
	if other, _ := docs.Parse("b.json", []byte(`{"x": 1}`)); other == first {
		t.Error("another file has the document of the first one")
	}
}
