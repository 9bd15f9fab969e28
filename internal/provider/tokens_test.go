package provider

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// The estimates are close to the counts of real tokenizers, for each format and for
// each server.
func TestTokensAgainstTokenizers(t *testing.T) {
	data, err := os.ReadFile("../../testdata/tokens/counts.json")
	if err != nil {
		t.Fatal(err)
	}
	var counts map[string][3]int // ASCII characters, others, tokens
	if err := json.Unmarshal(data, &counts); err != nil {
		t.Fatal(err)
	}
	for _, f := range Formats() {
		estimated, counted, servers := 0, 0, 0
		for name, c := range counts {
			format, server, _ := strings.Cut(name, " ")
			if format != strings.TrimSuffix(f.Name, "-interactions") { // Gemini has one tokenizer
				continue
			}
			got := f.estimate(c[0], c[1])
			if off := float64(got)/float64(c[2]) - 1; math.Abs(off) > 0.25 {
				t.Errorf("%s of %s: estimated %d tokens, counted %d", f.Name, server, got, c[2])
			}
			estimated, counted, servers = estimated+got, counted+c[2], servers+1
		}
		if off := float64(estimated)/float64(counted) - 1; servers < 20 || math.Abs(off) > 0.01 {
			t.Errorf("%s of %d servers: estimated %d tokens, counted %d", f.Name, servers, estimated, counted)
		}
	}
}

func TestTokens(t *testing.T) {
	openai, err := Lookup("openai")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"": 0, "a": 0, "abcd": 1, strings.Repeat("a", 439): 100, "数据数据数据数据数据": 6, "ab 数": 1, "\xff\xff": 1,
	} {
		if got := openai.Tokens([]byte(text)); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
	if got := (Format{}).Tokens([]byte(strings.Repeat("a", 385))); got != 100 {
		t.Errorf("no format: %d tokens, want 100", got)
	}
}
