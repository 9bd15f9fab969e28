package secret

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Current has the credentials for requests to one server. Credentials read from files and commands
// may expire before a long-running process ends. It is safe for concurrent use.
type Current[T any] struct {
	value atomic.Pointer[T]
	read  func(context.Context) (T, error)

	reading   sync.Mutex // one at a time
	unchanged time.Time  // when they were last read and the same; guarded by reading
}

// rereadEvery is how long the same credentials are not read again: a server may refuse one request for good,
// and a command that prints them may ask the person.
const rereadEvery = time.Minute

// NewCurrent returns credentials that do not change.
func NewCurrent[T any](value T) *Current[T] {
	c := &Current[T]{}
	c.value.Store(&value)
	return c
}

// Reread sets the function that reads the credentials again. Call it before the first request.
func (c *Current[T]) Reread(read func(context.Context) (T, error)) { c.read = read }

// Load returns the credentials.
func (c *Current[T]) Load() T { return *c.value.Load() }

// Send sends a request with the credentials. If the server refuses them and other credentials are
// now available, it sends the request again with those.
func (c *Current[T]) Send(r *http.Request, send func(*http.Request, T) (*http.Response, error)) (*http.Response, error) {
	used := c.Load()
	resp, err := send(r, used)
	isBodyGone := r.Body != nil && r.Body != http.NoBody && r.GetBody == nil
	if err != nil || isBodyGone ||
		resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	now, isOther, err := c.Other(r.Context(), used)
	if err == nil && !isOther {
		return resp, nil
	}
	const mostDrained = 4 << 10 // bytes, for the connection to be used again
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, mostDrained))
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("it answers %s, and its credentials cannot be read again: %w", resp.Status, err)
	}
	r = r.Clone(r.Context())
	if r.GetBody != nil {
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return send(r, now)
}

// Other returns other credentials that are available after a server has refused the used ones;
// isOther is false if there are none.
func (c *Current[T]) Other(ctx context.Context, used T) (now T, isOther bool, err error) {
	if c.read == nil {
		return used, false, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if now = c.Load(); !reflect.DeepEqual(now, used) { // another request has already read them
		return now, true, nil
	}
	if !c.unchanged.IsZero() && time.Since(c.unchanged) < rereadEvery {
		return used, false, nil
	}
	if now, err = c.read(ctx); err != nil {
		return used, false, err
	}
	if reflect.DeepEqual(now, used) {
		c.unchanged = time.Now()
		return used, false, nil
	}
	c.value.Store(&now)
	return now, true, nil
}

// CanChange reports whether a value of the settings is a reference whose target may change while a
// process runs.
func CanChange(value string) bool {
	kind, _ := Reference(value)
	return kind == "file" || kind == "cmd"
}
