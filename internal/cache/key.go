package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/trust"
)

// maxTree is the maximum number of files in a folder that AddTree accepts.
const maxTree = 1000

// Key hashes everything that an entry depends on. Its parts may be secret; only
// the hash is visible.
type Key struct {
	h hash.Hash
}

// NewKey returns a key with its first parts.
func NewKey(parts ...string) *Key {
	k := &Key{sha256.New()}
	k.Add(parts...)
	return k
}

// Add adds texts. The boundary between two texts is significant.
func (k *Key) Add(parts ...string) {
	for _, p := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		k.h.Write(size[:])
		k.h.Write([]byte(p))
	}
}

// String returns the hash in hex.
func (k *Key) String() string { return hex.EncodeToString(k.h.Sum(nil)) }

// Program is a command whose output is cached.
type Program struct {
	Root  string   // the project root; files inside are compared by content
	Dir   string   // absolute path where it runs
	Argv  []string // expanded
	Env   []string // its complete environment, "K=V" entries
	Given []string // entries of Env from the settings, which are part of the key and whose values may name files too
}

// AddProgram adds a command: its words, the variables that the settings give it and
// the program itself, by size, times and location. Variables of the session, such as
// PATH, LANG and TMPDIR, do not count, except that PATH finds the program. It fails if
// the program cannot be found.
func (k *Key) AddProgram(p Program) error {
	path, err := p.path()
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	k.Add("program", p.Root, p.Dir)
	k.Add(p.Argv...)
	for _, variable := range slices.Sorted(slices.Values(p.Given)) {
		k.Add("env", variable)
	}
	k.file(real, info)
	return nil
}

func (p Program) path() (string, error) {
	return process.Spec{Argv: p.Argv, Dir: p.Dir, Env: p.Env}.Program()
}

// AddFiles adds the files that the words of a command name. Files inside the
// project are compared by content, as trust does; others by size, times and
// location. It fails if one cannot be read.
func (k *Key) AddFiles(p Program) error {
	path, err := p.path()
	if err != nil {
		return err
	}
	argv := append([]string{path}, p.Argv[1:]...)
	covered, err := trust.Cover(p.Root, nil,
		[]trust.Program{{Argv: argv, Dir: p.Dir, Env: p.Given, Inherited: p.Env}}, nil)
	if err != nil {
		return err
	}
	inside := map[string]bool{}
	for _, f := range covered {
		k.Add("content", f.Name, f.Path, f.Sum)
		inside[f.Path] = true
	}
	for _, word := range p.Argv[1:] {
		word = expand.From(p.Dir, word)
		real, err := filepath.EvalSymlinks(word)
		if err != nil || inside[real] {
			continue // not a file, or already covered
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
			k.file(real, info)
		}
	}
	return nil
}

// AddTree adds all files of a folder by size and times, except git's own. A
// folder with more than 1,000 files is an error.
func (k *Key) AddTree(dir string) error {
	n := 0
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		}
		if n++; n > maxTree {
			return fmt.Errorf("%s contains more than %d files", dir, maxTree)
		}
		info, err := os.Stat(path) // follow links
		if errors.Is(err, fs.ErrNotExist) {
			k.Add("nothing", path)
			return nil
		}
		if err != nil || info.IsDir() {
			return err
		}
		k.file(path, info)
		return nil
	})
}

func (k *Key) file(path string, info fs.FileInfo) {
	stamp, _ := trust.Stamp(info)
	k.Add("file", path, fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode()), stamp)
}
