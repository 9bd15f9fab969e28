package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

// recordVersion is the version of the file format of a record.
const recordVersion = 1

// record is a stored login. Each field is either public or secret; only [Login]
// is ever displayed.
type record struct {
	Version    int      `json:"version"`
	Key        string   `json:"key"`      // hash of the login's subject, see Client.key
	Server     string   `json:"server"`   // URL of the MCP server without its query
	Resource   string   `json:"resource"` // resource of the tokens
	Issuer     string   `json:"issuer"`   // issuer of the tokens
	TokenURL   string   `json:"tokenUrl"` // the only endpoint at which they are renewed
	RevokeURL  string   `json:"revokeUrl,omitempty"`
	Client     identity `json:"client"`
	Token      token    `json:"token"`
	ProofKey   string   `json:"proofKey,omitempty"` // private key (PEM) to which the tokens are bound
	Wanted     []string `json:"wanted,omitempty"`   // scopes that were missing since the login
	LoggedInAt int64    `json:"loggedInAt"`         // Unix seconds
	Of         string   `json:"of,omitempty"`       // client of serve whose login it is; "" means the person's
}

// identity is our client at an authorization server.
type identity struct {
	ID            string `json:"id"`
	Secret        string `json:"secret,omitempty"` // of a registered client; secrets of the settings are not stored
	Method        string `json:"method,omitempty"` // token_endpoint_auth_method
	RedirectURI   string `json:"redirectUri,omitempty"`
	Registered    bool   `json:"registered,omitempty"`    // by us, at the issuer of the record
	SecretExpires int64  `json:"secretExpires,omitempty"` // Unix seconds; 0 means never

	// Scopes are those with which the client was registered: some issuers give it no others. Empty
	// means that the issuer decides.
	Scopes []string `json:"scopes,omitempty"`

	// Doubted says that a login with a registered client has begun and not succeeded. An issuer
	// that has forgotten the client, or refuses it a scope, shows that only to the person in the
	// browser, so the next login registers another one.
	Doubted bool `json:"doubted,omitempty"`
}

// token is the response of a token endpoint.
type token struct {
	Access  string   `json:"access,omitempty"`
	Refresh string   `json:"refresh,omitempty"`
	Given   int64    `json:"given,omitempty"`   // Unix seconds
	Expires int64    `json:"expires,omitempty"` // Unix seconds; 0 means unknown
	Scopes  []string `json:"scopes,omitempty"`  // granted, or else requested
	Bound   bool     `json:"bound,omitempty"`   // to the ProofKey of the record
}

// expiryMargin is how many seconds before its end a token is treated as
// expired, so that it does not expire in transit. For short-lived tokens it is
// a quarter of their lifetime.
const expiryMargin = 20

// fresh reports whether the token can be sent. Setting the clock back does not
// make a token last longer.
func (t token) fresh(now time.Time) bool {
	left := t.Expires - now.Unix()
	return t.Access != "" &&
		(t.Expires == 0 || left > min(expiryMargin, (t.Expires-t.Given)/4) && now.Unix() >= t.Given-expiryMargin)
}

// Store stores logins in the user's state folder, in one file each, so that a
// connection locks only its own. It is safe for concurrent use, also by several
// processes.
type Store struct {
	// Open returns the folder. It is called when first needed. If it returns an
	// error, nothing can be stored.
	Open func() (*state.Dir, error)
	// Clients returns where the logins of clients of serve are stored instead. nil means in the
	// folder.
	Clients func(context.Context) (Place, error)
}

// Place is where logins are stored, by keys. It is safe for concurrent use, also by several
// processes.
type Place interface {
	// Read returns a login; nil if there is none.
	Read(ctx context.Context, key string) ([]byte, error)
	// Update replaces a login by the result of change, unless that is nil, while nobody else can
	// change it.
	Update(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error
	// Remove deletes a login.
	Remove(ctx context.Context, key string) error
	// Each calls use with each login and a function that deletes it, until use returns an error.
	Each(ctx context.Context, use func(data []byte, remove func(context.Context) error) error) error
}

const (
	filePrefix = "login-"
	fileSuffix = ".json"
)

// lockWait limits the wait for the lock of a login. Its holder may be connected
// to the authorization server.
const lockWait = 2*webTimeout + 10*time.Second

func (s *Store) dir() (*state.Dir, error) {
	d, err := s.Open()
	if err != nil {
		return nil, err
	}
	return &state.Dir{Path: d.Path, Wait: lockWait}, nil
}

// folder is a folder with a file for each login.
type folder struct{ *state.Dir }

func (f folder) Read(_ context.Context, key string) ([]byte, error) {
	data, err := f.Dir.Read(fileName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (f folder) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	return f.Dir.Update(ctx, fileName(key), change)
}

func (f folder) Remove(ctx context.Context, key string) error {
	return f.Dir.Remove(ctx, fileName(key))
}

// Each implements Place. A login that cannot be read is passed as nil.
func (f folder) Each(_ context.Context, use func([]byte, func(context.Context) error) error) error {
	names, err := f.Names(filePrefix, fileSuffix)
	for _, name := range names {
		data, _ := f.Dir.Read(name)
		if err := use(data, func(ctx context.Context) error { return f.Dir.Remove(ctx, name) }); err != nil {
			return err
		}
	}
	return err
}

func fileName(key string) string { return filePrefix + key[:32] + fileSuffix }

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
	if r.ProofKey != "" || r.Token.Bound { // no request can be made without the key
		if _, err := readProofKey(r.ProofKey); err != nil {
			return nil, err
		}
	}
	return &r, nil
}
