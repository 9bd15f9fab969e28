package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
