package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Name is the name of the file in the project root.
const Name = "toolreg.lock"

const format = 1

// File is what a lock file holds. Tools is sorted by source, name and version.
type File struct {
	Version int     `json:"version"` // of the file's format
	Tools   []Entry `json:"tools"`
}

// Entry is one locked tool.
type Entry struct {
	Source      string `json:"source"`
	Name        string `json:"name"` // as its source gave it
	Version     string `json:"version,omitempty"`
	Fingerprint string `json:"fingerprint"`
	// Definition holds what the fingerprint covers, for people to read and for
	// diffs. It counts too: what a review has seen must be what is let in.
	Definition json.RawMessage `json:"definition"`
	// Override is what the settings make of the tool; nil if nothing.
	Override *Override `json:"override,omitempty"`
}

func (e *Entry) key() string { return e.Source + "\x00" + e.Name + "\x00" + e.Version }

// MaxFile bounds a lock file, in bytes.
const MaxFile = 64 << 20

// ErrUnusable is the error when there is no lock file that can be used: absent,
// not a regular file, damaged, of a later format.
var ErrUnusable = errors.New("no usable lock file")

// Read reads the lock file in dir. The error wraps ErrUnusable.
func Read(dir string) (*File, error) {
	path := filepath.Join(dir, Name)
	fail := func(err error) (*File, error) { return nil, fmt.Errorf("%w: %s: %w", ErrUnusable, path, err) }
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		err = errors.New("it is not a regular file")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fail(errors.New("it does not exist; run toolreg lock to create it"))
	}
	if err != nil {
		return fail(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return fail(err)
	}
	file, err := Decode(data)
	if err != nil {
		return fail(err)
	}
	return file, nil
}

// Decode reads the content of a lock file.
func Decode(data []byte) (*File, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("it is larger than the limit of %d bytes", MaxFile)
	}
	if err := registry.CheckJSON(data); err != nil { // of two keys one could be overlooked in review
		return nil, fmt.Errorf("it is damaged: %s", err.Message)
	}
	var f File
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if f.Version != format {
		return nil, fmt.Errorf("its format is version %d, but this toolreg supports version %d", f.Version, format)
	}
	seen := map[string]bool{}
	for i := range f.Tools {
		key := f.Tools[i].key()
		if seen[key] {
			return nil, fmt.Errorf("it is damaged: %s %s occurs twice", f.Tools[i].Source, f.Tools[i].Name)
		}
		seen[key] = true
	}
	return &f, nil
}

// Encode returns the content of the file: the same tools give the same bytes.
func (f *File) Encode() []byte {
	data, err := jsonx.Marshal(f)
	if err != nil { // strings and JSON alone: cannot fail
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return data
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// Write puts content in the place of the lock file in dir, whole or not at all.
func Write(dir string, content []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", Name, err)
	}
	defer root.Close()
	if err := atomicfile.Write(root, Name, content, atomicfile.Options{}); err != nil {
		return fmt.Errorf("writing %s: %w", Name, err)
	}
	return nil
}
