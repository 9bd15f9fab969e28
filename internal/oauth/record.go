package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

// recordVersion is the version of the layout of a record's file.
const recordVersion = 1

// record is what is stored of one login. Every field is either public or a secret;
// none is shown but through [Login].
type record struct {
	Version    int      `json:"version"`
	Key        string   `json:"key"`      // hash of what the login is for, see Client.key
	Server     string   `json:"server"`   // address of the MCP server without its query
	Resource   string   `json:"resource"` // what the tokens are for
	Issuer     string   `json:"issuer"`   // who gave them
	TokenURL   string   `json:"tokenUrl"` // where they are renewed, never anywhere else
	RevokeURL  string   `json:"revokeUrl,omitempty"`
	Client     identity `json:"client"`
	Token      token    `json:"token"`
	Wanted     []string `json:"wanted,omitempty"` // scopes that the server missed since the login
	LoggedInAt int64    `json:"loggedInAt"`       // Unix seconds
}

// identity is who we are to an authorization server.
type identity struct {
	ID            string `json:"id"`
	Secret        string `json:"secret,omitempty"` // of a registered client; one of the settings is not kept
	Method        string `json:"method,omitempty"` // token_endpoint_auth_method
	RedirectURI   string `json:"redirectUri,omitempty"`
	Registered    bool   `json:"registered,omitempty"`    // by us, at the issuer of the record
	SecretExpires int64  `json:"secretExpires,omitempty"` // Unix seconds; 0 = never
}

// token is what a token endpoint gave.
type token struct {
	Access  string   `json:"access,omitempty"`
	Refresh string   `json:"refresh,omitempty"`
	Given   int64    `json:"given,omitempty"`   // Unix seconds
	Expires int64    `json:"expires,omitempty"` // likewise; 0 = not said
	Scopes  []string `json:"scopes,omitempty"`  // granted; asked for where nothing was said
}

// expiryMargin is how many seconds before its end a token counts as expired, so that it
// does not run out on its way. Of a short life it is a quarter.
const expiryMargin = 20

// fresh reports whether the token can be sent. A clock that was set back makes
// none last longer.
func (t token) fresh(now time.Time) bool {
	left := t.Expires - now.Unix()
	return t.Access != "" && (t.Expires == 0 || left > min(expiryMargin, (t.Expires-t.Given)/4) && now.Unix() >= t.Given-expiryMargin)
}

// errDamaged tells of a file that this program did not write.
var errDamaged = errors.New("the stored login cannot be read")

// Store holds logins in the user's state directory, one file for each, so that
// a connection reads and locks no other's. It is safe for concurrent use, by
// several processes too.
type Store struct {
	// Open returns the directory. It is called when it is needed first; its
	// error means that nothing can be kept.
	Open func() (*state.Dir, error)
}

const (
	filePrefix = "login-"
	fileSuffix = ".json"
)

// lockWait is how long the lock of a login is waited for: its holder may be
// talking to the authorization server.
const lockWait = 2*webTimeout + 10*time.Second

func (s *Store) dir() (*state.Dir, error) {
	d, err := s.Open()
	if err != nil {
		return nil, err
	}
	return &state.Dir{Path: d.Path, Wait: lockWait}, nil
}

func fileName(key string) string { return filePrefix + key[:32] + fileSuffix }

// keyOf hashes what a login is for: nothing of it can be changed without losing
// the login.
func keyOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func parseRecord(data []byte, key string) (*record, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, errDamaged // the reason could quote a token
	}
	if r.Version > recordVersion {
		return nil, fmt.Errorf("%w: it was written by a newer toolreg", errDamaged)
	}
	if r.Version < 1 || r.Key != key || r.TokenURL == "" {
		return nil, errDamaged
	}
	return &r, nil
}

// read returns the record of a key, nil where there is none.
func (s *Store) read(key string) (*record, error) {
	d, err := s.dir()
	if err != nil {
		return nil, err
	}
	data, err := d.Read(fileName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseRecord(data, key)
}

// update replaces a record under its lock. change gets nil where there is none
// or none that can be read; what it returns is saved, nil leaves all as it is.
func (s *Store) update(ctx context.Context, key string, change func(*record) (*record, error)) error {
	d, err := s.dir()
	if err != nil {
		return err
	}
	return d.Update(ctx, fileName(key), func(old []byte) ([]byte, error) {
		was, _ := parseRecord(old, key) // of a damaged one nothing can be used
		r, err := change(was)
		if err != nil || r == nil {
			return nil, err
		}
		r.Version, r.Key = recordVersion, key
		data, err := json.MarshalIndent(r, "", "  ")
		return append(data, '\n'), err
	})
}

func (s *Store) remove(ctx context.Context, key string) error {
	d, err := s.dir()
	if err != nil {
		return err
	}
	return d.Remove(ctx, fileName(key))
}
