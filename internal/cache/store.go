// Package cache stores on disk what sources returned, so that a later run need not start
// them again. It stores only bytes: a source parses cached output exactly like fresh
// output, so that a cached run behaves like an uncached one. Package engine creates the
// [Store] and passes it to the sources.
//
// Each source has one [Record] in one file: its tool list, its protocol and its last
// failure. It is found by a [Key], a hash of everything known to affect the source: its
// settings, its program, its environment. Only the hash is stored.
package cache

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// Mode controls reading from and writing to the cache.
type Mode int

// The modes. Fresh neither reads nor writes if the time to live is 0.
const (
	Fresh   Mode = iota // read entries younger than the time to live
	Live                // read nothing; write as Fresh does
	Renew               // read nothing; write even without a time to live
	Offline             // read entries of any age; a source without one fails
)

// Limits of the cache.
const (
	maxRecord = state.MaxFile // bytes
	maxFiles  = 1000
	maxBytes  = 256 << 20
	maxAge    = 30 * 24 * time.Hour
)

// ErrNothingKept reports that a source must not be queried (mode Offline) and
// has no entry.
var ErrNothingKept = errors.New(
	"it is not in the cache, and --cached contacts no source; with cache.discovery set, toolreg discover fills the cache")

// Rule determines how data of one kind is used.
type Rule struct {
	TTL  time.Duration // how long the data is used; 0 means not at all
	Mode Mode
	// Lasting data that has not changed is stored again only in the second half of its time.
	Lasting bool
}

func (r Rule) reads() bool { return r.Mode == Offline || r.Mode == Fresh && r.TTL > 0 }
func (r Rule) keeps() bool { return r.Mode == Renew || r.TTL > 0 }

// usable reports whether an entry is neither too old nor from the future, as after
// the clock was set back.
func (r Rule) usable(e Entry, now time.Time) bool {
	age := now.Sub(e.Stored)
	return r.Mode == Offline || age >= 0 && age < r.TTL
}

// Options are the options of a [Store]. All are required.
type Options struct {
	Dir   func() (*state.Dir, error) // called when the store is first used
	Rules map[Kind]Rule              // data of other kinds is neither read nor written
	Now   func() time.Time
	Warn  func(registry.Diagnostic) // about files that are damaged
}

// Store is the cache of many sources, a record and a file for each. It is safe for
// concurrent use, and several processes may share its files, which are replaced
// atomically. If several processes change a record at the same time, some of the changes
// may be lost.
type Store struct {
	opts Options
	dir  func() (*state.Dir, error) // Options.Dir, called once

	mu      sync.Mutex
	served  map[string]time.Time // by the name of the source: when the listing in use was stored
	expired map[expiry]bool
	pending map[Source]Record
}

type expiry struct {
	source string
	kind   Kind
}

// NewStore returns a Store without opening any file.
func NewStore(o Options) *Store {
	return &Store{
		opts:    o,
		dir:     sync.OnceValues(o.Dir),
		served:  map[string]time.Time{},
		expired: map[expiry]bool{},
		pending: map[Source]Record{},
	}
}

// Active reports whether the store reads or writes data of a kind. If it does not,
// keys are not needed.
func (s *Store) Active(kind Kind) bool { return s.Reads(kind) || s.Keeps(kind) }

// Reads reports whether [Store.Load] can return data of a kind.
func (s *Store) Reads(kind Kind) bool { return s.opts.Rules[kind].reads() }

// Keeps reports whether [Store.Save] stores data of a kind.
func (s *Store) Keeps(kind Kind) bool { return s.opts.Rules[kind].keeps() }

// Load returns the part of a source's record that may be used: entries with the given
// keys that are not too old. The error is ErrNothingKept, and only if keys has [Listing],
// the mode for it is Offline, and the record has no listing. The other entries are
// returned with it.
func (s *Store) Load(source Source, keys map[Kind]string) (Record, error) {
	wanted := map[Kind]string{}
	s.mu.Lock()
	for kind, key := range keys {
		if s.opts.Rules[kind].reads() && !s.expired[expiry{source.Name, kind}] {
			wanted[kind] = key
		}
	}
	s.mu.Unlock()
	if len(wanted) == 0 {
		return nil, nil
	}
	record, err := s.readRecord(source)
	s.warnOf(source, err)
	now := s.opts.Now()
	maps.DeleteFunc(record, func(kind Kind, e Entry) bool {
		key, ok := wanted[kind]
		return !ok || e.Key != key || !s.opts.Rules[kind].usable(e, now)
	})
	_, listed := record[Listing]
	if _, ok := wanted[Listing]; ok && !listed && s.opts.Rules[Listing].Mode == Offline {
		return record, ErrNothingKept
	}
	return record, nil
}

// Facts returns the facts of one kind of a source's record that may be used, without reading what
// the source has listed; nil if there are none.
func (s *Store) Facts(source Source, kind Kind) json.RawMessage {
	rule := s.opts.Rules[kind]
	s.mu.Lock()
	expired := s.expired[expiry{source.Name, kind}]
	s.mu.Unlock()
	dir, err := s.dir()
	if err != nil || expired || !rule.reads() {
		return nil
	}
	h, err := readHeader(dir, source.file())
	if !errors.Is(err, fs.ErrNotExist) {
		s.warnOf(source, err)
	}
	if err != nil || h.Key != source.Key || h.Source != source.Name {
		return nil
	}
	for _, e := range h.Entries {
		if e.Kind == kind && rule.usable(Entry{Stored: e.Stored}, s.opts.Now()) {
			return e.Facts
		}
	}
	return nil
}

// warnOf warns about a file that cannot be used; err may be nil.
func (s *Store) warnOf(source Source, err error) {
	if err != nil {
		s.opts.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_damaged", Source: source.Name,
			Message: fmt.Sprintf("the cached tools of %s are ignored: %v", source.Name, err),
			Hint:    "they are replaced when the source answers"})
	}
}

// Serve records that this run uses the listing of a source that was stored at the given
// time.
func (s *Store) Serve(source string, stored time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[source] = stored
}

// Served returns when the listing that this run uses for a source was stored; ok is false if the
// source was queried.
func (s *Store) Served(source string) (kept time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok = s.served[source]
	return kept, ok
}

// Age returns the age of the listing used for a source; 0 if the source was
// queried.
func (s *Store) Age(source string) time.Duration {
	kept, ok := s.Served(source)
	if !ok {
		return 0
	}
	return max(s.opts.Now().Sub(kept), 0)
}

// Expire makes the store ignore a source's data of a kind from now on, in every mode.
func (s *Store) Expire(source string, kind Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired[expiry{source, kind}] = true
	if kind == Listing {
		delete(s.served, source)
	}
}

// Save replaces the entries of a source's record that are in r; an empty entry is
// removed. Flush writes them. Save ignores kinds that are not stored.
func (s *Store) Save(source Source, r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for kind, e := range r {
		if !s.opts.Rules[kind].keeps() {
			continue
		}
		if s.pending[source] == nil {
			s.pending[source] = Record{}
		}
		e.Stored = s.opts.Now()
		s.pending[source][kind] = e
	}
}

// Drop removes the record of a source in every mode. A missing record is not an error.
func (s *Store) Drop(ctx context.Context, source Source) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	return dir.Remove(ctx, source.file())
}

// Flush writes what was saved, except records that are too large, and removes old or
// excess files. Call it after the results are printed.
func (s *Store) Flush() error {
	s.mu.Lock()
	pending := s.pending
	s.pending = map[Source]Record{}
	s.mu.Unlock()
	changed := false
	for source, r := range pending {
		if s.holds(source, r) {
			continue
		}
		record, _ := s.readRecord(source) // a damaged record is replaced
		if record == nil {
			record = Record{}
		}
		maps.DeleteFunc(r, func(kind Kind, e Entry) bool { return s.isKnown(kind, e, record[kind]) })
		if len(r) == 0 {
			continue
		}
		before := len(record)
		maps.Copy(record, r)
		maps.DeleteFunc(record, func(_ Kind, e Entry) bool { return e.isEmpty() })
		if len(record) == before && r.isEmpty() {
			continue // there was nothing to remove
		}
		if err := s.writeRecord(source, record); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	dir, err := s.dir()
	if err != nil {
		return err
	}
	return dir.Sweep(s.opts.Now(), state.Bounds{Age: maxAge, Files: maxFiles, Bytes: maxBytes})
}

// holds reports whether a source's file has the entries of r, by its header alone: a listing can
// be large, and most runs save the same one again. It reports false if others have parts.
func (s *Store) holds(source Source, r Record) bool {
	dir, err := s.dir()
	if err != nil {
		return false
	}
	h, err := readHeader(dir, source.file())
	if err != nil || h.Key != source.Key || h.Source != source.Name {
		return false
	}
	left := maps.Clone(r)
	var parts [][]byte
	for _, stored := range h.Entries {
		e, saved := r[stored.Kind]
		if !slices.EqualFunc(e.Parts, stored.Sizes, func(part []byte, size int) bool { return len(part) == size }) ||
			saved && !s.isKnown(stored.Kind, e, Entry{stored.Key, stored.Facts, e.Parts, stored.Stored}) {
			return false
		}
		delete(left, stored.Kind)
		parts = append(parts, e.Parts...)
	}
	return left.isEmpty() && checksum(h.Entries, parts) == h.CRC
}

// isKnown reports whether an entry would change nothing but the age of the stored one, where
// that does not matter: for what was seen, and for lasting data in the first half of its time.
func (s *Store) isKnown(kind Kind, e, stored Entry) bool {
	if !e.equal(stored) {
		return false
	}
	rule, age := s.opts.Rules[kind], e.Stored.Sub(stored.Stored)
	return kind == Seen || rule.Lasting && age >= 0 && age < rule.TTL/2
}

func (s *Store) writeRecord(source Source, record Record) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	data, err := record.encode(source)
	if err != nil || len(data) > maxRecord {
		return err
	}
	return dir.Put(source.file(), data)
}

// filePrefix begins the names of files.
const filePrefix = "source-"

func (s Source) file() string { return filePrefix + s.Key }

func (s *Store) readRecord(source Source) (Record, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, nil // Flush reports it
	}
	data, err := dir.Read(source.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(data, source)
}

// Kept is one listing on disk.
type Kept struct {
	Source string
	Stored time.Time
	Bytes  int64 // of the file
}

// List returns all listings on disk, oldest first, regardless of their keys.
func (s *Store) List() ([]Kept, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	files, err := dir.Files()
	if err != nil {
		return nil, err
	}
	var out []Kept
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), filePrefix) {
			continue
		}
		h, err := readHeader(dir, f.Name()) // it may be removed meanwhile
		if i := slices.IndexFunc(h.Entries,
			func(e entryHeader) bool { return e.Kind == Listing }); err == nil && i >= 0 {
			out = append(out, Kept{h.Source, h.Entries[i].Stored, f.Size()})
		}
	}
	slices.SortStableFunc(out, func(a, b Kept) int { return a.Stored.Compare(b.Stored) })
	return out, nil
}

// readHeader reads the header of a file and nothing else.
func readHeader(dir *state.Dir, name string) (header, error) {
	f, err := dir.Open(name)
	if err != nil {
		return header{}, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxRecord)).ReadBytes('\n') // without a newline it is damaged
	h, _, err := splitHeader(line)
	return h, err
}
