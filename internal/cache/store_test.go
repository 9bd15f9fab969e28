package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// shelf is a folder that several stores use, each as a separate run.
type shelf struct {
	dir   *state.Dir
	now   time.Time
	warns []registry.Diagnostic
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	dir, err := state.OpenDir(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{dir: dir, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
}

func (s *shelf) run(ttl time.Duration, mode Mode) *Store {
	return NewStore(Options{Rules: listingsFor(ttl, mode), Dir: func() (*state.Dir, error) { return s.dir, nil },
		Now: func() time.Time { return s.now }, Warn: func(d registry.Diagnostic) { s.warns = append(s.warns, d) }})
}

func listingsFor(ttl time.Duration, mode Mode) map[Kind]Rule {
	return map[Kind]Rule{Listing: {TTL: ttl, Mode: mode}, Protocol: {TTL: ttl, Mode: mode, Lasting: true}}
}

func (s *shelf) keep(t testing.TB, store *Store, r Record) {
	t.Helper()
	store.Save(src, r)
	if err := store.Flush(); err != nil {
		t.Error(err)
	}
}

func (s *shelf) files(t *testing.T) []fs.FileInfo {
	t.Helper()
	files, err := s.dir.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// load returns the listing of src.
func load(store *Store) (Entry, bool, error) {
	r, err := store.Load(src, map[Kind]string{Listing: "files"})
	e, ok := r[Listing]
	return e, ok, err
}

const key = "0123abcd"

var src = Source{"src", key}

func example() Record {
	return Record{
		Listing:  {Key: "files", Facts: []byte(`{"a":"<&>","n":12345678901234567890}`), Parts: [][]byte{[]byte("one\n{"), {}, []byte("\xff\x00two")}},
		Protocol: {Facts: []byte(`"modern"`)},
	}
}

func TestLoadReturnsSavedBytes(t *testing.T) {
	s := newShelf(t)
	want := example()
	s.keep(t, s.run(time.Hour, Fresh), want)
	got, err := s.run(time.Hour, Fresh).Load(src, map[Kind]string{Listing: "files", Protocol: ""})
	if err != nil {
		t.Fatal(err)
	}
	for kind, e := range want {
		e.Stored = s.now
		want[kind] = e
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(s.warns) > 0 {
		t.Error(s.warns)
	}
}

func TestModesAndAges(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write Mode
		ttl   time.Duration
		age   time.Duration
		read  Mode
		want  bool
		err   error
	}{
		{"young", Fresh, time.Hour, 59 * time.Minute, Fresh, true, nil},
		{"too old", Fresh, time.Hour, time.Hour, Fresh, false, nil},
		{"from the future", Fresh, time.Hour, -time.Minute, Fresh, false, nil},
		{"live runs write", Live, time.Hour, 0, Fresh, true, nil},
		{"live runs do not read", Fresh, time.Hour, 0, Live, false, nil},
		{"renewing runs do not read", Fresh, time.Hour, 0, Renew, false, nil},
		{"off writes nothing", Fresh, 0, 0, Offline, false, ErrNothingKept},
		{"off reads nothing", Renew, 0, 0, Fresh, false, nil},
		{"renewing writes even if off", Renew, 0, 0, Offline, true, nil},
		{"offline reads old entries", Fresh, time.Hour, 1000 * time.Hour, Offline, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf(t)
			s.keep(t, s.run(tt.ttl, tt.write), example())
			s.now = s.now.Add(tt.age)
			store := s.run(tt.ttl, tt.read)
			e, ok, err := load(store)
			if ok != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%v, %v", ok, err)
			}
			if store.Serve("src", e.Stored); tt.want && store.Age("src") != tt.age {
				t.Errorf("age %s", store.Age("src"))
			}
		})
	}
}

func TestExpiredListingIsNotLoaded(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), example())
	store := s.run(time.Hour, Offline)
	e, ok, _ := load(store)
	if !ok {
		t.Fatal("not kept")
	}
	store.Serve("src", e.Stored)
	store.Expire("src", Listing)
	if _, ok, err := load(store); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, served := store.Served("src"); served {
		t.Error("still served")
	}
}

func TestEntryWithAnotherKeyIsNotLoaded(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), example())
	r, err := s.run(time.Hour, Fresh).Load(src, map[Kind]string{Listing: "other files", Protocol: ""})
	if _, listed := r[Listing]; listed || string(r[Protocol].Facts) != `"modern"` || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	r, err = s.run(time.Hour, Offline).Load(src, map[Kind]string{Listing: "other files", Protocol: ""})
	if string(r[Protocol].Facts) != `"modern"` || !errors.Is(err, ErrNothingKept) {
		t.Errorf("offline: %v, %v", r, err)
	}
}

// The facts of a kind may be used when its entry may, whatever the source has listed.
func TestFacts(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), Record{Protocol: {Facts: []byte(`"modern"`)}, Listing: {Facts: []byte("1"), Parts: [][]byte{[]byte("a\nb")}}})
	fresh := s.run(time.Hour, Fresh)
	for name, tt := range map[string]struct {
		store  *Store
		source Source
		want   string
	}{
		"fresh":          {fresh, src, `"modern"`},
		"offline":        {s.run(0, Offline), src, `"modern"`},
		"not read":       {s.run(time.Hour, Live), src, ""},
		"too old":        {s.run(time.Nanosecond, Fresh), src, ""},
		"another key":    {fresh, Source{Name: src.Name, Key: "other"}, ""},
		"another source": {fresh, Source{Name: "other", Key: src.Key}, ""},
	} {
		s.now = s.now.Add(time.Second)
		if got := string(tt.store.Facts(tt.source, Protocol)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	fresh.Expire(src.Name, Protocol)
	if got := fresh.Facts(src, Protocol); got != nil || len(s.warns) > 0 {
		t.Errorf("expired: %q, warnings %v", got, s.warns)
	}
	if err := s.dir.Put(src.file(), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if got := s.run(time.Hour, Fresh).Facts(src, Protocol); got != nil || len(s.warns) != 1 {
		t.Errorf("damaged: %q, warnings %v", got, s.warns)
	}
}

func TestSaveKeepsOtherKinds(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), example())
	s.keep(t, s.run(time.Hour, Fresh), Record{Protocol: {Facts: []byte(`"legacy"`)}, Failure: {Facts: []byte(`"of no rule"`)}})
	r, err := s.run(time.Hour, Fresh).Load(src, map[Kind]string{Listing: "files", Protocol: "", Failure: ""})
	if len(r) != 2 || string(r[Protocol].Facts) != `"legacy"` || len(r[Listing].Parts) != 3 || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	s.keep(t, s.run(time.Hour, Fresh), Record{Listing: {}})
	r, err = s.run(time.Hour, Fresh).Load(src, map[Kind]string{Listing: "files", Protocol: ""})
	if len(r) != 1 || string(r[Protocol].Facts) != `"legacy"` || err != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestNothingIsWrittenWithoutChanges(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), Record{Protocol: {}})
	if files, err := s.dir.Files(); len(files) > 0 || err != nil {
		t.Errorf("%v, %v", files, err)
	}
}

// What a run learns again is written only if its age matters.
func TestKnownEntriesAreWrittenWhenTheirAgeMatters(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), example())
	stored := func(kind Kind) time.Time {
		r, err := s.run(time.Hour, Fresh).Load(src, map[Kind]string{Listing: "files", Protocol: ""})
		if err != nil {
			t.Fatal(err)
		}
		return r[kind].Stored
	}
	begin := s.now
	s.now = begin.Add(29 * time.Minute)
	s.keep(t, s.run(time.Hour, Fresh), example())
	if !stored(Protocol).Equal(begin) || !stored(Listing).Equal(s.now) {
		t.Errorf("in the first half, the protocol is of %v and the listing of %v", stored(Protocol), stored(Listing))
	}
	s.now = begin.Add(31 * time.Minute)
	s.keep(t, s.run(time.Hour, Fresh), example())
	if !stored(Protocol).Equal(s.now) {
		t.Errorf("in the second half, the protocol is of %v", stored(Protocol))
	}
	s.keep(t, s.run(time.Hour, Fresh), Record{Protocol: {Facts: []byte(`"legacy"`)}})
	if r, err := s.run(time.Hour, Fresh).Load(src, map[Kind]string{Protocol: ""}); string(r[Protocol].Facts) != `"legacy"` {
		t.Errorf("after a change, the protocol is %s, %v", r[Protocol].Facts, err)
	}
	s.now = begin // the clock was set back
	s.keep(t, s.run(time.Hour, Fresh), Record{Protocol: {Facts: []byte(`"legacy"`)}})
	if !stored(Protocol).Equal(begin) {
		t.Errorf("after the clock was set back, the protocol is of %v", stored(Protocol))
	}
}

// What is stored already is recognized by sizes and a checksum.
func TestChangedPartsAreWritten(t *testing.T) {
	s := newShelf(t)
	for _, text := range []string{"ab c", "ab d", "a bd"} {
		var parts [][]byte
		for field := range strings.FieldsSeq(text) {
			parts = append(parts, []byte(field))
		}
		s.keep(t, s.run(time.Hour, Fresh), Record{Protocol: {Facts: []byte(`1`), Parts: parts}})
		r, err := s.run(time.Hour, Fresh).Load(src, map[Kind]string{Protocol: ""})
		if diff := cmp.Diff(parts, r[Protocol].Parts); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
}

func TestDropRemovesRecord(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), example())
	store := s.run(time.Hour, Fresh)
	if err := store.Drop(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if r, err := store.Load(src, map[Kind]string{Listing: "files", Protocol: ""}); len(r) > 0 || err != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestDamagedRecordsAreReplaced(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"empty":           func(string) string { return "" },
		"cut off":         func(s string) string { return s[:len(s)-1] },
		"longer":          func(s string) string { return s + "x" },
		"a byte changed":  func(s string) string { return strings.Replace(s, "two", "too", 1) },
		"facts changed":   func(s string) string { return strings.Replace(s, "<&>", "<&&", 1) },
		"another source":  func(s string) string { return strings.Replace(s, `"src"`, `"srx"`, 1) },
		"another key":     func(s string) string { return strings.Replace(s, key, "0123abce", 1) },
		"another format":  func(s string) string { return strings.Replace(s, `"format":2`, `"format":1`, 1) },
		"negative sizes":  func(s string) string { return strings.Replace(s, `[5,0,5]`, `[15,-5,0]`, 1) },
		"enormous sizes":  func(s string) string { return strings.Replace(s, `[5,0,5]`, `[9223372036854775807,1,1]`, 1) },
		"no header":       func(s string) string { return "not JSON\n" + s },
		"a deep header":   func(s string) string { return strings.Repeat("[", 1<<20) + "\n" },
		"more than fits":  func(s string) string { return s + "x" },
		"sizes left out":  func(s string) string { return strings.Replace(s, `"sizes":[5,0,5],`, ``, 1) },
		"a header of use": func(s string) string { return `{"format":2,"key":"` + key + `","source":"src"}` + "\nx" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.keep(t, s.run(time.Hour, Fresh), example())
			path := filepath.Join(s.dir.Path, "source-"+key)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := damage(string(data))
			if damaged == string(data) {
				t.Fatal("nothing was damaged")
			}
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "more than fits" {
				if err := os.Truncate(path, state.MaxFile+1); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok, err := load(s.run(time.Hour, Fresh)); ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
			if len(s.warns) != 1 || s.warns[0].Code != "cache_damaged" {
				t.Errorf("warnings %v", s.warns)
			}
			s.keep(t, s.run(time.Hour, Fresh), example())
			if _, ok, _ := load(s.run(time.Hour, Fresh)); !ok {
				t.Error("it was not renewed")
			}
		})
	}
}

func TestFlushFailsWithoutFolder(t *testing.T) {
	store := NewStore(Options{Rules: listingsFor(time.Hour, Fresh), Dir: func() (*state.Dir, error) { return nil, state.ErrUnavailable }, Now: time.Now})
	if _, ok, err := load(store); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	store.Save(src, example())
	if err := store.Flush(); !errors.Is(err, state.ErrUnavailable) {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	s := newShelf(t)
	s.keep(t, s.run(time.Hour, Fresh), Record{Listing: {Parts: [][]byte{make([]byte, maxRecord+1)}}})
	if kept, err := s.run(time.Hour, Fresh).List(); len(kept) > 0 || err != nil {
		t.Errorf("%v, %v", kept, err)
	}
	s.now = time.Now()
	store := s.run(time.Hour, Fresh)
	for i := range 12 {
		store.Save(Source{"src", fmt.Sprint(i)}, example())
	}
	if err := store.Flush(); err != nil {
		t.Error(err)
	}
	for _, f := range s.files(t) {
		if err := os.Truncate(filepath.Join(s.dir.Path, f.Name()), maxRecord-4096); err != nil { // the zeros take no space on the disk
			t.Fatal(err)
		}
	}
	s.keep(t, s.run(time.Hour, Fresh), example())
	var bytes int64
	for _, f := range s.files(t) {
		bytes += f.Size()
	}
	if n := len(s.files(t)); bytes > maxBytes || n < maxBytes/maxRecord {
		t.Errorf("%d files of %d bytes in all", n, bytes)
	}
}

func TestConcurrentRunsLeaveValidEntry(t *testing.T) {
	s := newShelf(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			store := NewStore(Options{Rules: listingsFor(time.Hour, Fresh), Dir: func() (*state.Dir, error) { return s.dir, nil },
				Now: time.Now, Warn: func(d registry.Diagnostic) { t.Error(d) }})
			store.Save(src, Record{Listing: {Key: "files", Parts: [][]byte{[]byte(strings.Repeat(fmt.Sprint(i%10), 10_000))}}})
			store.Save(Source{"own", fmt.Sprint("own", i)}, example())
			if err := store.Flush(); err != nil {
				t.Error(err)
			}
			if _, ok, err := load(store); !ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
	wg.Wait()
	kept, err := s.run(time.Hour, Fresh).List()
	if len(kept) != 51 || err != nil {
		t.Errorf("%d entries, %v", len(kept), err)
	}
}

// FuzzDecode checks that no file causes a panic and that every decoded record can be
// encoded again.
func FuzzDecode(f *testing.F) {
	data, err := example().encode(src)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"format":2,"entries":[{"kind":"listing","sizes":[1]}]}` + "\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data, src)
		if err != nil {
			return
		}
		again, err := r.encode(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again, src); err != nil {
			t.Error(err)
		}
	})
}
