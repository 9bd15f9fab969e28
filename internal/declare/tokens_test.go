package declare

import "testing"

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abcd": 1, "abcde": 2, "日本": 2, "\xff": 1} {
		if got := Tokens([]byte(text)); got != want {
			t.Errorf("Tokens(%q) = %d, want %d", text, got, want)
		}
	}
}
