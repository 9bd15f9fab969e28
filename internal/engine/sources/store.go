package sources

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/store"
)

// OpenStore returns the store of the settings (serve.store), or nil if there is none. It does
// not connect. The error is a *settings.InputError and does not contain the address.
func OpenStore(ctx context.Context, set settings.Serve, x *values.Expander) (*store.Store, error) {
	if set.Store.Value == "" {
		return nil, nil
	}
	fail := func(err error) error {
		return &settings.InputError{Err: fmt.Errorf("%s: serve.store: %w", set.Store.Origin, err)}
	}
	secret, err := x.StateKey(ctx, set.StateKey)
	switch {
	case err != nil:
		return nil, &settings.InputError{Err: err}
	case secret == "":
		return nil, fail(errors.New("it needs serve.stateKey, with which everything in the store is sealed; " +
			"a secret is the output of: openssl rand -hex 32"))
	}
	address, err := x.Secret(ctx, set.Store.Value, set.Store.Origin.Scope)
	if err != nil {
		return nil, fail(err)
	}
	s, err := store.Open(address, secret)
	if err != nil {
		return nil, fail(err)
	}
	return s, nil
}

// sharedLogins keeps the logins of clients in a store, for a season after they were last renewed.
// It implements oauth.Place.
type sharedLogins struct{ store *store.Store }

const (
	loginsKind    = "logins"
	loginLockKind = "login-lock"
	// loginLockTime is how long a replica may take to renew a login. The others wait meanwhile,
	// because a token for renewing it can be used once.
	loginLockTime = 2 * time.Minute
	loginLockPoll = 100 * time.Millisecond
	// loginsTime is how long logins are kept after their last change.
	loginsTime = 90 * 24 * time.Hour
)

// Read implements oauth.Place.
func (l sharedLogins) Read(ctx context.Context, key string) ([]byte, error) {
	v, err := l.store.Get(ctx, loginsKind, key)
	return v.Data, err
}

// Update implements oauth.Place.
func (l sharedLogins) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	tick := time.Tick(loginLockPoll)
	for {
		_, locked, err := l.store.Swap(ctx, loginLockKind, key, store.Value{}, []byte{1}, loginLockTime)
		if err != nil {
			return err
		}
		if locked {
			break
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { _ = l.store.Delete(context.WithoutCancel(ctx), loginLockKind, key) }() // or it ends by itself
	now, err := l.store.Get(ctx, loginsKind, key)
	if err != nil {
		return err
	}
	data, err := change(now.Data)
	if err != nil || data == nil {
		return err
	}
	return l.store.Put(context.WithoutCancel(ctx), loginsKind, key, data, loginsTime)
}

// Remove implements oauth.Place.
func (l sharedLogins) Remove(ctx context.Context, key string) error {
	return l.store.Delete(ctx, loginsKind, key)
}

// Each implements oauth.Place.
func (l sharedLogins) Each(ctx context.Context, use func([]byte, func(context.Context) error) error) error {
	return l.store.Each(ctx, loginsKind, use)
}
