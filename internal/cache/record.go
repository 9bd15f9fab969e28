package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/trust"
)

// Source identifies the record of a source.
type Source struct {
	Name string
	Key  string // hash of everything that the whole record depends on
}

// format is the version of the file format. Files of other versions are
// ignored.
const format = 2

// Kind is a kind of data about a source.
type Kind string

// The kinds of data. Sources may use others for what they offer besides tools.
const (
	Listing  Kind = "listing"  // the listing of the source
	Protocol Kind = "protocol" // how the source was reached
	Failure  Kind = "failure"  // how the source failed
	Seen     Kind = "seen"     // the last listing, for completion
)

// Record is the cached data of a source, by kind.
type Record map[Kind]Entry

// Entry is the cached data of one kind. Saving an entry without Facts and Parts removes
// the data of that kind.
type Entry struct {
	Key    string          // what the data depends on in addition to the key of the record; "" means nothing
	Facts  json.RawMessage // a JSON value defined by the source
	Parts  [][]byte        // output of the source, byte for byte
	Stored time.Time       // set when it is stored
}

func (r Record) isEmpty() bool {
	for _, e := range r {
		if !e.isEmpty() {
			return false
		}
	}
	return true
}

// equal reports whether two entries differ at most in when they were stored.
func (e Entry) equal(other Entry) bool {
	return e.Key == other.Key && bytes.Equal(e.Facts, other.Facts) &&
		slices.EqualFunc(e.Parts, other.Parts, bytes.Equal)
}

func (e Entry) isEmpty() bool { return len(e.Facts) == 0 && e.Parts == nil }

// header is the first line of a file. The parts of all entries follow it.
type header struct {
	Format  int           `json:"format"`
	Key     string        `json:"key"`
	Source  string        `json:"source"`
	CRC     uint32        `json:"crc"` // of the facts and the parts
	Entries []entryHeader `json:"entries"`
}

type entryHeader struct {
	Kind   Kind            `json:"kind"`
	Key    string          `json:"key,omitempty"`
	Stored time.Time       `json:"stored"`
	Sizes  []int           `json:"sizes,omitempty"` // of the parts, in bytes
	Facts  json.RawMessage `json:"facts,omitempty"`
}

func (r Record) encode(s Source) ([]byte, error) {
	h := header{Format: format, Key: s.Key, Source: s.Name}
	var parts [][]byte
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		e := r[kind]
		var facts bytes.Buffer // compact, as the encoder writes it, because the checksum covers these bytes
		if len(e.Facts) > 0 {
			if err := json.Compact(&facts, e.Facts); err != nil {
				return nil, fmt.Errorf("encoding the %s of %s: %w", kind, s.Name, err)
			}
		}
		eh := entryHeader{
			Kind:   kind,
			Key:    e.Key,
			Stored: e.Stored,
			Facts:  facts.Bytes(),
			Sizes:  make([]int, len(e.Parts)),
		}
		for i, p := range e.Parts {
			eh.Sizes[i] = len(p)
		}
		h.Entries, parts = append(h.Entries, eh), append(parts, e.Parts...)
	}
	h.CRC = checksum(h.Entries, parts)
	out, err := jsonx.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of %s: %w", s.Name, err)
	}
	return slices.Concat(append([][]byte{append(out, '\n')}, parts...)...), nil
}

func splitHeader(data []byte) (header, []byte, error) {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	var h header
	if !ok || json.Unmarshal(line, &h) != nil {
		return h, nil, errors.New("the file is damaged")
	}
	if h.Format != format {
		return h, nil, fmt.Errorf("the file has format %d, but this toolreg supports %d", h.Format, format)
	}
	return h, rest, nil
}

// decode decodes a file that was written for a source. The parts are slices of
// data.
func decode(data []byte, s Source) (Record, error) {
	h, rest, err := splitHeader(data)
	if err != nil {
		return nil, err
	}
	if h.Key != s.Key || h.Source != s.Name {
		return nil, errors.New("the file belongs to another source")
	}
	out, all := Record{}, [][]byte{}
	for _, eh := range h.Entries {
		e := Entry{Key: eh.Key, Facts: eh.Facts, Stored: eh.Stored}
		for _, n := range eh.Sizes {
			if n < 0 || n > len(rest) {
				return nil, errors.New("the file is damaged")
			}
			e.Parts, rest = append(e.Parts, rest[:n:n]), rest[n:]
		}
		out[eh.Kind], all = e, append(all, e.Parts...)
	}
	if len(rest) > 0 || checksum(h.Entries, all) != h.CRC {
		return nil, errors.New("the file is damaged")
	}
	return out, nil
}

// checksum detects damage by a disk or a crash; it does not protect against anyone who
// can write our files.
func checksum(entries []entryHeader, parts [][]byte) uint32 {
	var sum uint32
	for _, e := range entries {
		sum = crc32.Update(sum, crc32.IEEETable, e.Facts)
	}
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, p)
	}
	return sum
}

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
