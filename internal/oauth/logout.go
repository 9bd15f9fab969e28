package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
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
	r, err := c.read(ctx)
	if errors.Is(err, errDamaged) {
		return Logout{Had: true}, c.remove(ctx)
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
	return out, c.remove(context.WithoutCancel(ctx))
}

// revoke revokes the tokens. It begins with the refresh token, which revokes
// both on most servers.
func (w *web) revoke(ctx context.Context, r *record, who credentials, now time.Time) (bool, error) {
	if r.RevokeURL == "" {
		return false, nil
	}
	for _, t := range []struct{ token, kind string }{{r.Token.Refresh, "refresh_token"}, {r.Token.Access, "access_token"}} {
		if t.token == "" {
			continue
		}
		status, _, err := w.post(ctx, r.RevokeURL, who, url.Values{"token": {t.token}, "token_type_hint": {t.kind}}, "", now)
		if err == nil && status != http.StatusOK {
			err = &statusError{status}
		}
		if err != nil {
			return false, fmt.Errorf("revoking the login at %s: %w", r.Issuer, err)
		}
	}
	return true, nil
}

// LogoutRest ends all remaining logins, such as those of servers that are no
// longer in the settings, and returns the URLs of their servers; "" for an
// unreadable login. It revokes tokens if that does not need a secret of the
// settings. It continues after a failure; err joins all errors.
func (s *Store) LogoutRest(ctx context.Context) (servers []string, err error) {
	d, err := s.dir()
	if err != nil {
		return nil, err
	}
	names, err := d.Names(filePrefix, fileSuffix)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if cause := context.Cause(ctx); cause != nil {
			return servers, cause
		}
		server := ""
		if data, readErr := d.Read(name); readErr == nil {
			server, readErr = revokeLeft(ctx, data)
			err = errors.Join(err, readErr)
		}
		if removeErr := d.Remove(context.WithoutCancel(ctx), name); removeErr != nil {
			err = errors.Join(err, removeErr)
			continue
		}
		servers = append(servers, server)
	}
	return servers, err
}

func revokeLeft(ctx context.Context, data []byte) (server string, err error) {
	var r record
	if json.Unmarshal(data, &r) != nil {
		return "", nil
	}
	if !r.Client.Registered && r.Client.Method != methodNone {
		return r.Server, nil
	}
	w := newWeb(r.Server, r.Issuer)
	defer w.close()
	_, err = w.revoke(ctx, &r, credentials{identity: r.Client}, time.Now())
	return r.Server, err
}
