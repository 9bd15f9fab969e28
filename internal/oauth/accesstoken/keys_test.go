package accesstoken

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const keysAddress = "https://login.example/keys"

func (i *issuer) publish(keys ...map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// isAway reports whether a token could not be verified for want of keys.
func isAway(err error) bool {
	_, away := errors.AsType[*UnavailableError](err)
	return away
}

// Many clients come with the issuer's new key at once: the keys are fetched once for all of them.
func TestRotation(t *testing.T) {
	before, after := newEC(t, "before"), newEC(t, "after")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t, before.public)
		v := i.verifier(i.config())
		if _, err := v.Verify(t.Context(), before.sign(t, with(nil), nil)); err != nil {
			t.Fatal(err)
		}
		i.publish(after.public)
		token := after.sign(t, with(nil), nil)
		begin := time.Now()
		var clients sync.WaitGroup
		for range 200 {
			clients.Go(func() {
				if _, err := v.Verify(t.Context(), token); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
		if waited := time.Since(begin); waited > fetchPause || i.count(keysAddress) != 2 {
			t.Errorf("%d fetches, after %s", i.count(keysAddress), waited)
		}
		// A key that was withdrawn is not accepted any more.
		if _, err := v.Verify(t.Context(), before.sign(t, with(nil), nil)); err == nil || isAway(err) {
			t.Errorf("the old key: %v", err)
		}
	})
}

// Tokens with unknown keys cause one fetch every two seconds, and delay nobody else.
func TestUnknownKeys(t *testing.T) {
	key, other := newEC(t, "e"), newEC(t, "other")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t, key.public)
		v := i.verifier(i.config())
		good, bad := key.sign(t, with(nil), nil), other.sign(t, with(nil), nil)
		var attackers sync.WaitGroup
		for range 50 {
			attackers.Go(func() {
				for range 10 {
					if _, err := v.Verify(t.Context(), bad); err == nil || isAway(err) {
						t.Errorf("an unknown key: %v", err)
					}
				}
			})
		}
		begin := time.Now()
		for range 10 {
			time.Sleep(time.Second)
			now := time.Now()
			if _, err := v.Verify(t.Context(), good); err != nil || time.Since(now) > 0 {
				t.Errorf("a known key: %v after %s", err, time.Since(now))
			}
		}
		attackers.Wait()
		if most := int(time.Since(begin)/fetchPause) + 1; i.count(keysAddress) > most {
			t.Errorf("%d fetches in %s", i.count(keysAddress), time.Since(begin))
		}
	})
}

// Whoever goes away does not end the fetch for which others wait.
func TestClientThatGoesAway(t *testing.T) {
	key := newEC(t, "e")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t, key.public)
		v := i.verifier(i.config())
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := v.Verify(gone, key.sign(t, with(nil), nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := v.Verify(t.Context(), key.sign(t, with(nil), nil)); err != nil || i.count(keysAddress) != 1 {
			t.Errorf("%v after %d fetches", err, i.count(keysAddress))
		}
	})
}

// An issuer that is away at the start is tried again, without a request too.
func TestIssuerAwayAtStart(t *testing.T) {
	key := newEC(t, "e")
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t, key.public)
		i.answer(keysAddress, status(http.StatusServiceUnavailable))
		v := i.verifier(i.config())
		var warned []string
		v.keys.warn = func(err error) { warned = append(warned, err.Error()) }
		token := key.sign(t, with(nil), nil)
		over := make(chan struct{})
		var following sync.WaitGroup
		following.Go(func() { v.Follow(t.Context(), over) })
		synctest.Wait()
		begin := time.Now()
		if _, err := v.Verify(t.Context(), token); !isAway(err) || time.Since(begin) > 0 {
			t.Errorf("while it is away: %v after %s", err, time.Since(begin))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := i.count(keysAddress); n < 4 || n > 8 {
			t.Errorf("%d attempts in a minute", n)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "answered 503") {
			t.Errorf("warned %q", warned)
		}
		i.answer(keysAddress, nil)
		time.Sleep(retryPause)
		synctest.Wait()
		fetched := i.count(keysAddress)
		if _, err := v.Verify(t.Context(), token); err != nil || i.count(keysAddress) != fetched {
			t.Errorf("when it is back: %v", err)
		}
		// It is asked again from time to time; while it is away, its keys stay.
		i.answer(keysAddress, status(http.StatusServiceUnavailable))
		time.Sleep(2 * followPause)
		synctest.Wait()
		if i.count(keysAddress) == fetched {
			t.Error("the keys were not fetched again")
		}
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("while it is away again: %v", err)
		}
		close(over)
		following.Wait()
	})
}

func TestKeysThatAreNotUsed(t *testing.T) {
	key := newEC(t, "e")
	token := key.sign(t, with(nil), nil)
	large := document(map[string]any{"keys": []any{key.public}, "padding": strings.Repeat("x", 2<<20)})
	metadata := "https://login.example/.well-known/oauth-authorization-server/realms/work"
	openID := testIssuer + "/.well-known/openid-configuration"
	page := func() *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("<html>"))}
	}
	tests := []struct {
		name    string
		answers map[string]func() *http.Response
		want    string // in the error; "" means the keys are used
	}{
		{"2 MiB", map[string]func() *http.Response{keysAddress: large}, "larger than 1048576 bytes"},
		{"redirect to another origin", map[string]func() *http.Response{keysAddress: redirect("https://elsewhere.example/keys"), "https://elsewhere.example/keys": document(map[string]any{"keys": []any{key.public}})}, "another origin"},
		{"redirect to another port", map[string]func() *http.Response{keysAddress: redirect("https://login.example:8443/keys"), "https://login.example:8443/keys": document(map[string]any{"keys": []any{key.public}})}, "another origin"},
		{"redirect to http", map[string]func() *http.Response{keysAddress: redirect("http://login.example/keys"), "http://login.example/keys": document(map[string]any{"keys": []any{key.public}})}, "another origin"},
		{"redirect within the origin", map[string]func() *http.Response{keysAddress: redirect("/k2"), "https://login.example/k2": document(map[string]any{"keys": []any{key.public}})}, ""},
		{"endless redirects", map[string]func() *http.Response{keysAddress: redirect("/keys")}, "more than 5 redirects"},
		{"keys at another origin, as the metadata say", map[string]func() *http.Response{metadata: document(map[string]any{"issuer": testIssuer, "jwks_uri": "https://keys.example/k"}), "https://keys.example/k": document(map[string]any{"keys": []any{key.public}})}, ""},
		{"keys over http", map[string]func() *http.Response{metadata: document(map[string]any{"issuer": testIssuer, "jwks_uri": "http://login.example/keys"})}, "jwks_uri: must begin with https"},
		{"metadata of another issuer", map[string]func() *http.Response{metadata: document(map[string]any{"issuer": testIssuer + "/", "jwks_uri": keysAddress})}, "another issuer"},
		{"that of another issuer first", map[string]func() *http.Response{metadata: document(map[string]any{"issuer": "https://login.example", "jwks_uri": "https://login.example/no"}), openID: document(map[string]any{"issuer": testIssuer, "jwks_uri": keysAddress})}, ""},
		{"OpenID discovery", map[string]func() *http.Response{metadata: status(http.StatusNotFound), openID: document(map[string]any{"issuer": testIssuer, "jwks_uri": keysAddress})}, ""},
		{"a page in place of metadata", map[string]func() *http.Response{metadata: page, openID: document(map[string]any{"issuer": testIssuer, "jwks_uri": keysAddress})}, ""},
		{"no metadata", map[string]func() *http.Response{metadata: status(http.StatusNotFound)}, "serve.oauth.jwksUri"},
		{"broken metadata", map[string]func() *http.Response{metadata: status(http.StatusBadGateway)}, "answered 502"},
		{"no JSON", map[string]func() *http.Response{keysAddress: document("keys")}, "not the JSON"},
		{"no keys", map[string]func() *http.Response{keysAddress: document(map[string]any{"keys": []any{}})}, "has no key"},
		{"many keys", map[string]func() *http.Response{keysAddress: document(map[string]any{"keys": make([]any, 101)})}, "more than 100 keys"},
		{"keys of other kinds", map[string]func() *http.Response{keysAddress: document(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, map[string]any{"kty": "x"}, 7, key.public}})}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			i := newIssuer(t, key.public)
			i.answers = test.answers
			v := i.verifier(i.config())
			_, err := v.Verify(t.Context(), token)
			if test.want == "" {
				if err != nil {
					t.Error(errors.Unwrap(err))
				}
				return
			}
			if !isAway(err) || !strings.Contains(errors.Unwrap(err).Error(), test.want) {
				t.Errorf("got %v (%v), want %q", err, errors.Unwrap(err), test.want)
			}
		})
	}
}

// The keys are kept when other settings of the same issuer change, but not for another issuer.
func TestChangedConfiguration(t *testing.T) {
	key := newEC(t, "e")
	i := newIssuer(t, key.public)
	v := i.verifier(i.config())
	if _, err := v.Verify(t.Context(), key.sign(t, with(nil), nil)); err != nil {
		t.Fatal(err)
	}
	c := i.config()
	c.Audience = "https://tools.example/other"
	if next := New(c, v, nil, v.now); next.keys != v.keys {
		t.Error("the keys of the same issuer were dropped")
	}
	c.Issuer = "https://elsewhere.example"
	if next := New(c, v, nil, v.now); next.keys == v.keys {
		t.Error("another issuer has the same keys")
	}
}
