package question

// The requestState is what a client of revision 2026-07-28 gets with a question and returns with
// the answer (multi round-trip requests).
//
// A state is encrypted and authenticated (AES-256-GCM) with a key derived from a secret that all
// processes of a service share. Each of them can read what another has made, and nobody else can
// read or change it. It is encrypted because it may contain what the client must not see: a
// server's own state may include params that the settings hide. Each state is valid for one answer;
// see [answeredStates].

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// AnswerTime is how long a client may take to answer.
const AnswerTime = 10 * time.Minute

// requestDigest identifies a request, or a question.
type requestDigest []byte

// digestOf returns the digest of parts. Only the last part may contain a NUL.
func digestOf(parts ...string) requestDigest {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return sum[:]
}

// Equal compares digests in constant time.
func (d requestDigest) Equal(other requestDigest) bool {
	return subtle.ConstantTimeCompare(d, other) == 1
}

// requestState is what a client carries from a question to its answer.
type requestState struct {
	// ID identifies the question, which can be answered once.
	ID string `json:"id"`
	// Owner is the account of the client; see [auth.Identity.Account].
	Owner string `json:"owner"`
	// Request is the digest of the request, which the client repeats.
	Request requestDigest `json:"request"`
	// Expires is set by [stateKeys.Seal].
	Expires int64 `json:"expires"` // Unix time in seconds
	// Stage is what a process needs to run the call from its beginning. If nil, only the process
	// where the call waits can continue it.
	Stage *callStage `json:"stage,omitempty"`
}

// callStage is the progress of a call that has had no effect yet. The client was asked the question
// of Server or, if that is nil, whether to allow the call.
type callStage struct {
	Approval *callApproval `json:"approval,omitempty"`
	Server   *serverStage  `json:"server,omitempty"`
}

// callApproval is the question whether to allow the call. A process that runs the call again
// applies the answer only to an equal question.
type callApproval struct {
	Question requestDigest `json:"question"`
	Decision string        `json:"decision,omitempty"` // empty if not answered yet
}

// serverStage is a result with which an MCP server asks for input (input_required).
type serverStage struct {
	Name  string   `json:"name"`
	State []byte   `json:"state,omitempty"` // its requestState as it sent it, JSON
	Keys  []string `json:"keys"`            // of its questions
	Round int      `json:"round"`           // how often it has asked, starting at 1
}

// The errors with which [stateKeys.Open] rejects a state.
var (
	errMalformed = errors.New("it was altered, or does not come from this server")
	errOtherKey  = errors.New("it was made with another key; give all processes of this server the same serve.stateKey")
	errExpired   = errors.New("it has expired, because the answer took longer than 10 minutes")
)

const (
	version = 1
	idSize  = 4          // of a key's id
	header  = 1 + idSize // version, id of the key
)

// stateKeys makes and reads states. Create it with [newStateKeys]. It is safe for concurrent use.
type stateKeys struct {
	mu  sync.Mutex
	all []*key // the current one first, then those whose states have not expired
}

type key struct {
	secret string // empty means a random one
	header [header]byte
	aead   cipher.AEAD
	until  time.Time // when its last state expires; zero for the current one
}

// newStateKeys returns keys derived from a secret. If it is "", the secret is random and
// no other process can read the states.
func newStateKeys(secret string) *stateKeys {
	return &stateKeys{all: []*key{newKey(secret)}}
}

// Shared reports whether other processes may read the states.
func (k *stateKeys) Shared() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.all, func(one *key) bool { return one.secret != "" && !one.over() })
}

// Change uses another secret for new states. States made with the previous secret remain
// valid until they expire.
func (k *stateKeys) Change(secret string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if secret == k.all[0].secret {
		return
	}
	k.all[0].until = time.Now().Add(AnswerTime)
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

// derive returns bytes that do not reveal the secret.
func derive(secret, purpose string, size int) []byte {
	out, err := hkdf.Key(sha256.New, []byte(secret), nil, "toolreg serve requestState: "+purpose, size)
	if err != nil {
		panic("requeststate: " + err.Error()) // the size is constant
	}
	return out
}

// Seal returns an encrypted state for a client. It sets Expires.
func (k *stateKeys) Seal(s *requestState) (string, error) {
	s.Expires = time.Now().Add(AnswerTime).Unix()
	plain, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	by := k.all[0]
	k.mu.Unlock()
	return base64.RawURLEncoding.EncodeToString(by.aead.Seal(by.header[:], nil, plain, by.header[:])), nil
}

// Open decrypts a state. The error is errMalformed, errOtherKey or errExpired.
func (k *stateKeys) Open(text string) (*requestState, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) < header || sealed[0] != version {
		return nil, errMalformed
	}
	k.mu.Lock()
	all := slices.Clone(k.all)
	k.mu.Unlock()
	i := slices.IndexFunc(all, func(by *key) bool { return by.header == [header]byte(sealed) && !by.over() })
	if i < 0 {
		return nil, errOtherKey
	}
	plain, err := all[i].aead.Open(nil, nil, sealed[header:], sealed[:header])
	s := &requestState{}
	if err != nil || json.Unmarshal(plain, s) != nil {
		return nil, errMalformed
	}
	if time.Now().Unix() >= s.Expires {
		return nil, errExpired
	}
	return s, nil
}

const (
	// maxAnswered is how many questions clients with one token may answer within the
	// lifetime of a state.
	maxAnswered = 100_000
	// sweepEvery is how often expired states are forgotten.
	sweepEvery = time.Minute
)

// Options configure questions to clients of revision 2026-07-28 and later, which
// return a state with each answer.
type Options struct {
	// Key is the secret that protects the states. Processes with the same key can
	// continue each other's calls. With an empty key, only this process can continue its calls.
	Key string
	// Store is where processes with the same key record answered questions. If nil, they use
	// Answered.
	Store *store.Store
	// Answered is the folder where processes with the same key record answered questions. If it is
	// nil too, each process knows only its own answers.
	Answered *state.Dir
	// Warn is called at most once, if Answered cannot be used. It is required if Answered is set.
	Warn func(error)
}

// answeredStates remembers answered questions until their states expire, so that each is answered
// only once. Create it with [newAnsweredStates]. It is safe for concurrent use.
type answeredStates struct {
	Options
	holder string // the id of this replica in the store

	mu      sync.Mutex
	byOwner map[string]map[string]time.Time // when each state expires, by ID
	swept   time.Time
	failed  sync.Once // warns that the state folder cannot be used
}

func newAnsweredStates(o Options, holder string) *answeredStates {
	return &answeredStates{Options: o, holder: holder, byOwner: map[string]map[string]time.Time{}}
}

var (
	// errAnswered is the error for a state whose question was answered before.
	errAnswered = errors.New("it was already answered")
	// errVoid is the error for a question that is not in the store, or no longer.
	errVoid = errors.New("it was already answered, or serve.store does not have the question: it was started again " +
		"since, which makes earlier answers void, or this process uses another database or prefix than the one that asked")
)

// Asked records that a question was asked, which is needed to record its answer once. It returns an
// error if that fails.
func (a *answeredStates) Asked(ctx context.Context, id string) error {
	if a.Store == nil {
		return nil
	}
	if err := a.Store.Put(ctx, waitingKind, id, []byte(a.holder), AnswerTime+sweepEvery); err != nil {
		return err
	}
	return a.Store.Offer(ctx, questionKind, id, nil, AnswerTime+sweepEvery)
}

const (
	// questionKind is the kind of values in the store for unanswered questions.
	questionKind = "question"
	// waitingKind is the kind of values that say which process holds the call that waits for an
	// answer.
	waitingKind = "waiting"
)

// Claim records that a question is being answered. It returns [errAnswered] if the question was
// answered in this process before, or another error if the owner has answered too many.
func (a *answeredStates) Claim(owner, id string) error {
	a.sweep(time.Now())
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.byOwner[owner]
	if own == nil {
		own = map[string]time.Time{}
		a.byOwner[owner] = own
	}
	switch {
	case !own[id].IsZero():
		return errAnswered
	case len(own) >= maxAnswered:
		return fmt.Errorf("more than %d questions were answered within %s", maxAnswered, AnswerTime)
	}
	own[id] = time.Now().Add(AnswerTime)
	return nil
}

// Release undoes a claim.
func (a *answeredStates) Release(owner, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byOwner[owner], id)
}

// Record makes a claim visible to other processes. It returns [errAnswered] or [errVoid] if one of
// them may have been first, and a *store.UnavailableError if that is unknown.
func (a *answeredStates) Record(ctx context.Context, id string) error {
	if a.Store != nil {
		v, err := a.Store.Take(ctx, questionKind, id)
		if err == nil && !v.Exists() {
			return errVoid
		}
		return err
	}
	if a.Answered == nil {
		return nil
	}
	file, err := a.Answered.Create(id)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errAnswered
	case err != nil:
		a.failed.Do(func() { a.Warn(err) })
	default:
		_ = file.Close()
	}
	return nil
}

// Taken reports whether, according to the folder, another process has taken the answer to a
// question.
func (a *answeredStates) Taken(id string) bool {
	if a.Store != nil || a.Answered == nil {
		return false
	}
	_, err := a.Answered.Read(id)
	return err == nil && !a.claimed(id) // this process claims before it records
}

// claimed reports whether this process is taking, or has taken, the answer to a question.
func (a *answeredStates) claimed(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, own := range a.byOwner {
		if !own[id].IsZero() {
			return true
		}
	}
	return false
}

// Has reports whether a question was answered, in this process or in one that shares the store or
// the state folder.
func (a *answeredStates) Has(ctx context.Context, id string) bool {
	if a.claimed(id) {
		return true
	}
	if a.Store != nil {
		v, err := a.Store.Look(ctx, questionKind, id)
		return err == nil && !v.Exists()
	}
	return a.Taken(id)
}

// sweep removes expired states.
func (a *answeredStates) sweep(now time.Time) {
	a.mu.Lock()
	due := now.Sub(a.swept) >= sweepEvery
	if due {
		a.swept = now
		for owner, own := range a.byOwner {
			maps.DeleteFunc(own, func(_ string, expired time.Time) bool { return now.After(expired) })
			if len(own) == 0 {
				delete(a.byOwner, owner)
			}
		}
	}
	a.mu.Unlock()
	if due && a.Answered != nil {
		_ = a.Answered.Sweep(now, state.Bounds{Age: AnswerTime}) // the next one tries again
	}
}
