package serve

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/store"
)

const (
	// loginPath is the path below which the users of clients log in to servers.
	loginPath = "/login/"
	// loginReturn is the path to which their browsers come back.
	loginReturn = loginPath + "callback"
	// loginTime is how long a login may take.
	loginTime = 10 * time.Minute
	// loginPoll is how often a call looks whether its user has logged in.
	loginPoll = 500 * time.Millisecond
	// maxLogins is how many logins may wait for browsers, and maxLoginsOwn how many of one client.
	maxLogins    = 1000
	maxLoginsOwn = 20
	loginKind    = "login"
)

// login is a login of a client to a server (oauth.per: client) for which a browser is awaited. It
// has secrets.
type login struct {
	Client  string    `json:"client"`
	Server  string    `json:"server"`
	Base    string    `json:"base"` // of the addresses of this server
	Until   time.Time `json:"until"`
	Browser auth.Hash `json:"browser"`           // of the cookie of the browser that has shown the token of the client; zero: none has
	Pending []byte    `json:"pending,omitempty"` // see [engine.Connections.BeginLogin]
	Done    bool      `json:"done,omitempty"`
	Replica string    `json:"replica,omitempty"` // where it was completed
}

// logins are the logins that wait for browsers: in memory or, with a store, where all replicas see
// them. It is safe for concurrent use.
type logins struct {
	store *store.Store // nil: in memory

	mu   sync.Mutex
	byID map[string]login
}

var errManyLogins = errors.New("too many logins wait for a browser; try again later")

// put keeps a login until its time is over.
func (l *logins) put(ctx context.Context, id string, one login) error {
	if l.store != nil {
		data, err := json.Marshal(one)
		if err != nil {
			return err
		}
		return l.store.Put(ctx, loginKind, id, data, time.Until(one.Until))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := 0
	for id, other := range l.byID {
		if time.Now().After(other.Until) {
			delete(l.byID, id)
		} else if other.Client == one.Client {
			own++
		}
	}
	if _, known := l.byID[id]; !known && (own >= maxLoginsOwn || len(l.byID) >= maxLogins) {
		return errManyLogins
	}
	if l.byID == nil {
		l.byID = map[string]login{}
	}
	l.byID[id] = one
	return nil
}

// find returns a login; ok is false if there is none.
func (l *logins) find(ctx context.Context, id string) (one login, ok bool, err error) {
	if l.store != nil {
		v, err := l.store.Get(ctx, loginKind, id)
		if err != nil || !v.Exists() || json.Unmarshal(v.Data, &one) != nil {
			return login{}, false, err
		}
		return one, time.Now().Before(one.Until), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok = l.byID[id]
	return one, ok && time.Now().Before(one.Until), nil
}
