package discover

import "testing"

func TestDecodeReplacesInvalidUTF8LikeBrowsers(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 工\U0001F600\x00": "plain é 工\U0001F600\x00",
		"a\xff\xfeb":              "a\uFFFD\uFFFDb",
		"a\xe2\x82c":              "a\uFFFDc",           // one for a cut character
		"\xf0\x9f\x98":            "\uFFFD",             // at the end as well
		"\xed\xa0\x80":            "\uFFFD\uFFFD\uFFFD", // a surrogate is not a valid code point
		"\xc0\xaf":                "\uFFFD\uFFFD",       // overlong
		"\uFEFFx":                 "\uFEFFx",
	} {
		if got := decode([]byte(in)); got != want {
			t.Errorf("decode(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTrimMatchesJavaScript(t *testing.T) {
	const space = " \t\n\v\f\r\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\uFEFF"
	if got := string(trim([]byte(space + "x" + space))); got != "x" {
		t.Errorf("left %q", got)
	}
	if got := string(trim([]byte("\u0085\u200b"))); got != "\u0085\u200b" {
		t.Errorf("cut to %q", got)
	}
}
