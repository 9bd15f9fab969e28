package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/toolreg/toolreg/internal/webaddr"
)

// Logout is the public information about a logout.
type Logout struct {
	Had     bool  // there was a login
	Revoked bool  // the authorization server confirmed the revocation
	Err     error // why the tokens were not revoked; nil if the server does not support it
}

// Logout revokes the tokens (RFC 7009) and deletes the login, even if the
// authorization server fails. The error is that of the store, or the cause of
// ctx; the login then remains.
func (c *Client) Logout(ctx context.Context) (Logout, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.readRecord(ctx)
	if errors.Is(err, errDamaged) {
		return Logout{Had: true}, c.removeRecord(ctx)
	}
	if err != nil || r == nil {
		return Logout{}, err
	}
	out := Logout{Had: true}
	w := c.web()
	defer w.close()
	out.Revoked, out.Err = w.revoke(ctx, r, c.credentials(r.Client, r.Issuer, ""), c.now())
	if cause := context.Cause(ctx); cause != nil {
		return out, cause // the user interrupted it
	}
	c.record, c.loaded = nil, true
	return out, c.removeRecord(context.WithoutCancel(ctx))
}

// revoke revokes the tokens. It begins with the refresh token, which revokes
// both on most servers.
func (w *web) revoke(ctx context.Context, r *record, who credentials, now time.Time) (bool, error) {
	if r.RevokeURL == "" {
		return false, nil
	}
	for _, t := range []struct{ token, kind string }{
		{r.Token.Refresh, "refresh_token"}, {r.Token.Access, "access_token"},
	} {
		if t.token == "" {
			continue
		}
		status, _, err := w.post(ctx, r.RevokeURL, who,
			url.Values{"token": {t.token}, "token_type_hint": {t.kind}}, "", now)
		if err == nil && status != http.StatusOK {
			err = webaddr.StatusError(status)
		}
		if err != nil {
			return false, fmt.Errorf("revoking the login at %s: %w", r.Issuer, err)
		}
	}
	return true, nil
}

// Rest is a login that [Store.LogoutRest] has ended.
type Rest struct {
	Server string // its URL; "" if the login could not be read
	Client string // of serve, whose login it was; "" means the person's
	Logout
}

// LogoutRest ends all remaining logins, such as those of clients and of servers that are no
// longer in the settings. It revokes tokens if that does not need a secret of the settings. It
// continues after a failure; the error says which logins remain.
func (s *Store) LogoutRest(ctx context.Context) ([]Rest, error) {
	d, err := s.dir()
	if err != nil {
		return nil, err
	}
	done, err := logoutAll(ctx, folder{d})
	if s.Clients == nil || context.Cause(ctx) != nil {
		return done, err
	}
	place, clientsErr := s.Clients(ctx)
	if clientsErr == nil {
		var clients []Rest
		clients, clientsErr = logoutAll(ctx, place)
		done = append(done, clients...)
	}
	if clientsErr != nil {
		err = errors.Join(err, fmt.Errorf("logins of clients were not ended: %w", clientsErr))
	}
	return done, err
}

// logoutAll ends all logins of a place.
func logoutAll(ctx context.Context, place Place) (done []Rest, err error) {
	var failed []error
	err = place.Each(ctx, func(data []byte, remove func(context.Context) error) error {
		rest := revokeOrphan(ctx, data)
		if cause := context.Cause(ctx); cause != nil {
			return cause // the user interrupted it
		}
		if err := remove(context.WithoutCancel(ctx)); err != nil {
			failed = append(failed,
				fmt.Errorf("the login to %s was not deleted: %w", cmp.Or(rest.Server, "an unknown server"), err))
			return nil
		}
		done = append(done, rest)
		return nil
	})
	return done, errors.Join(append(failed, err)...)
}

// revokeOrphan revokes the tokens of a login without a server in the settings.
func revokeOrphan(ctx context.Context, data []byte) Rest {
	var r record
	if json.Unmarshal(data, &r) != nil {
		return Rest{Logout: Logout{Had: true}}
	}
	rest := Rest{Server: r.Server, Client: r.Of, Logout: Logout{Had: true}}
	if r.Client.Registered || r.Client.Method == methodNone {
		w := newWeb(r.Server, r.Issuer)
		defer w.close()
		rest.Revoked, rest.Err = w.revoke(ctx, &r, credentials{identity: r.Client}, time.Now())
	}
	return rest
}
