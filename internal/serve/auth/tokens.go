package auth

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/text"
)

// minToken is the minimum length of a token; shorter ones could be guessed.
const minToken = 16

// emptyTime is how long a token file must have been empty before all its tokens are revoked.
const emptyTime = 300 * time.Millisecond

// Tokens are the tokens of HTTP clients. Create them with [NewTokens] or [ReadTokens].
// They are safe for concurrent use.
type Tokens struct {
	path string // empty if they are not from a file
	has  func(profile string) bool
	warn func(error)

	mu     sync.Mutex
	read   time.Time // modification time of the file when it was read
	size   int64
	byName map[string]token
}

type token struct {
	hash    Hash
	expires time.Time // zero if it never expires
	profile string    // empty if it is not limited to one
	console bool      // it permits the console
}

// isValid reports whether the token has not expired.
func (t token) isValid() bool { return t.expires.IsZero() || time.Now().Before(t.expires) }

// NewTokens returns the given tokens, which are keyed by name. They may enter the console.
func NewTokens(byName map[string]string) *Tokens {
	t := &Tokens{byName: map[string]token{}}
	for name, text := range byName {
		t.byName[name] = token{hash: HashOf(text), console: true}
	}
	return t
}

// ReadTokens reads a file with one token a line, as "NAME TOKEN". Empty lines and lines that begin
// with # are ignored. Instead of the token, a line may have sha256: and its hash in hex. These
// words may follow: expires= with a time or date (UTC); profile= with the name of a profile for
// which has is true; console, which permits the console. The file is read again after a change, and
// warn receives errors in it. It is an error if another user than root owns the file, or others
// may read it.
func ReadTokens(path string, has func(profile string) bool, warn func(error)) (*Tokens, error) {
	t := &Tokens{path: path, has: has, warn: warn}
	return t, t.refresh()
}

// CheckProfiles returns an error if a token names a profile for which has is false.
func (t *Tokens) CheckProfiles(has func(profile string) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if profile := t.byName[name].profile; profile != "" && !has(profile) {
			return noProfile(profile, name)
		}
	}
	return nil
}

func noProfile(profile, name string) error {
	return fmt.Errorf("the profile %q of %s is not in serve.profiles of the settings", profile, name)
}

// refresh reads the file if it has changed. If it cannot be read, the tokens stay unchanged. If it
// has become empty, all are revoked.
func (t *Tokens) refresh() error {
	if t.path == "" {
		return nil
	}
	info, err := os.Stat(t.path)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	if info.ModTime().Equal(t.read) && info.Size() == t.size {
		return nil
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a directory", t.path)
	}
	if err := checkPrivate(info); err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	data, err := os.ReadFile(t.path)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	byName, err := parseTokens(data, t.has)
	switch {
	case err != nil:
		return fmt.Errorf("%s:%w", t.path, err)
	case len(byName) == 0 && t.byName == nil:
		return fmt.Errorf("%s:1: the file has no tokens; write lines of the form NAME TOKEN", t.path)
	case len(byName) == 0 && time.Since(info.ModTime()) < emptyTime:
		return nil // it may be in the middle of being written
	}
	t.byName, t.read, t.size = byName, info.ModTime(), info.Size()
	return nil
}

func parseTokens(data []byte, has func(profile string) bool) (map[string]token, error) {
	out, names := map[string]token{}, map[Hash]string{}
	lines := bufio.NewScanner(bytes.NewReader(text.WithoutMark(data)))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, t, err := parseToken(strings.Fields(line), has)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", n, err)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%d: %s already has a token", n, name)
		}
		if other, taken := names[t.hash]; taken {
			return nil, fmt.Errorf("%d: %s has the token of %s", n, name, other)
		}
		names[t.hash] = name
		out[name] = t
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return out, nil
}

func parseToken(words []string, has func(profile string) bool) (name string, t token, err error) {
	if len(words) < 2 {
		return "", t, errors.New("expected NAME TOKEN")
	}
	name = words[0]
	if err := checkTokenName(name); err != nil {
		return "", t, err
	}
	if digits, hashed := strings.CutPrefix(strings.ToLower(words[1]), hashPrefix); hashed {
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != len(t.hash) {
			return "", t, fmt.Errorf("the hash of %s must have %d hexadecimal digits", name, 2*len(t.hash))
		}
		t.hash = Hash(sum)
	} else if len(words[1]) < minToken {
		return "", t, fmt.Errorf("the token of %s is shorter than %d characters", name, minToken)
	} else {
		t.hash = HashOf(words[1])
	}
	for i, word := range words[2:] {
		key, _, _ := strings.Cut(word, "=")
		if slices.ContainsFunc(words[2:2+i],
			func(before string) bool { return before == key || strings.HasPrefix(before, key+"=") }) {
			return "", t, fmt.Errorf("%s of %s is given twice", key, name)
		}
		if word == "console" {
			t.console = true
			continue
		}
		if profile, ok := strings.CutPrefix(word, "profile="); ok {
			if t.profile = profile; !has(profile) {
				return "", t, noProfile(profile, name)
			}
			continue
		}
		value, ok := strings.CutPrefix(word, "expires=")
		if !ok {
			return "", t, fmt.Errorf("unknown word %q after the token of %s; expires=, profile= and console are known",
				word, name)
		}
		if t.expires, err = time.Parse(time.RFC3339, value); err != nil {
			if t.expires, err = time.Parse(time.DateOnly, value); err != nil {
				return "", t, fmt.Errorf(
					"expires=%s of %s: expected a date such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z",
					value, name)
			}
		}
	}
	return name, t, nil
}

const hashPrefix = "sha256:"

func checkTokenName(name string) error {
	switch {
	case name == caller.Stdio || name == caller.Local:
		return fmt.Errorf("%s is the name of clients without a token; choose another", name)
	case name == "" || strings.HasPrefix(name, "#") ||
		strings.ContainsFunc(name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return fmt.Errorf("the name %q must be one word that does not begin with #", name)
	}
	return nil
}

// MakeToken returns a new token and its line in a token file, which contains only the hash.
func MakeToken(name string) (token, line string, err error) {
	if err := checkTokenName(name); err != nil {
		return "", "", err
	}
	token = rand.Text()
	return token, fmt.Sprintf("%s %s%x", name, hashPrefix, HashOf(token)), nil
}

// Find implements [Verifier]. Earlier tokens stay valid while the file has an error.
func (t *Tokens) Find(_ context.Context, text, _ string) (Identity, *Rejection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		t.warn(err)
	}
	var from Identity
	sum := HashOf(text)
	for name, want := range t.byName { // compare with all tokens, so that timing reveals nothing
		if sum.Is(want.hash) && want.isValid() {
			from = want.identity(name)
		}
	}
	if from.Name == "" {
		return from, &Rejection{Status: http.StatusUnauthorized,
			Reason: "unauthorized: send a bearer token of this server"}
	}
	return from, nil
}

// Renew implements [Verifier]. The next request of a client reports an error in the file.
func (t *Tokens) Renew(from Identity) (Identity, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.refresh()
	now, ok := t.byName[from.Name]
	return now.identity(from.Name), ok && now.isValid() && (from.Sum == Hash{} || from.Sum.Is(now.hash))
}

// Challenge implements [Verifier].
func (t *Tokens) Challenge(no *Rejection, _ string) string {
	if no.Status != http.StatusUnauthorized {
		return ""
	}
	return `Bearer realm="toolreg"`
}

func (t token) identity(name string) Identity {
	return Identity{Name: name, Sum: t.hash, Profile: t.profile, Expires: t.expires, Console: t.console}
}

// ErrRevoked is the cause with which requests are canceled when their token is removed.
var ErrRevoked = errors.New("the token of the request was removed or has expired")

// Running tracks the running HTTP requests by their tokens. The zero value is ready to use. It is
// safe for concurrent use.
type Running struct {
	mu      sync.Mutex
	serial  int
	byToken map[Hash]*runningOf
}

// runningOf are the running requests with one token.
type runningOf struct {
	from   Identity
	cancel map[int]context.CancelCauseFunc
}

// Add returns a context for a request that is canceled when its token is removed. The caller
// calls done at the end of the request.
func (r *Running) Add(ctx context.Context, from Identity) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byToken == nil {
		r.byToken = map[Hash]*runningOf{}
	}
	of := r.byToken[from.Sum]
	if of == nil {
		of = &runningOf{from, map[int]context.CancelCauseFunc{}}
		r.byToken[from.Sum] = of
	}
	r.serial++
	n := r.serial
	of.cancel[n] = cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(of.cancel, n); len(of.cancel) == 0 {
			delete(r.byToken, from.Sum)
		}
	}
}

// CancelOf cancels the requests whose tokens are no longer valid.
func (r *Running) CancelOf(invalid func(Identity) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.byToken {
		if !invalid(of.from) {
			continue
		}
		for _, cancel := range of.cancel {
			cancel(ErrRevoked)
		}
	}
}
