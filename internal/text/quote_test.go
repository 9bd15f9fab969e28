package text

import (
	"strings"
	"testing"
)

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
