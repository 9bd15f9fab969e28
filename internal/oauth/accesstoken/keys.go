package accesstoken

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
)

const (
	// fetchPause is the minimum time between the starts of two fetches of the keys.
	fetchPause = 2 * time.Second
	// followPause is how often the keys are fetched even if no token needs it, so that keys that
	// the issuer has withdrawn are refused.
	followPause = 10 * time.Minute
	// retryPause is the maximum time between two attempts while the issuer cannot be reached.
	retryPause = 30 * time.Second
	// maxKeys is the maximum number of keys of an issuer.
	maxKeys = 100
)

// keySet holds the keys of an issuer. It is safe for concurrent use.
type keySet struct {
	issuer, address string // address may be ""
	client          *http.Client
	warn            func(error)
	pause           time.Duration // fetchPause

	mu       sync.Mutex
	keys     []jose.JSONWebKey // nil means no fetch has succeeded
	err      error             // of the latest fetch
	failures int               // since the last successful fetch
	fetches  int               // number of fetches started
	began    time.Time         // when the latest fetch started
	running  chan struct{}     // closed when the running fetch ends; nil means none is running
}

// findKeys returns the keys for a token's algorithm that may have signed it: those with its key id,
// or all if it names none. If there are none, it fetches the keys, at most once every fetchPause
// however many requests wait for them.
func (s *keySet) findKeys(ctx context.Context, id string,
	algorithm jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	s.mu.Lock()
	for asked := s.fetches; ; s.mu.Lock() {
		keys, err := s.fitting(id, algorithm), s.err
		done := s.running == nil && s.fetches > asked // a fetch that was already running may have missed the key
		away := s.running == nil && s.keys == nil && s.remaining(s.pause) > 0
		switch {
		case len(keys) > 0:
			s.mu.Unlock()
			return keys, nil
		case err != nil && (done || away):
			s.mu.Unlock()
			return nil, &UnavailableError{err}
		case done:
			s.mu.Unlock()
			return nil, nil
		}
		if err := s.step(ctx, context.WithoutCancel(ctx), s.pause, nil); err != nil {
			return nil, err
		}
	}
}

// remaining returns how much of a pause since the start of the latest fetch is left. The caller
// holds s.mu.
func (s *keySet) remaining(pause time.Duration) time.Duration {
	if s.fetches == 0 {
		return 0
	}
	return pause - time.Since(s.began)
}

// step fetches the keys if a pause since the start of the latest fetch is over. Otherwise it waits
// until the pause or the running fetch ends, or the channel is closed. The error is the cause of
// ctx. The fetch has a context of its own, because others wait for it too. The caller holds s.mu,
// which step unlocks.
func (s *keySet) step(ctx, fetching context.Context, pause time.Duration, until <-chan struct{}) error {
	running, left := s.running, s.remaining(pause)
	if running == nil && left <= 0 {
		s.fetches, s.began, s.running = s.fetches+1, time.Now(), make(chan struct{})
		s.mu.Unlock()
		s.loadKeys(fetching)
		return context.Cause(ctx)
	}
	s.mu.Unlock()
	var over <-chan time.Time
	if running == nil {
		over = time.After(left)
	}
	select {
	case <-running: // nil is never ready
	case <-over:
	case <-until:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// loadKeys fetches the keys; if that fails, it keeps the earlier ones. The caller has set
// s.running.
func (s *keySet) loadKeys(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	keys, err := s.fetchKeys(limited)
	cancel()
	s.mu.Lock()
	known := s.err != nil && err != nil && s.err.Error() == err.Error()
	if s.failures++; err == nil {
		s.keys, s.failures = keys, 0
	}
	s.err = err
	close(s.running)
	s.running = nil
	s.mu.Unlock()
	if err != nil && !known && ctx.Err() == nil {
		s.warn(fmt.Errorf("getting the keys of the issuer %s: %w", s.issuer, err))
	}
}

// follow fetches the keys now and every followPause, or sooner while the issuer cannot be reached,
// until ctx is done or the channel is closed.
func (s *keySet) follow(ctx context.Context, until <-chan struct{}) {
	for ctx.Err() == nil {
		select {
		case <-until:
			return
		default:
		}
		s.mu.Lock()
		pause := followPause
		if s.failures > 0 {
			pause = min(fetchPause<<min(s.failures-1, 8), retryPause)
		}
		_ = s.step(ctx, ctx, pause, until) // its error is that of ctx
	}
}

// fitting returns the keys for a key id ("" means any) and an algorithm. The caller holds s.mu.
func (s *keySet) fitting(id string, algorithm jose.SignatureAlgorithm) []jose.JSONWebKey {
	var out []jose.JSONWebKey
	for _, key := range s.keys {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == string(algorithm)) &&
			algorithmOf(key) == algorithm {
			out = append(out, key)
		}
	}
	return out
}

// algorithmOf returns the algorithm that a key is used with; "" if tokens must not be signed with it.
func algorithmOf(key jose.JSONWebKey) jose.SignatureAlgorithm {
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= 2048 && bits <= 8192 {
			return jose.RS256
		}
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			return jose.ES256
		}
	case ed25519.PublicKey:
		return jose.EdDSA
	}
	return ""
}

func (s *keySet) fetchKeys(ctx context.Context) ([]jose.JSONWebKey, error) {
	address := s.address
	if address == "" {
		var err error
		if address, err = s.discover(ctx); err != nil {
			return nil, err
		}
	}
	var set struct{ Keys []json.RawMessage }
	if err := s.fetchJSON(ctx, address, &set); err != nil {
		return nil, fmt.Errorf("reading %s: %w", address, err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%s has more than %d keys", address, maxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		var use struct {
			Use        string   `json:"use"`
			Operations []string `json:"key_ops"`
		}
		if json.Unmarshal(raw, &use) != nil || use.Use != "" && use.Use != "sig" ||
			use.Operations != nil && !slices.Contains(use.Operations, "verify") {
			continue
		}
		if key.UnmarshalJSON(raw) == nil && algorithmOf(key) != "" { // others are for other programs
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key for RS256, ES256 or EdDSA", address)
	}
	return keys, nil
}

func (s *keySet) discover(ctx context.Context) (keys string, err error) {
	errNoKeys := errors.New("no metadata of it names the address of its keys (serve.oauth.jwksUri)")
	found, err := webaddr.FirstDocument(ctx, webaddr.IssuerMetadata(s.issuer), func(address string) error {
		var m struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		err := s.fetchJSON(ctx, address, &m)
		switch {
		case err != nil:
			return fmt.Errorf("reading %s: %w", address, err)
		case m.Issuer != s.issuer:
			return fmt.Errorf("%s is the metadata of another issuer, %q", address, m.Issuer)
		case m.Keys == "":
			return errNoKeys
		}
		if err := checkAddress(m.Keys); err != nil {
			return fmt.Errorf("%s: jwks_uri: %w", address, err)
		}
		keys = m.Keys
		return nil
	}, func(err error) bool {
		status, ok := errors.AsType[webaddr.StatusError](err)
		return ok && status >= 400 && status < 500 || errors.Is(err, errNotJSON) || errors.Is(err, errNoKeys)
	})
	if !found && err == nil {
		err = errNoKeys
	}
	return keys, err
}

const (
	// fetchTime is the time limit of a fetch, with all its requests.
	fetchTime = 10 * time.Second
	// maxDocument is the maximum size of metadata and of a set of keys, in bytes.
	maxDocument = 1 << 20
)

// newClient returns a client that follows redirects only within an origin.
func newClient() *http.Client {
	transport := webaddr.NewTransport(64 << 10)
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport, CheckRedirect: webaddr.WithinOrigin}
}

// errNotJSON reports an answer that is not JSON, such as a web page.
var errNotJSON = errors.New("it is not the JSON that was expected")

// fetchJSON fetches a JSON document. Its address has been checked.
func (s *keySet) fetchJSON(ctx context.Context, address string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return webaddr.Explained(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return webaddr.StatusError(answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return err
	case len(data) > maxDocument:
		return fmt.Errorf("it is larger than %d bytes", maxDocument)
	case json.Unmarshal(text.WithoutMark(data), into) != nil:
		return errNotJSON
	}
	return nil
}
