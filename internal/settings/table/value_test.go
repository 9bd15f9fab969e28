package table

import (
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

func TestParseSize(t *testing.T) {
	number := func(s string) *jsonx.Value { return &jsonx.Value{Kind: jsonx.Number, Token: s} }
	text := func(s string) *jsonx.Value { return jsonx.NewString(s) }
	tests := []struct {
		in   *jsonx.Value
		want int64 // -1 = refused
	}{
		{number("0"), 0}, {number("1024"), 1024}, {text("12"), 12}, {text("10MiB"), 10 << 20}, {text("10 MiB"), 10 << 20}, {text("1K"), 1024},
		{text("3kB"), 3000}, {text("2GB"), 2_000_000_000}, {text("1GiB"), 1 << 30}, {text("5B"), 5}, {text("2MB"), 2_000_000},
		{text("-1"), -1}, {text("1.5MiB"), -1}, {text("MiB"), -1}, {text("9999999999GiB"), -1}, {text("1iB"), -1}, {number("1e3"), -1}, {text("1TiB"), -1},
		{jsonx.NewBool(false), -1},
	}
	for _, test := range tests {
		got, err := ParseSize(test.in)
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%s %s: %d, %v, want %d", test.in.Kind, test.in.Token, got, err, test.want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	tests := []struct {
		in   *jsonx.Value
		want time.Duration // -1 = refused
	}{
		{&jsonx.Value{Kind: jsonx.Number, Token: "1500"}, 1500 * time.Millisecond},
		{&jsonx.Value{Kind: jsonx.Number, Token: "0"}, 0},
		{jsonx.NewString("1h30m"), 90 * time.Minute},
		{jsonx.NewString("0"), 0},
		{&jsonx.Value{Kind: jsonx.Number, Token: "1.5"}, -1},
		{&jsonx.Value{Kind: jsonx.Number, Token: "-1"}, -1},
		{&jsonx.Value{Kind: jsonx.Number, Token: "9223372036855"}, -1},
		{jsonx.NewString("30"), -1},
		{jsonx.NewString(""), -1},
		{jsonx.NewBool(false), -1},
	}
	for _, test := range tests {
		got, err := ParseDuration(test.in)
		if (err != nil) != (test.want < 0) || err == nil && got != test.want {
			t.Errorf("%s %s: %s, %v, want %s", test.in.Kind, test.in.Token, got, err, test.want)
		}
	}
}

func TestParseKeep(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{`true`, DefaultKeep, true},
		{`false`, 0, true},
		{`"0s"`, 0, true},
		{`90000`, 90 * time.Second, true},
		{`"1h"`, time.Hour, true},
		{`"keep-alive"`, DefaultKeep, true},
		{`"ephemeral"`, 0, true},
		{`{"mode":"keep-alive"}`, DefaultKeep, true},
		{`{"mode":"keep-alive","idleTimeoutMs":5}`, 5 * time.Millisecond, true},
		{`{"mode":"ephemeral","idleTimeoutMs":5}`, 0, true},
		{`{"mode":"soon"}`, 0, false},
		{`{"idleTimeoutMs":5}`, 0, false},
		{`"soon"`, 0, false},
		{`-1`, 0, false},
		{`[]`, 0, false},
	}
	for _, test := range tests {
		n, err := jsonx.Parse([]byte(test.text), jsonx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d, err := ParseKeep(n); d != test.want || (err == nil) != test.ok {
			t.Errorf("%s: %v, %v", test.text, d, err)
		}
	}
}
