package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"
)

// sealer seals values and hides names.
type sealer struct {
	aead   cipher.AEAD // AES-256-GCM with random nonces
	naming []byte      // the key of names
	derive func(purpose string) []byte
}

// errForeign is the error for what was not sealed with this key and for this name.
var errForeign = errors.New("not sealed by a replica of this server")

func newSealer(secret string) sealer {
	derive := func(purpose string) []byte {
		out, err := hkdf.Key(sha256.New, []byte(secret), nil, "toolreg serve store: "+purpose, 32)
		if err != nil {
			panic("store: " + err.Error()) // the size is constant
		}
		return out
	}
	block, err := aes.NewCipher(derive("encryption"))
	if err != nil {
		panic("store: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("store: " + err.Error())
	}
	return sealer{aead, derive("names"), derive}
}

// seal encrypts data. It can only be opened for the same name.
func (s sealer) seal(name string, data []byte) string {
	return string(s.aead.Seal(nil, nil, data, []byte(name)))
}

func (s sealer) open(name, sealed string) ([]byte, error) {
	data, err := s.aead.Open(nil, nil, []byte(sealed), []byte(name))
	if err != nil {
		return nil, errForeign
	}
	return data, nil
}

func (s sealer) hash(kind, id string) string {
	mac := hmac.New(sha256.New, s.naming)
	mac.Write([]byte(kind + "\x00" + id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// Derive returns a key of 32 bytes that all replicas have, for one purpose.
func (s *Store) Derive(purpose string) []byte { return s.sealer.derive(purpose) }

// freshness is what a process knows of the age of values: each is sealed with a counter that is higher
// than that of the value it replaces, so whoever can write to the server cannot put an earlier one
// back, such as an approval that was revoked, or an answer that was taken. The zero value has seen nothing. It is
// safe for concurrent use.
//
// A counter is the time at which a value was sealed, or one more than that of the value before if the
// clock is behind. So processes that have not seen the same values agree about the order, also after
// the server has lost them.
type freshness struct {
	mu   sync.Mutex
	seen map[string]uint64 // highest counters by name
	old  map[string]uint64 // those that were not used since seen became full
}

// maxSeen is how many names each of the maps of freshness has.
const maxSeen = 1 << 15

// highest returns the highest counter that was seen. mu is held.
func (f *freshness) highest(name string) uint64 { return max(f.seen[name], f.old[name]) }

// known is highest, for those who do not hold mu.
func (f *freshness) known(name string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest(name)
}

// set remembers a counter. mu is held.
func (f *freshness) set(name string, counter uint64) {
	if f.seen == nil || len(f.seen) >= maxSeen {
		f.old, f.seen = f.seen, map[string]uint64{}
	}
	f.seen[name] = counter
}

// accept reports whether a value has not been replaced by a later one.
func (f *freshness) accept(name string, counter uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if counter < f.highest(name) {
		return false
	}
	f.set(name, counter)
	return true
}

// next returns the counter of a new value.
func (f *freshness) next(name string, now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.highest(name)+1, uint64(now.UnixNano()))
}

// over makes a name's value invalid: the one with a counter, or all that were seen.
func (f *freshness) over(name string, counter uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if highest := max(counter, f.highest(name)); highest > 0 {
		f.set(name, highest+1)
	}
}

// counted is appended to the name with which values with a counter are sealed.
const counted = "\x00counted"

// openCounted opens what [Store.seal] has sealed. Values that were stored without a counter, by earlier
// versions, have 0.
func (s sealer) openCounted(name, sealed string) (counter uint64, data []byte, err error) {
	data, err = s.open(name+counted, sealed)
	if err == nil && len(data) >= 8 {
		return binary.BigEndian.Uint64(data), data[8:], nil
	}
	data, err = s.open(name, sealed)
	return 0, data, err
}
