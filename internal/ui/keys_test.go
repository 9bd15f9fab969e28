package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typedKeys decodes everything that was typed, as if nothing followed.
func typedKeys(typed string) []Key {
	var out []Key
	for rest := []byte(typed); len(rest) > 0; {
		key, n := decodeKey(rest, true)
		if n == 0 {
			break
		}
		out = append(out, key)
		rest = rest[n:]
	}
	return out
}

func TestDecodeKey(t *testing.T) {
	for typed, want := range map[string][]Key{
		"aé日":                       {{Text: "a"}, {Text: "é"}, {Text: "日"}},
		"\r\n":                      {{Code: KeyEnter}, {Code: KeyEnter}},
		"\x1b":                      {{Code: KeyEscape}},
		"\x1b\x1b":                  {{Code: KeyEscape}, {Code: KeyEscape}},
		"\x1b[A\x1bOB\x1b[6~\x1b[H": {{Code: KeyUp}, {Code: KeyDown}, {Code: KeyPageDown}, {Code: KeyHome}},
		"\x1b[1;5Cx":                {{Code: KeyOther}, {Text: "x"}},
		"\x1bx":                     {{Code: KeyOther}},
		"\x1b[200~a\nb\x1b[201~c":   {{Text: "a b"}, {Text: "c"}},
		"\x1b[200~a\x1b[Ab":         nil, // incomplete
		"\x0e\x10\x17\x15\x7f\x03":  {{Code: KeyDown}, {Code: KeyUp}, {Code: KeyDeleteWord}, {Code: KeyDeleteLine}, {Code: KeyBackspace}, {Code: KeyInterrupt}},
		"\xff\xc3":                  {{Code: KeyOther}, {Code: KeyOther}},
		"\x1b[\x01":                 {{Code: KeyOther}, {Code: KeyHome}},
	} {
		if diff := cmp.Diff(want, typedKeys(typed)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
	for _, part := range []string{"\x1b", "\x1b[", "\x1b[1", "\xe6\x97", pasteStart + "a"} {
		if key, n := decodeKey([]byte(part), false); n != 0 {
			t.Errorf("%q is decoded as %+v of %d bytes although it is incomplete", part, key, n)
		}
	}
}

func FuzzDecodeKey(f *testing.F) {
	f.Add([]byte("\x1b[200~x\x1b[201~"), true)
	f.Add([]byte("\x1b[1;5A"), false)
	f.Fuzz(func(t *testing.T, typed []byte, final bool) {
		if len(typed) == 0 {
			return
		}
		key, n := decodeKey(typed, final)
		if n < 0 || n > len(typed) || final && n == 0 && !isPaste(typed) {
			t.Errorf("%q: %d bytes", typed, n)
		}
		for _, r := range key.Text {
			if r < ' ' {
				t.Errorf("%q: a control character in %q", typed, key.Text)
			}
		}
	})
}
