// Package cache stores on disk what sources returned, so that a later run need
// not start them again (spec section 10). It stores only bytes: a source parses
// cached output exactly like fresh output, so that a cached run behaves like an
// uncached one. Package session creates the [Store] and passes it to the
// sources.
//
// An entry is found by a [Key], a hash of everything known to affect the
// source's output: its settings, its program, its environment. Only the hash is
// stored.
package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sorted"
	"github.com/toolreg/toolreg/internal/state"
)

// Mode controls reading from and writing to the cache.
type Mode int

// The modes. Fresh does nothing if there is no time to live.
const (
	Fresh   Mode = iota // read entries younger than the time to live
	Live                // read nothing; write as Fresh does
	Renew               // read nothing; write even without a time to live
	Offline             // read entries of any age; a source without one fails
)

// Limits of the cache.
const (
	maxEntry = 32 << 20 // bytes of one entry
	maxFiles = 1000
	maxBytes = 256 << 20
	maxAge   = 30 * 24 * time.Hour
)

// ErrNothingKept reports that a source must not be queried (mode Offline) and
// has no entry.
var ErrNothingKept = errors.New("it is not in the cache, and --cached contacts no source")

// Options are the options of a [Store]. Only Dir is required.
type Options struct {
	Dir func() (*state.Dir, error) // called when the store is first used
	// Kind is the prefix of the file names, so that stores of several kinds can
	// share a folder.
	Kind string
	TTL  time.Duration // how long entries are used; 0 = never
	Mode Mode
	Now  func() time.Time // nil = time.Now
	// Warn receives diagnostics about files that are damaged or cannot be
	// written. May be nil.
	Warn func(registry.Diagnostic)
}

// Store is the cache of many sources. It is safe for concurrent use, and
// several processes may share its files, which are replaced atomically.
type Store struct {
	opts Options
	dir  func() (*state.Dir, error) // Options.Dir, called once

	mu      sync.Mutex
	served  map[string]time.Time // by source: when the entry in use was stored
	expired map[string]bool      // sources to query
	pending []file
}

// file is an entry to write.
type file struct {
	source, key string
	entry       Entry
}

// NewStore returns a Store without opening any file.
func NewStore(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(registry.Diagnostic) {}
	}
	return &Store{opts: o, dir: sync.OnceValues(o.Dir), served: map[string]time.Time{}, expired: map[string]bool{}}
}

// Active reports whether the store reads or writes anything. If it does not,
// keys are not needed.
func (s *Store) Active() bool { return s.reads() || s.keeps() }

func (s *Store) reads() bool {
	return s.opts.Mode == Offline || s.opts.Mode == Fresh && s.opts.TTL > 0
}

func (s *Store) keeps() bool { return s.opts.Mode == Renew || s.opts.TTL > 0 }

// Load returns the cached entry of a source if it may be used in place of the
// source. enough reports whether an entry is sufficient for this run; nil
// accepts all. The error is ErrNothingKept, only in the mode Offline.
func (s *Store) Load(source, key string, enough func(Entry) bool) (e Entry, ok bool, err error) {
	s.mu.Lock()
	skip := s.expired[source]
	s.mu.Unlock()
	if skip || !s.reads() {
		return Entry{}, false, nil
	}
	e, ok = s.read(source, key)
	if s.opts.Mode == Offline {
		if !ok {
			return Entry{}, false, ErrNothingKept
		}
	} else if age := s.opts.Now().Sub(e.Stored); !ok || age < 0 || age >= s.opts.TTL || enough != nil && !enough(e) {
		return Entry{}, false, nil // an entry from the future, after the clock was set back
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[source] = e.Stored
	return e, true, nil
}

// Served returns when the entry was stored that this run uses for a source; ok
// is false if the source was queried.
func (s *Store) Served(source string) (kept time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok = s.served[source]
	return kept, ok
}

// Age returns the age of the entry used for a source; 0 if the source was
// queried.
func (s *Store) Age(source string) time.Duration {
	kept, ok := s.Served(source)
	if !ok {
		return 0
	}
	return max(s.opts.Now().Sub(kept), 0)
}

// Expire disables the entry of a source from now on, in every mode.
func (s *Store) Expire(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired[source] = true
	delete(s.served, source)
}

// Save records the output of a source, which Flush writes. It does nothing if
// the mode does not write.
func (s *Store) Save(source, key string, e Entry) {
	if !s.keeps() {
		return
	}
	e.Stored = s.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, file{source, key, e})
}

// Drop removes the entry under a key, if there is one, in every mode.
func (s *Store) Drop(ctx context.Context, key string) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	return dir.Remove(ctx, s.name(key))
}

// Flush writes the recorded entries. Call it after the results are printed.
func (s *Store) Flush() {
	s.mu.Lock()
	pending := s.pending
	s.pending = nil
	s.mu.Unlock()
	if len(pending) == 0 {
		return
	}
	if err := s.write(pending); err != nil {
		s.opts.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_not_kept", Message: "tool lists cannot be cached: " + err.Error(),
			Hint: "set cache.discovery: 0 to disable the cache"})
	}
}

// write writes entries except those that are too large, and removes old or
// excess ones.
func (s *Store) write(entries []file) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	for _, f := range entries {
		data, err := f.entry.encode(f.source, f.key)
		if err == nil && len(data) <= maxEntry {
			err = dir.Put(s.name(f.key), data)
		}
		if err != nil {
			return err
		}
	}
	return dir.Sweep(s.opts.Now(), state.Bounds{Age: maxAge, Files: maxFiles, Bytes: maxBytes})
}

func (s *Store) name(key string) string { return s.opts.Kind + "-" + key }

// read reads an entry. A damaged file is ignored, with a warning.
func (s *Store) read(source, key string) (Entry, bool) {
	dir, err := s.dir()
	if err != nil {
		return Entry{}, false
	}
	data, err := dir.Read(s.name(key))
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, false
	}
	var e Entry
	if err == nil {
		e, err = decode(data, source, key)
	}
	if err != nil {
		s.opts.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_damaged", Source: source,
			Message: fmt.Sprintf("the cached tools of %s are ignored: %v", source, err), Hint: "they are replaced when the source answers"})
		return Entry{}, false
	}
	return e, true
}

// Kept is one entry on disk.
type Kept struct {
	Source string
	Stored time.Time
	Bytes  int64
}

// List returns all entries on disk, oldest first, regardless of their keys.
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
		if !strings.HasPrefix(f.Name(), s.name("")) {
			continue
		}
		data, err := dir.Read(f.Name())
		if err != nil {
			continue // removed meanwhile
		}
		if h, _, err := cut(data); err == nil {
			out = append(out, Kept{h.Source, h.Stored, f.Size()})
		}
	}
	sorted.Stable(out, func(a, b Kept) int { return a.Stored.Compare(b.Stored) })
	return out, nil
}
