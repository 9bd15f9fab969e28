// Package cache keeps on disk what sources gave and what was learned of them, so
// that a later run need not start them again (spec section 10). It knows bytes
// alone: a source reads what it gets back exactly as it reads what a program
// prints, so that a cached run gives what an uncached one does. cmd/toolreg makes
// the [Store] and hands it to the sources.
//
// An entry is found by a [Key], a hash of everything that what a source gives
// depends on as far as it can be known: its settings, its program, its
// environment. The hash alone is on disk, never what went into it.
package cache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// Mode says what is read and what is kept.
type Mode int

// The modes. Without a time to live, Fresh reads and keeps nothing.
const (
	Fresh   Mode = iota // what is younger than the time to live is read
	Live                // nothing is read; what sources give is kept as with Fresh
	Renew               // nothing is read; what sources give is kept even without a time to live
	Offline             // what there is is read, whatever its age; without any a source fails
)

// Limits of what is kept.
const (
	maxEntry = 32 << 20 // bytes of one entry
	maxFiles = 1000
	maxBytes = 256 << 20
	maxAge   = 30 * 24 * time.Hour
)

// ErrNothingKept tells that a source may not be asked (mode Offline) and that
// nothing is kept of it.
var ErrNothingKept = errors.New("it is not in the cache, and --cached contacts no source")

// Options say how a [Store] works. Only Dir is required.
type Options struct {
	Dir func() (*state.Dir, error) // called when the store is first read or written
	// Kind begins the names of the files: stores of several kinds share a folder.
	Kind string
	TTL  time.Duration // how long what is kept may stand for its source; 0 = not at all
	Mode Mode
	Now  func() time.Time // nil = time.Now
	// Warn is told of files that are damaged or cannot be written. nil: nobody is.
	Warn func(registry.Diagnostic)
}

// Store is what is kept of many sources. It is safe for concurrent use, and its
// files are for any number of processes: each is replaced as a whole.
type Store struct {
	opts Options
	dir  func() (*state.Dir, error) // Options.Dir, called once

	mu      sync.Mutex
	served  map[string]time.Time // by source: when what was recalled was kept
	expired map[string]bool      // sources that are to be asked
	pending []file
}

// file is an entry that is to be written.
type file struct {
	source, key string
	entry       Entry
}

// NewStore returns a Store that has touched nothing yet.
func NewStore(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(registry.Diagnostic) {}
	}
	return &Store{opts: o, dir: sync.OnceValues(o.Dir), served: map[string]time.Time{}, expired: map[string]bool{}}
}

// Active reports whether anything is read or kept: where nothing is, nobody
// needs a key.
func (s *Store) Active() bool { return s.reads() || s.keeps() }

func (s *Store) reads() bool {
	return s.opts.Mode == Offline || s.opts.Mode == Fresh && s.opts.TTL > 0
}

func (s *Store) keeps() bool { return s.opts.Mode == Renew || s.opts.TTL > 0 }

// Load returns what is kept of a source, if it may stand for what the source
// would give now. enough says whether an entry holds what this run needs; nil:
// any does. The error is ErrNothingKept, in the mode Offline alone.
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
		return Entry{}, false, nil // a clock that was set back makes nothing younger
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[source] = e.Stored
	return e, true, nil
}

// Served returns when that was kept which stands for a source in this run; ok is
// false for a source that was asked.
func (s *Store) Served(source string) (kept time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok = s.served[source]
	return kept, ok
}

// Age returns how old what stands for a source is, 0 for one that was asked.
func (s *Store) Age(source string) time.Duration {
	kept, ok := s.Served(source)
	if !ok {
		return 0
	}
	return max(s.opts.Now().Sub(kept), 0)
}

// Expire makes a source be asked from now on, in every mode.
func (s *Store) Expire(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired[source] = true
	delete(s.served, source)
}

// Save takes what a source gave just now, to be written by Flush. It does
// nothing where nothing is to be kept.
func (s *Store) Save(source, key string, e Entry) {
	if !s.keeps() {
		return
	}
	e.Stored = s.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, file{source, key, e})
}

// Drop removes what is kept under a key, in every mode. There may be nothing.
func (s *Store) Drop(ctx context.Context, key string) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	return dir.Remove(ctx, s.name(key))
}

// Flush writes what was kept. It is called when the results are out: nothing
// waits for it.
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

// write writes entries, but for those that are too large, and removes what is
// old or too much.
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

// read reads an entry. A file that is not as it should be is as good as none,
// but somebody may want to know.
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

// Kept is one entry as it lies on disk.
type Kept struct {
	Source string
	Stored time.Time
	Bytes  int64
}

// List tells what is kept, oldest first, whatever key it has.
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
	slices.SortFunc(out, func(a, b Kept) int { return a.Stored.Compare(b.Stored) })
	return out, nil
}
