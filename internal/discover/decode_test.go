package discover

import "testing"

func TestDecodeReplacesLikeABrowser(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 工\U0001F600\x00": "plain é 工\U0001F600\x00",
		"a\xff\xfeb":              "a\uFFFD\uFFFDb",
		"a\xe2\x82c":              "a\uFFFDc",           // one for a cut character
		"\xf0\x9f\x98":            "\uFFFD",             // at the end as well
		"\xed\xa0\x80":            "\uFFFD\uFFFD\uFFFD", // a surrogate is none
		"\xc0\xaf":                "\uFFFD\uFFFD",       // overlong
		"\uFEFFx":                 "\uFEFFx",
	} {
		if got := decode([]byte(in)); got != want {
			t.Errorf("decode(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTrimCutsWhatJavaScriptCuts(t *testing.T) {
	const space = " \t\n\v\f\r\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\uFEFF"
	if got := string(trim([]byte(space + "x" + space))); got != "x" {
		t.Errorf("left %q", got)
	}
	if got := string(trim([]byte("\u0085\u200b"))); got != "\u0085\u200b" {
		t.Errorf("cut to %q", got)
	}
}

func TestCutPartialKeepsCharactersWhole(t *testing.T) {
	tests := []struct{ in, whole, rest string }{
		{"", "", ""}, {"abc", "abc", ""}, {"é", "é", ""}, {"a\xc3", "a", "\xc3"}, {"a\xf0\x9f\x98", "a", "\xf0\x9f\x98"},
		{"\xe2\x82", "", "\xe2\x82"}, {"a\x80\x80\x80\x80", "a\x80\x80\x80\x80", ""}, {"a\xff", "a\xff", ""},
	}
	for _, tt := range tests {
		whole, rest := cutPartial([]byte(tt.in))
		if string(whole) != tt.whole || string(rest) != tt.rest {
			t.Errorf("cutPartial(%q) = %q, %q", tt.in, whole, rest)
		}
	}
}
