package text

import (
	"strings"
	"testing"
)

func TestHeadAndTail(t *testing.T) {
	for _, tt := range []struct {
		s          string
		n          int
		head, tail string
	}{
		{"hello", 9, "hello", "hello"},
		{"hello", 5, "hello", "hello"},
		{"hello", 2, "he", "lo"},
		{"hello", 0, "", ""},
		{"hello", -1, "", ""},
		{"aéz", 2, "a", "z"}, // é has two bytes
		{"aéz", 3, "aé", "éz"},
		{"世界", 5, "世", "界"},
		{"世界", 2, "", ""},
	} {
		if got := Head(tt.s, tt.n); got != tt.head {
			t.Errorf("Head(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.head)
		}
		if got := Tail([]byte(tt.s), tt.n); string(got) != tt.tail {
			t.Errorf("Tail(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.tail)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s           string
		n           int
		clip, runes string
	}{
		{"hello", 5, "hello", "hello"},
		{"hello", 4, "hell…", "hell…"},
		{"aéz", 2, "a…", "aé…"},
		{"世界", 2, "…", "世界"},
		{"", 0, "", ""},
		{"x", 0, "…", "…"},
	} {
		if got := Clip(tt.s, tt.n); got != tt.clip {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.clip)
		}
		if got := ClipRunes(tt.s, tt.n); got != tt.runes {
			t.Errorf("ClipRunes(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.runes)
		}
	}
}

func TestWholeRunes(t *testing.T) {
	for _, tt := range []struct{ s, whole, rest string }{
		{"", "", ""}, {"abc", "abc", ""}, {"aé", "aé", ""}, {"a\xc3", "a", "\xc3"}, {"a\xe4\xb8", "a", "\xe4\xb8"},
		{"a\xff", "a\xff", ""}, {"\xf0\x9f\x98", "", "\xf0\x9f\x98"},
		{"a\xf0\x9f\x98", "a", "\xf0\x9f\x98"}, {"\xe2\x82", "", "\xe2\x82"}, {"a\x80\x80\x80\x80", "a\x80\x80\x80\x80", ""},
	} {
		whole, rest := WholeRunes([]byte(tt.s))
		if string(whole) != tt.whole || string(rest) != tt.rest {
			t.Errorf("%q: %q and %q", tt.s, whole, rest)
		}
	}
}

func TestLines(t *testing.T) {
	for _, tt := range []struct{ s, first, last string }{
		{"", "", ""}, {"a", "a", "a"}, {"a\r\nb\n c \n\n", "a", "c"}, {"\nb", "", "b"},
	} {
		if got := FirstLine(tt.s); got != tt.first {
			t.Errorf("FirstLine(%q) = %q", tt.s, got)
		}
		if got := LastLine(tt.s); got != tt.last {
			t.Errorf("LastLine(%q) = %q", tt.s, got)
		}
	}
}

func TestValid(t *testing.T) {
	if got := Valid([]byte("a\xff\xfeb")); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
}

func TestFirstSentence(t *testing.T) {
	for s, want := range map[string]string{
		"":                                   "",
		"Reads a file. Then more.":           "Reads a file.",
		"Reads\na file\n\nMore.":             "Reads a file",
		"Finds e.g. a file. More":            "Finds e.g. a file.",
		"Version 1.2 of it, as in a.b! More": "Version 1.2 of it, as in a.b!",
		"天気を調べます。次の文。":                       "天気を調べます。",
		"One etc. two":                       "One etc. two",
		"No end":                             "No end",
	} {
		if got := FirstSentence(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// Checking eight bytes at a time finds the same offset as checking each byte.
func TestFirstInvisibleInLongText(t *testing.T) {
	for r := range rune(0x300) {
		for before := range 17 {
			s := strings.Repeat("~ ", 9)[:before] + string(r) + "some more text"
			want := -1
			if Invisible(r) && !strings.ContainsRune("\n\t\r", r) {
				want = before
			}
			if got := FirstInvisible([]byte(s)); got != want {
				t.Fatalf("%q: %d, want %d", s, got, want)
			}
		}
	}
	if got := FirstInvisible([]byte("0123456\xff89012345")); got != 7 {
		t.Errorf("a byte that is not UTF-8: %d", got)
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ in, quoted, escaped string }{
		{"plain", `"plain"`, "plain"},
		{"a\nb\x1b[31m", `"a\nb\x1b[31m"`, `a\nb\x1b[31m`},
		{`say "hi"`, `"say \"hi\""`, `say "hi"`},
		{"a\xff\u202e", `"a�\u202e"`, `a�\u202e`},
	} {
		if got := Quote(tt.in); got != tt.quoted {
			t.Errorf("Quote(%q) = %s, want %s", tt.in, got, tt.quoted)
		}
		if got := Escape(tt.in); got != tt.escaped {
			t.Errorf("Escape(%q) = %s, want %s", tt.in, got, tt.escaped)
		}
	}
	long := strings.Repeat("é", 1000)
	if got := len(Quote(long)); got != 205 {
		t.Errorf("Quote returns %d bytes of a long text, want 200, an ellipsis and quotes", got)
	}
	if got := len(Escape(long)); got != 1000 {
		t.Errorf("Escape returns %d bytes of a long text, want 1000", got)
	}
}

func TestPlain(t *testing.T) {
	if got := Plain("Az09_-. \u00e9\xff", "-"); got != "Az09_-____" {
		t.Error(got)
	}
}

func TestWithoutMark(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "a", "\xef\xbb": "\xef\xbb", "\ufeff": "", "\ufeffé": "é", "\ufeff\ufeff": "\ufeff", "a\ufeff": "a\ufeff"} {
		if got := WithoutMark(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := WithoutMark([]byte(in)); string(got) != want {
			t.Errorf("%q as bytes: %q, want %q", in, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n          int
		noun, want string
	}{
		{1, "file", "1 file"}, {0, "file", "0 files"}, {2, "entry", "2 entries"}, {3, "match", "3 matches"},
		{2, "background process", "2 background processes"}, {1, "entry", "1 entry"},
	} {
		if got := Count(c.n, c.noun); got != c.want {
			t.Errorf("%d of %q: %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

func TestTypo(t *testing.T) {
	for _, c := range []struct {
		a, b            string
		edited, swapped bool
	}{
		{"", "", false, false}, {"", "i", true, false}, {"issue", "issue", false, false}, {"issue", "issues", true, false},
		{"branch", "brach", true, false}, {"issue", "xssue", true, false}, {"issue", "issua", true, false},
		{"issue", "isseu", false, true}, {"issue", "sisue", false, true}, {"issue", "iusse", false, false},
		{"issue", "isu", false, false}, {"issue", "isxxe", false, false}, {"ab", "cd", false, false},
	} {
		for range 2 {
			if edited, swapped := Typo(c.a, c.b); edited != c.edited || swapped != c.swapped {
				t.Errorf("%q, %q: %v, %v", c.a, c.b, edited, swapped)
			}
			c.a, c.b = c.b, c.a
		}
	}
}
