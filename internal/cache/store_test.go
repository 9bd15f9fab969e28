package cache

import (
	"errors"
	"fmt"
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

// shelf is a folder with stores over it, each a run of its own.
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
	return NewStore(Options{Kind: "k", TTL: ttl, Mode: mode, Dir: func() (*state.Dir, error) { return s.dir, nil },
		Now: func() time.Time { return s.now }, Warn: func(d registry.Diagnostic) { s.warns = append(s.warns, d) }})
}

func (s *shelf) keep(store *Store, e Entry) {
	store.Save("src", key, e)
	store.Flush()
}

const key = "0123abcd"

func example() Entry {
	return Entry{Facts: []byte(`{"a":"<&>","n":12345678901234567890}`), Parts: [][]byte{[]byte("one\n{"), {}, []byte("\xff\x00two")}}
}

func TestWhatIsKeptComesBackByteForByte(t *testing.T) {
	s := newShelf(t)
	want := example()
	s.keep(s.run(time.Hour, Fresh), want)
	got, ok, err := s.run(time.Hour, Fresh).Load("src", key, nil)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	want.Stored = s.now
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(s.warns) > 0 {
		t.Error(s.warns)
	}
}

func TestWhenSomethingIsKeptAndRead(t *testing.T) {
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
		{"live runs keep", Live, time.Hour, 0, Fresh, true, nil},
		{"live runs do not read", Fresh, time.Hour, 0, Live, false, nil},
		{"renewing does not read", Fresh, time.Hour, 0, Renew, false, nil},
		{"off keeps nothing", Fresh, 0, 0, Offline, false, ErrNothingKept},
		{"off reads nothing", Renew, 0, 0, Fresh, false, nil},
		{"renewing keeps though it is off", Renew, 0, 0, Offline, true, nil},
		{"offline reads what is old", Fresh, time.Hour, 1000 * time.Hour, Offline, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf(t)
			s.keep(s.run(tt.ttl, tt.write), example())
			s.now = s.now.Add(tt.age)
			store := s.run(tt.ttl, tt.read)
			_, ok, err := store.Load("src", key, nil)
			if ok != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%v, %v", ok, err)
			}
			if _, served := store.Served("src"); served != tt.want {
				t.Errorf("served %v", served)
			}
			if got := store.Age("src"); tt.want && got != tt.age {
				t.Errorf("age %s", got)
			}
		})
	}
}

func TestAnExpiredSourceIsAsked(t *testing.T) {
	s := newShelf(t)
	s.keep(s.run(time.Hour, Fresh), example())
	store := s.run(time.Hour, Offline)
	if _, ok, _ := store.Load("src", key, nil); !ok {
		t.Fatal("not kept")
	}
	store.Expire("src")
	if _, ok, err := store.Load("src", key, nil); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, served := store.Served("src"); served {
		t.Error("still served")
	}
}

func TestAnEntryThatIsNotEnough(t *testing.T) {
	s := newShelf(t)
	s.keep(s.run(time.Hour, Fresh), example())
	never := func(Entry) bool { return false }
	if _, ok, err := s.run(time.Hour, Fresh).Load("src", key, never); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, ok, err := s.run(time.Hour, Offline).Load("src", key, never); !ok || err != nil {
		t.Errorf("offline anything is: %v, %v", ok, err)
	}
}

func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(string) string{
		"empty":           func(string) string { return "" },
		"cut off":         func(s string) string { return s[:len(s)-1] },
		"longer":          func(s string) string { return s + "x" },
		"a byte changed":  func(s string) string { return strings.Replace(s, "two", "too", 1) },
		"facts changed":   func(s string) string { return strings.Replace(s, "<&>", "<&&", 1) },
		"another source":  func(s string) string { return strings.Replace(s, `"src"`, `"srx"`, 1) },
		"another key":     func(s string) string { return strings.Replace(s, key, "0123abce", 1) },
		"another format":  func(s string) string { return strings.Replace(s, `"format":1`, `"format":2`, 1) },
		"negative sizes":  func(s string) string { return strings.Replace(s, `[5,0,5]`, `[15,-5,0]`, 1) },
		"enormous sizes":  func(s string) string { return strings.Replace(s, `[5,0,5]`, `[9223372036854775807,1,1]`, 1) },
		"no header":       func(s string) string { return "not JSON\n" + s },
		"a deep header":   func(s string) string { return strings.Repeat("[", 1<<20) + "\n" },
		"more than fits":  func(s string) string { return s + strings.Repeat("x", state.MaxFile) },
		"sizes left out":  func(s string) string { return strings.Replace(s, `"sizes":[5,0,5],`, ``, 1) },
		"a header of use": func(s string) string { return `{"format":1,"key":"` + key + `","source":"src"}` + "\nx" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.keep(s.run(time.Hour, Fresh), example())
			path := filepath.Join(s.dir.Path, "k-"+key)
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
			if _, ok, err := s.run(time.Hour, Fresh).Load("src", key, nil); ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
			if len(s.warns) != 1 || s.warns[0].Code != "cache_damaged" {
				t.Errorf("warnings %v", s.warns)
			}
			s.keep(s.run(time.Hour, Fresh), example())
			if _, ok, _ := s.run(time.Hour, Fresh).Load("src", key, nil); !ok {
				t.Error("it was not renewed")
			}
		})
	}
}

func TestNowhereToKeepIsAWarning(t *testing.T) {
	s := newShelf(t)
	store := NewStore(Options{Kind: "k", TTL: time.Hour, Dir: func() (*state.Dir, error) { return nil, state.ErrUnavailable },
		Warn: func(d registry.Diagnostic) { s.warns = append(s.warns, d) }})
	if _, ok, err := store.Load("src", key, nil); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	s.keep(store, example())
	if len(s.warns) != 1 || s.warns[0].Code != "cache_not_kept" {
		t.Errorf("%v", s.warns)
	}
}

func TestWhatIsTooLargeOrTooMuchIsNotKept(t *testing.T) {
	s := newShelf(t)
	s.keep(s.run(time.Hour, Fresh), Entry{Parts: [][]byte{make([]byte, maxEntry+1)}})
	if kept, err := s.run(time.Hour, Fresh).List(); len(kept) > 0 || err != nil {
		t.Errorf("%v, %v", kept, err)
	}
	s.now = time.Now()
	store := s.run(time.Hour, Fresh)
	for i := range 12 {
		store.Save("src", fmt.Sprint(i), Entry{Parts: [][]byte{make([]byte, maxEntry-4096)}})
	}
	store.Flush()
	kept, err := s.run(time.Hour, Fresh).List()
	var bytes int64
	for _, k := range kept {
		bytes += k.Bytes
	}
	if err != nil || bytes > maxBytes || len(kept) < 7 {
		t.Errorf("%d files of %d bytes in all, %v", len(kept), bytes, err)
	}
}

func TestFiftyRunsAtOnceLeaveAWholeEntry(t *testing.T) {
	s := newShelf(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			store := NewStore(Options{Kind: "k", TTL: time.Hour, Dir: func() (*state.Dir, error) { return s.dir, nil },
				Warn: func(d registry.Diagnostic) { t.Error(d) }})
			store.Save("src", key, Entry{Parts: [][]byte{[]byte(strings.Repeat(fmt.Sprint(i%10), 10_000))}})
			store.Save("own", fmt.Sprint("own", i), example())
			store.Flush()
			if _, _, err := store.Load("src", key, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	kept, err := s.run(time.Hour, Fresh).List()
	if len(kept) != 51 || err != nil {
		t.Errorf("%d entries, %v", len(kept), err)
	}
}

// FuzzDecode: no file makes it panic, and what it takes it can write again.
func FuzzDecode(f *testing.F) {
	e := example()
	data, err := e.encode("src", key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"format":1,"sizes":[1]}` + "\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(data, "src", key)
		if err != nil {
			return
		}
		again, err := e.encode("src", key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again, "src", key); err != nil {
			t.Error(err)
		}
	})
}
