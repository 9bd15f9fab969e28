package file

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestEdit(t *testing.T) {
	type one = map[string]any
	tests := []struct {
		name, before, after string
		edit                one
	}{
		{"once", "a b c\n", "a X c\n", one{"old_string": "b", "new_string": "X"}},
		{"a missing final line break stays missing", "a b", "a X", one{"old_string": "b", "new_string": "X"}},
		{"as often as expected", "b b\nb\n", "X X\nX\n", one{"old_string": "b", "new_string": "X", "expected_replacements": 3}},
		{"an expected number may be written 2.0", "b b\n", "X X\n", one{"old_string": "b", "new_string": "X", "expected_replacements": json.RawMessage("2.0")}},
		{"new_string is literal", "a\n", "$& $1 \\1 ${x} $$\n", one{"old_string": "a", "new_string": "$& $1 \\1 ${x} $$"}},
		{"old_string is literal", "a.c abc\n", "X abc\n", one{"old_string": "a.c", "new_string": "X"}},
		{"to nothing", "abc\n", "", one{"old_string": "abc\n", "new_string": ""}},
		{"CRLF: a line break in either string is the file's", "one\r\ntwo\r\nthree\r\n", "one\r\n2\r\n2b\r\nthree\r\n", one{"old_string": "two\nthree", "new_string": "2\n2b\nthree"}},
		{"CRLF: new_string may have its own", "one\r\ntwo\r\n", "one\r\n2\r\n3\r\n", one{"old_string": "two", "new_string": "2\r\n3"}},
		{"CRLF: with a return in old_string everything is literal", "one\r\ntwo\r\n", "one\ntwo\r\n", one{"old_string": "one\r\n", "new_string": "one\n"}},
		{"mixed line breaks elsewhere stay", "a\nb\r\nc\r\nd\n", "a\nb\r\nX\r\nY\r\nd\n", one{"old_string": "b\nc\n", "new_string": "b\nX\nY\n"}},
		{"LF: returns in both strings are not the file's", "one\ntwo\nthree\n", "one\n2\n2b\nthree\n", one{"old_string": "one\r\ntwo\r\n", "new_string": "one\r\n2\r\n2b\r\n"}},
		{"LF: a return in new_string stays", "a\nb\n", "a\r\nb\n", one{"old_string": "a\n", "new_string": "a\r\n"}},
		{"byte order mark", textfile.BOM + "a\n", textfile.BOM + "b\n", one{"old_string": "a", "new_string": "b"}},
		{"UTF-16 little endian", "\xff\xfea\x00\r\x00\n\x00", "\xff\xfe\xac\x20\r\x00\n\x00", one{"old_string": "a", "new_string": "€"}},
		{"UTF-16 big endian", "\xfe\xff\x00a\x00b", "\xfe\xff\x00a\xd8\x3d\xde\x00", one{"old_string": "b", "new_string": "😀"}},
		{"bytes that are not UTF-8", "ünd \n\xff\xe9\n", "日本 \n\xff\xe9\n", one{"old_string": "ünd", "new_string": "日本"}},
		{"Windows-1252", "caf\xe9 \x80\x81\n", "th\xe9 \x80\x81\n", one{"old_string": "café", "new_string": "thé"}},
		{"GB18030", "\xc4\xe3\xba\xc3 a\n", "\xc4\xe3 b\n", one{"old_string": "你好 a", "new_string": "你 b"}},
		{"Shift_JIS", "\x83t\x83@\x83C\x83\x8b = 1\n", "\x83t\x83@\x83C\x83\x8b = 2\n", one{"old_string": "ファイル = 1", "new_string": "ファイル = 2"}},
		{"characters of several bytes", "日本語\n", "日x語\n", one{"old_string": "本", "new_string": "x"}},
		{"several, each applied to the result of the previous one", "a b\n", "c d\n", one{"edits": []one{
			{"old_string": "a", "new_string": "b"}, {"old_string": "b b", "new_string": "c d"},
		}}},
		{"an empty file is filled", "", "new", one{"old_string": "", "new_string": "new"}},
		{"composed for decomposed", "cafe\u0301 noir\n", "cafe\u0301 au lait\n", one{"old_string": "caf\u00e9 noir", "new_string": "caf\u00e9 au lait"}},
		{"decomposed for composed", "a caf\u00e9\n", "a bar\n", one{"old_string": "cafe\u0301", "new_string": "bar"}},
		{"plain for typographic quotes, which stay", "it\u2019s a \u201ccat\u201d here\n", "it\u2019s a \u201ccow\u201d here\n", one{"old_string": "it's a \"cat\" here", "new_string": "it's a \"cow\" here"}},
		{"a space for one that does not break", "10\u00a0km\r\nx\r\n", "10\u00a0km\r\ny\r\n", one{"old_string": "10 km\nx", "new_string": "10 km\ny"}},
		{"a hyphen for a dash", "a \u2014 b\n", "a, b\n", one{"old_string": "a - b", "new_string": "a, b"}},
		{"no mark in the middle", "x\ufeffy = 1\n", "z = 1\n", one{"old_string": "xy", "new_string": "z"}},
		{"what is exact is preferred", "it\u2019s it's\n", "it\u2019s X\n", one{"old_string": "it's", "new_string": "X"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, dir := place(t, map[string]string{"f.txt": tt.before})
			tt.edit["file_path"] = "f.txt"
			p := tooltest.JSON(t, tt.edit)
			pre, err := find(t, opts, "edit").Preview(t.Context(), tooltest.Call(p))
			if err != nil {
				t.Fatal(err)
			}
			if r := run(t, opts, "edit", p); r.IsError {
				t.Fatal(r.Text())
			} else if diff := cmp.Diff(pre.Diff, r.Display.Diff.FileDiff); diff != "" {
				t.Errorf("the preview differs from the result: %s", diff)
			}
			if diff := cmp.Diff(tt.after, tooltest.TextIn(t, filepath.Join(dir, "f.txt"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEditCreates(t *testing.T) {
	opts, dir := place(t, nil)
	r := run(t, opts, "edit", `{"file_path":"deep/er/f.txt","old_string":"","new_string":"exactly this"}`)
	if got := tooltest.TextIn(t, filepath.Join(dir, "deep/er/f.txt")); got != "exactly this" {
		t.Errorf("wrote %q", got)
	}
	want := "--- /dev/null\n+++ b/deep/er/f.txt\n@@ -0,0 +1 @@\n+exactly this\n\\ No newline at end of file\n"
	if diff := cmp.Diff(want, r.Display.Diff.FileDiff); diff != "" {
		t.Error(diff)
	}
	if want := `Created "deep/er/f.txt" (1 line, +1 -0).`; r.Text() != want {
		t.Errorf("said %q, want %q", r.Text(), want)
	}
}

// An edit that does not fit reports why and where, and leaves the file unchanged.
// Errors that are not in the params are failures of the run.
func TestEditRefusals(t *testing.T) {
	execution := []string{"binary", "half of a UTF-16 character", "a character that the encoding lacks", "a directory", "a file as a folder"}
	const file = "package main\n\nfunc main() {\n\tfmt.Println(\"hello\")\n\tfmt.Println(\"hello\")\n}\n"
	tests := []struct {
		name, params string
		want         []string
	}{
		{"too often", `{"file_path":"f.go","old_string":"hello","new_string":"x"}`,
			[]string{"found 2 times (lines 4, 5), but expected_replacements is 1", "expected_replacements to 2"}},
		{"too seldom", `{"file_path":"f.go","old_string":"package","new_string":"x","expected_replacements":2}`,
			[]string{"found 1 time (line 1), but expected_replacements is 2"}},
		{"different white space", `{"file_path":"f.go","old_string":"func main() {\n    fmt.Println(\"hello\")","new_string":"x"}`,
			[]string{"not found", "Line 4 differs only in white space", `"\tfmt.Println(\"hello\")"`, `"    fmt.Println(\"hello\")"`}},
		{"a typo", `{"file_path":"f.go","old_string":"func mian() {","new_string":"x"}`,
			[]string{"The nearest line is 3", `"func main() {"`}},
		{"one of several lines", `{"file_path":"f.go","old_string":"package main\n\nfunc start() {\n","new_string":"x"}`,
			[]string{"The nearest line is 3", `"func main() {"`, `"func start() {"`}},
		{"two that look the same", `{"file_path":"quotes.txt","old_string":"it's","new_string":"x"}`,
			[]string{"text that looks the same was, 2 times (lines 1, 2)", `"it\u2019s" where old_string has "it's"`}},
		{"look-alikes and a typo", `{"file_path":"quotes.txt","old_string":"that's one\nthat's twoo","new_string":"x"}`,
			[]string{`the file has "that\u2019s one" where old_string has "that's one"`}},
		{"nothing similar", `{"file_path":"f.go","old_string":"zzzzzzzzzz","new_string":"x"}`,
			[]string{"No line of the file is similar"}},
		{"a line break at the end that the file lacks", `{"file_path":"end.txt","old_string":"a\nend\n","new_string":"x"}`, []string{"Line 2 is the last one and has no line break"}},
		{"escaped twice", `{"file_path":"f.go","old_string":"package main\\n\\nfunc main","new_string":"x"}`,
			[]string{"escaped twice: it has backslashes in front of characters that the file has alone; without that it is at line 1"}},
		{"quotes escaped twice", `{"file_path":"f.go","old_string":"main() {\n\tfmt.Println(\\\"hello\\\")","new_string":"x"}`, []string{"escaped twice", "at line 3"}},
		{"line numbers of cat -n", `{"file_path":"f.go","old_string":"     3\tfunc main() {\n     4\t\tfmt.Println(\"hello\")","new_string":"x"}`,
			[]string{"old_string has line numbers, which the file does not have; without that it is at line 3"}},
		{"line numbers with arrows", `{"file_path":"f.go","old_string":"3→func main() {","new_string":"x"}`, []string{"has line numbers", "at line 3"}},
		{"line numbers of grep -n", `{"file_path":"f.go","old_string":"3:func main() {","new_string":"x"}`, []string{"has line numbers"}},
		{"line numbers in a column", `{"file_path":"f.go","old_string":" 3 | func main() {\n 4 | \tfmt","new_string":"x"}`, []string{"has line numbers"}},
		{"the second of two, so that the first is not made either", `{"file_path":"f.go","edits":[{"old_string":"package","new_string":"x"},{"old_string":"nowhere to be seen","new_string":""}]}`,
			[]string{"edit 2 of 2", "not found", "nothing was changed"}},
		{"edits that undo each other", `{"file_path":"f.go","edits":[{"old_string":"package","new_string":"x"},{"old_string":"x","new_string":"package"}]}`,
			[]string{"the edits have no effect"}},
		{"empty old_string, file with text", `{"file_path":"f.go","old_string":"","new_string":"x"}`,
			[]string{"old_string is empty", "write_file"}},
		{"no such file", `{"file_path":"g.go","old_string":"a","new_string":"x"}`,
			[]string{`"g.go" does not exist`, `did you mean "f.go"?`}},
		{"binary", `{"file_path":"b.bin","old_string":"a","new_string":"x"}`, []string{`"b.bin" is not a text file`}},
		{"half of a UTF-16 character", `{"file_path":"half.txt","old_string":"a","new_string":"x"}`, []string{"cannot be written back"}},
		{"a character that the encoding lacks", `{"file_path":"latin.txt","old_string":"caf","new_string":"→"}`,
			[]string{`"latin.txt" is Windows-1252 text, which cannot encode '→' (U+2192); leave it out`}},
		{"a directory", `{"file_path":"sub","old_string":"a","new_string":"x"}`, []string{"is a directory"}},
		{"a file as a folder", `{"file_path":"f.go/x","old_string":"","new_string":"x"}`, []string{"a part of the path is a file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, dir := place(t, map[string]string{
				"f.go": file, "b.bin": "a\x00b", "latin.txt": "caf\xe9\n", "half.txt": "\xff\xfea\x00\x00\xd8", "sub/x": "", "end.txt": "a\nend",
				"quotes.txt": "it\u2019s\nit\u2019s\nthat\u2019s one\nthat\u2019s two\n",
			})
			r := run(t, opts, "edit", tt.params)
			category := registry.ErrorValidation
			if slices.Contains(execution, tt.name) {
				category = registry.ErrorExecution
			}
			if !r.IsError || r.ErrorCategory != category {
				t.Fatalf("no %s error, but %q: %s", category, r.ErrorCategory, r.Text())
			}
			for _, want := range tt.want {
				if !strings.Contains(r.Text(), want) {
					t.Errorf("%q does not say %q", r.Text(), want)
				}
			}
			if got := tooltest.TextIn(t, filepath.Join(dir, "f.go")); got != file {
				t.Errorf("the file was changed: %q", got)
			}
			if _, err := find(t, opts, "edit").Preview(t.Context(), tooltest.Call(tt.params)); err == nil {
				t.Error("a change that cannot be made is previewed")
			}
		})
	}
}

func TestEditChecksParams(t *testing.T) {
	opts, _ := place(t, map[string]string{"f": "a\n"})
	tests := []struct{ params, pointer, message string }{
		{`{"file_path":"f"}`, "/old_string", "required"},
		{`{"file_path":"f","old_string":"a"}`, "/new_string", "required"},
		{`{"file_path":"f","old_string":"a","new_string":"a"}`, "/new_string", "the same"},
		{`{"file_path":"f","old_string":"a","new_string":"b","edits":[{"old_string":"a","new_string":"b"}]}`, "/edits", "not both"},
		{`{"file_path":"f","edits":[{"old_string":"a","new_string":"b"},{"old_string":"","new_string":"b"}]}`, "/edits/1/old_string", "empty"},
		{`{"file_path":"../f","old_string":"a","new_string":"b"}`, "/file_path", "outside the workspace"},
		{`{"file_path":"f/","old_string":"a","new_string":"b"}`, "/file_path", "folder"},
		{`{"file_path":".","old_string":"a","new_string":"b"}`, "/file_path", "folder"},
	}
	for _, tt := range tests {
		err := find(t, opts, "edit").Check(t.Context(), tooltest.Call(tt.params))
		bad, ok := errors.AsType[*registry.ArgsError](err)
		if !ok {
			t.Errorf("%s: %v", tt.params, err)
			continue
		}
		if v := bad.Violations[0]; v.Pointer != tt.pointer || !strings.Contains(v.Message, tt.message) {
			t.Errorf("%s: %s %q, want %s %q", tt.params, v.Pointer, v.Message, tt.pointer, tt.message)
		}
	}
}

// The user's revision of a change is what is written.
func TestEditRevised(t *testing.T) {
	tests := []struct {
		name, before, params, content, after string
	}{
		{"plain", "a b\n", `{"file_path":"f","old_string":"b","new_string":"c"}`, "my own\ntext", "my own\ntext"},
		{"emptied", "a b\n", `{"file_path":"f","old_string":"b","new_string":"c"}`, "", ""},
		{"CRLF and a mark", textfile.BOM + "a\r\nb\n", `{"file_path":"f","old_string":"b","new_string":"c"}`, "a\r\nB\nC\r\n", textfile.BOM + "a\r\nB\nC\r\n"},
		{"lone returns", "a\rb\n", `{"file_path":"f","old_string":"b","new_string":"c"}`, "a\r\nb\r", "a\r\nb\r"},
		{"a list", "a b\n", `{"file_path":"f","edits":[{"old_string":"b","new_string":"c"}]}`, "z\n", "z\n"},
		{"UTF-16", "\xff\xfea\x00", `{"file_path":"f","old_string":"a","new_string":"c"}`, "<&>", "\xff\xfe<\x00&\x00>\x00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts, dir := place(t, map[string]string{"f": tt.before})
			tool := find(t, opts, "edit")
			revised, err := tool.Revise(t.Context(), tooltest.Call(tt.params), tt.content)
			if err != nil {
				t.Fatal(err)
			}
			if err := tool.Check(t.Context(), revised); err != nil {
				t.Fatalf("the revised call is not valid: %v", err)
			}
			pre, err := tool.Preview(t.Context(), revised)
			if err != nil || pre.NewContent != tt.content {
				t.Errorf("preview %q, %v", pre.NewContent, err)
			}
			if r, err := tool.Run(t.Context(), revised); err != nil || r.IsError {
				t.Fatal(err, r.Text())
			}
			if diff := cmp.Diff(tt.after, tooltest.TextIn(t, filepath.Join(dir, "f"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEditRevisedToCurrentContent(t *testing.T) {
	opts, _ := place(t, map[string]string{"f": "a\n"})
	_, err := find(t, opts, "edit").Revise(t.Context(), tooltest.Call(`{"file_path":"f","old_string":"a","new_string":"b"}`), "a\n")
	if err == nil || !strings.Contains(err.Error(), "nothing to change") {
		t.Errorf("got %v", err)
	}
}

// TestManyReplacements would take forever if each replacement read the whole
// text.
func TestManyReplacements(t *testing.T) {
	const many = 500_000
	count := tool.Integer(many)
	got, err := replacement{Old: "a\n", New: "b\n", Expected: &count}.apply(strings.Repeat("a\r\n", many))
	if err != nil || got != strings.Repeat("b\r\n", many) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestEditOfInvalidUTF8CannotBeRevised(t *testing.T) {
	opts, _ := place(t, map[string]string{"f": "é\n\xff\n"})
	_, err := find(t, opts, "edit").Revise(t.Context(), tooltest.Call(`{"file_path":"f","old_string":"é","new_string":"b"}`), "c\n\xff\n")
	if err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("got %v", err)
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("a\u0344\u0344\u0344\u0344", "\u0308\u0301\u0308", "z") // marks whose form is longer
	f.Add("one\r\ntwo\r\n", "two\n", "2\n")
	f.Add("a\nb\r\n\r", "b\n", "$&")
	f.Add("\xffbroken", "bro", "x\r\n")
	f.Fuzz(func(t *testing.T, text, old, new string) {
		got, err := replacement{Old: old, New: new}.apply(text)
		if err != nil {
			if err.Error() == "" || !strings.Contains(err.Error(), "old_string") {
				t.Errorf("no reason given: %v", err)
			}
			return
		}
		// Apart from line breaks, it is a plain replacement.
		plain := func(s string) string { return strings.ReplaceAll(s, "\r", "") }
		if !strings.Contains(old, "\r") && strings.Count(plain(text), plain(old)) == 1 &&
			plain(got) != strings.Replace(plain(text), plain(old), plain(new), 1) {
			t.Errorf("%q: %q for %q gave %q", text, new, old, got)
		}
	})
}

func BenchmarkEdit(b *testing.B) {
	text := strings.Repeat("\tsome line of code in a long file\r\n", 20_000) + "the place\r\n"
	r := replacement{Old: "the place\n", New: "another\nplace\n"}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := r.apply(text); err != nil {
			b.Fatal(err)
		}
	}
}
