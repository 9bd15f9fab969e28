package serve

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// minToken is the minimum length of a token; shorter ones could be guessed.
const minToken = 16

// tokenHash is the SHA-256 hash of a token.
type tokenHash [sha256.Size]byte

// Tokens are the tokens of HTTP clients. Create them with [NewTokens] or [ReadTokens].
// They are safe for concurrent use.
type Tokens struct {
	path string // "" if they are not from a file

	mu     sync.Mutex
	read   time.Time // modification time of the file when it was read
	size   int64
	byName map[string]tokenHash
}

// NewTokens returns the given tokens, which are keyed by name.
func NewTokens(byName map[string]string) *Tokens {
	t := &Tokens{byName: map[string]tokenHash{}}
	for name, token := range byName {
		t.byName[name] = sha256.Sum256([]byte(token))
	}
	return t
}

// ReadTokens returns the tokens in a file with one line "NAME TOKEN" for each; empty lines
// and lines that begin with # are ignored. The file is read again after a change. A file
// that other users own or may read is an error.
func ReadTokens(path string) (*Tokens, error) {
	t := &Tokens{path: path}
	return t, t.refresh()
}

// refresh reads the file if it has changed. If it cannot be read, the tokens
// stay unchanged.
func (t *Tokens) refresh() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	if info.ModTime().Equal(t.read) && info.Size() == t.size {
		return nil
	}
	if err := private(info); err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	data, err := os.ReadFile(t.path)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	byName, err := parseTokens(data)
	if err != nil {
		return fmt.Errorf("%s:%w", t.path, err)
	}
	t.byName, t.read, t.size = byName, info.ModTime(), info.Size()
	return nil
}

func parseTokens(data []byte) (map[string]tokenHash, error) {
	out := map[string]tokenHash{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 2 {
			return nil, fmt.Errorf("%d: expected NAME TOKEN", n)
		}
		if len(words[1]) < minToken {
			return nil, fmt.Errorf("%d: the token of %s is shorter than %d characters", n, words[0], minToken)
		}
		if words[0] == stdioName || words[0] == LocalName {
			return nil, fmt.Errorf("%d: %s is the name of clients without a token; choose another", n, words[0])
		}
		if _, twice := out[words[0]]; twice {
			return nil, fmt.Errorf("%d: %s already has a token", n, words[0])
		}
		out[words[0]] = sha256.Sum256([]byte(words[1]))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("1: the file has no tokens; write lines of the form NAME TOKEN")
	}
	return out, nil
}

// Name returns the name and the hash of a token. warn receives errors in the file, whose
// earlier tokens then stay valid.
func (t *Tokens) Name(token string, warn func(error)) (name string, sum tokenHash, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path != "" {
		if err := t.refresh(); err != nil {
			warn(err)
		}
	}
	sum = sha256.Sum256([]byte(token))
	for n, want := range t.byName { // compare with all tokens, so that timing reveals nothing
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 {
			name, ok = n, true
		}
	}
	return name, sum, ok
}

// current reads the file if it has changed and returns the tokens. If the file cannot be
// read, they are the earlier ones; the next request reports the error.
func (t *Tokens) current() map[string]tokenHash {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path != "" {
		_ = t.refresh()
	}
	return t.byName // is replaced, not changed
}
