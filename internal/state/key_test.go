package state

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Every run has the same key; a damaged one is replaced, so that nothing matches it.
func TestKey(t *testing.T) {
	path := t.TempDir()
	key := func() []byte {
		d, err := OpenDir(path)
		if err != nil {
			t.Fatal(err)
		}
		k, err := d.Key(t.Context())
		if err != nil || len(k) != keySize {
			t.Fatalf("%x, %v", k, err)
		}
		return k
	}
	first := key()
	if again := key(); !bytes.Equal(first, again) {
		t.Errorf("%x became %x", first, again)
	}
	if err := os.WriteFile(filepath.Join(path, keyFile), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other := key(); bytes.Equal(first, other) {
		t.Error("a damaged key was not replaced")
	}
	d, err := OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock(t.Context(), keyFile)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	key() // without waiting for who writes it
	info, err := os.Stat(filepath.Join(path, keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
