package auth

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file from which the last token was removed takes it back, unless it is just being written.
func TestLastTokenIsTakenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (*Tokens, error) {
		return ReadTokens(path, func(string) bool { return true }, func(err error) { t.Error(err) })
	}
	write("# none\n", time.Hour)
	if _, err := read(); err == nil {
		t.Error("a file without tokens must be an error at the start")
	}
	write("alice alice-0123456789\n", 2*time.Hour)
	tokens, err := read()
	if err != nil {
		t.Fatal(err)
	}
	from, no := tokens.Find(t.Context(), "alice-0123456789", "")
	if no != nil {
		t.Fatal(no)
	}
	write("", 0)
	if _, ok := tokens.Renew(from); !ok {
		t.Error("a file that is being written takes the token back")
	}
	write("# none\n", time.Minute)
	if _, ok := tokens.Renew(from); ok {
		t.Error("the token is still valid")
	}
	if _, no := tokens.Find(t.Context(), "alice-0123456789", ""); no == nil {
		t.Error("the token is still accepted")
	}
}
