package table

import (
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/settings/document"
)

func TestSizes(t *testing.T) {
	number := func(s string) *document.Node { return &document.Node{Kind: document.Number, Text: s} }
	text := func(s string) *document.Node { return &document.Node{Kind: document.String, Text: s} }
	tests := []struct {
		in   *document.Node
		want int64 // -1 = refused
	}{
		{number("0"), 0}, {number("1024"), 1024}, {text("12"), 12}, {text("10MiB"), 10 << 20}, {text("10 MiB"), 10 << 20}, {text("1K"), 1024},
		{text("3kB"), 3000}, {text("2GB"), 2_000_000_000}, {text("1GiB"), 1 << 30}, {text("5B"), 5}, {text("2MB"), 2_000_000},
		{text("-1"), -1}, {text("1.5MiB"), -1}, {text("MiB"), -1}, {text("9999999999GiB"), -1}, {text("1iB"), -1}, {number("1e3"), -1}, {text("1TiB"), -1},
		{&document.Node{Kind: document.Bool}, -1},
	}
	for _, test := range tests {
		got, err := ParseSize(test.in)
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%s %q: %d, %v, want %d", test.in.Kind, test.in.Text, got, err, test.want)
		}
	}
}

func TestDurations(t *testing.T) {
	tests := []struct {
		in   *document.Node
		want time.Duration // -1 = refused
	}{
		{&document.Node{Kind: document.Number, Text: "1500"}, 1500 * time.Millisecond},
		{&document.Node{Kind: document.Number, Text: "0"}, 0},
		{&document.Node{Kind: document.String, Text: "1h30m"}, 90 * time.Minute},
		{&document.Node{Kind: document.String, Text: "0"}, 0},
		{&document.Node{Kind: document.Number, Text: "1.5"}, -1},
		{&document.Node{Kind: document.Number, Text: "-1"}, -1},
		{&document.Node{Kind: document.Number, Text: "9223372036855"}, -1},
		{&document.Node{Kind: document.String, Text: "30"}, -1},
		{&document.Node{Kind: document.String, Text: ""}, -1},
		{&document.Node{Kind: document.Bool}, -1},
	}
	for _, test := range tests {
		got, err := ParseDuration(test.in)
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%s %q: %s, %v, want %s", test.in.Kind, test.in.Text, got, err, test.want)
		}
	}
}
