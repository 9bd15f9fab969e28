package state

import (
	"context"
	"crypto/rand"
)

const (
	keyFile = "key"
	keySize = 32 // bytes
)

// Key returns the random key of this folder, and creates it first if there is none. It
// is for hashes of values that may be secret: without the key, nobody can find a value
// by trying.
func (d *Dir) Key(ctx context.Context) ([]byte, error) {
	if key, err := d.Read(keyFile); err == nil && len(key) == keySize {
		return key, nil
	}
	var key []byte
	err := d.Update(ctx, keyFile, func(old []byte) ([]byte, error) {
		if key = old; len(key) == keySize {
			return nil, nil
		}
		key = make([]byte, keySize)
		_, err := rand.Read(key)
		return key, err
	})
	return key, err
}
