package settings

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	number := func(s string) *node { return &node{kind: kindNumber, text: s} }
	text := func(s string) *node { return &node{kind: kindString, text: s} }
	tests := []struct {
		in   *node
		want int64 // -1 = refused
	}{
		{number("0"), 0}, {number("1024"), 1024}, {text("12"), 12}, {text("10MiB"), 10 << 20}, {text("10 MiB"), 10 << 20}, {text("1K"), 1024},
		{text("3kB"), 3000}, {text("2GB"), 2_000_000_000}, {text("1GiB"), 1 << 30}, {text("5B"), 5}, {text("2MB"), 2_000_000},
		{text("-1"), -1}, {text("1.5MiB"), -1}, {text("MiB"), -1}, {text("9999999999GiB"), -1}, {text("1iB"), -1}, {number("1e3"), -1}, {text("1TiB"), -1},
		{&node{kind: kindBool}, -1},
	}
	for _, test := range tests {
		got, err := parseSize(test.in)
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%s %q: %d, %v, want %d", test.in.kind, test.in.text, got, err, test.want)
		}
	}
}

func TestDurations(t *testing.T) {
	tests := []struct {
		in   *node
		want time.Duration // -1 = refused
	}{
		{&node{kind: kindNumber, text: "1500"}, 1500 * time.Millisecond},
		{&node{kind: kindNumber, text: "0"}, 0},
		{&node{kind: kindString, text: "1h30m"}, 90 * time.Minute},
		{&node{kind: kindString, text: "0"}, 0},
		{&node{kind: kindNumber, text: "1.5"}, -1},
		{&node{kind: kindNumber, text: "-1"}, -1},
		{&node{kind: kindNumber, text: "9223372036855"}, -1},
		{&node{kind: kindString, text: "30"}, -1},
		{&node{kind: kindString, text: ""}, -1},
		{&node{kind: kindBool}, -1},
	}
	for _, test := range tests {
		got, err := parseDuration(test.in)
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%s %q: %s, %v, want %s", test.in.kind, test.in.text, got, err, test.want)
		}
	}
}

func TestJSONNumbers(t *testing.T) {
	for s, want := range map[string]bool{"0": true, "-0": true, "10": true, "1.5": true, "1e3": true, "1E+3": true, "1.5e-3": true,
		"": false, "-": false, "01": false, "+1": false, ".5": false, "1.": false, "1e": false, "0x1": false, "1_0": false, ".inf": false, "1e3x": false} {
		if got := isJSONNumber(s); got != want {
			t.Errorf("isJSONNumber(%q) = %v", s, got)
		}
	}
}

func TestMessagesHideNoCharacters(t *testing.T) {
	got := problemsOf("s.yaml", "env: {\"a\\e[2J\\u202Eé\": 5}\n")
	want := `s.yaml:1:24: env.a\x1b[2J\u202eé: expected a string, got number (put it in quotes)`
	if len(got) != 1 || got[0] != want {
		t.Errorf("problems %q, want %q", got, want)
	}
	if got := visible("a\xffb"); got != `a\xffb` {
		t.Errorf("invalid UTF-8 became %q", got)
	}
}
