// Package requeststate makes the requestState that a client of revision 2026-07-28
// gets with a question and returns with the answer (multi round-trip requests).
//
// A state is encrypted and authenticated (AES-256-GCM), with a key derived from a
// secret that all processes of a service share: each of them can read what another
// one has made, and nobody else can read or change it. It is encrypted because it
// may hold what the client must not see: a server's own state may have params in it
// that the settings hide. Each state is good for one answer, see [Answered].
package requeststate

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lifetime is how long a client may take to answer.
const Lifetime = 10 * time.Minute

// Digest identifies a request, or a question.
type Digest []byte

// DigestOf returns the digest of parts, none of which but the last has a NUL.
func DigestOf(parts ...string) Digest {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return sum[:]
}

// Equal compares digests in constant time.
func (d Digest) Equal(other Digest) bool { return subtle.ConstantTimeCompare(d, other) == 1 }

// State is what a client carries from a question to its answer.
type State struct {
	// ID is that of the question, which is answered once.
	ID string `json:"id"`
	// Owner is the name of the client's token.
	Owner string `json:"owner"`
	// Request is the digest of the request, which the client repeats.
	Request Digest `json:"request"`
	// Expires is set by [Keys.Seal].
	Expires int64 `json:"expires"` // Unix time in seconds
	// Stage is what a process needs to run the call from its beginning. nil: only the
	// process in which it waits can continue it.
	Stage *Stage `json:"stage,omitempty"`
}

// Stage is how far a call has got that has had no effect yet. The client was asked
// Server's question or, if that is nil, whether to allow the call.
type Stage struct {
	Approval *Approval `json:"approval,omitempty"`
	Server   *Server   `json:"server,omitempty"`
}

// Approval is the question whether to allow the call. A process that runs the call
// again applies the answer only to the same question.
type Approval struct {
	Question Digest `json:"question"`
	Decision string `json:"decision,omitempty"` // "" = not answered yet
}

// Server is the result of an MCP server that asks for input (input_required).
type Server struct {
	Name  string   `json:"name"`
	State []byte   `json:"state,omitempty"` // its requestState as it sent it, JSON
	Keys  []string `json:"keys"`            // of its questions
	Round int      `json:"round"`           // how often it has asked, from 1
}

// The reasons for which [Keys.Open] refuses a state.
var (
	ErrMalformed = errors.New("it was altered, or does not come from this server")
	ErrOtherKey  = errors.New("it was made with another key; give all processes of this server the same serve.stateKey")
	ErrExpired   = errors.New("it has expired, because the answer took longer than 10 minutes")
)

const (
	version = 1
	idSize  = 4          // of a key's id
	header  = 1 + idSize // version, id of the key
)

// Keys makes and reads states. Create it with [New]. It is safe for concurrent use.
type Keys struct {
	mu  sync.Mutex
	all []*key // the current one and, after it, those whose states have not expired
}

type key struct {
	secret string // "" = random
	header [header]byte
	aead   cipher.AEAD
	until  time.Time // when its last state expires; zero for the current one
}

// New returns Keys for a secret; "" stands for a random one, so that no other process
// can read the states.
func New(secret string) *Keys {
	return &Keys{all: []*key{newKey(secret)}}
}

// Shared reports whether other processes may read the states.
func (k *Keys) Shared() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.all, func(one *key) bool { return one.secret != "" && !one.over() })
}

// Change makes new states with another secret. States made with the one before are
// read until they expire.
func (k *Keys) Change(secret string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if secret == k.all[0].secret {
		return
	}
	k.all[0].until = time.Now().Add(Lifetime)
	k.all = append([]*key{newKey(secret)}, slices.DeleteFunc(k.all, (*key).over)...)
}

func (k *key) over() bool { return !k.until.IsZero() && !time.Now().Before(k.until) }

func newKey(secret string) *key {
	k := &key{secret: secret}
	if secret == "" {
		secret = rand.Text()
	}
	k.header[0] = version
	copy(k.header[1:], derive(secret, "id of the key", idSize))
	block, err := aes.NewCipher(derive(secret, "encryption", 32))
	if err == nil {
		k.aead, err = cipher.NewGCMWithRandomNonce(block)
	}
	if err != nil {
		panic("requeststate: " + err.Error()) // the sizes are constant
	}
	return k
}

// derive returns bytes that reveal nothing about the secret.
func derive(secret, purpose string, size int) []byte {
	out, err := hkdf.Key(sha256.New, []byte(secret), nil, "toolreg serve requestState: "+purpose, size)
	if err != nil {
		panic("requeststate: " + err.Error()) // the size is constant
	}
	return out
}

// Seal returns a state for a client. It sets Expires.
func (k *Keys) Seal(s *State) (string, error) {
	s.Expires = time.Now().Add(Lifetime).Unix()
	plain, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	by := k.all[0]
	k.mu.Unlock()
	return base64.RawURLEncoding.EncodeToString(by.aead.Seal(by.header[:], nil, plain, by.header[:])), nil
}

// Open reads a state. The error is one of the reasons above.
func (k *Keys) Open(text string) (*State, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) < header || sealed[0] != version {
		return nil, ErrMalformed
	}
	by := k.find([header]byte(sealed))
	if by == nil {
		return nil, ErrOtherKey
	}
	plain, err := by.aead.Open(nil, nil, sealed[header:], sealed[:header])
	s := &State{}
	if err != nil || json.Unmarshal(plain, s) != nil {
		return nil, ErrMalformed
	}
	if time.Now().Unix() >= s.Expires {
		return nil, ErrExpired
	}
	return s, nil
}

// find returns the key that made a state; nil if it is none of ours. The header is not
// secret.
func (k *Keys) find(made [header]byte) *key {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.all, func(one *key) bool { return one.header == made && !one.over() })
	if i < 0 {
		return nil
	}
	return k.all[i]
}
