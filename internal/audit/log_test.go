package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/state"
)

func openLog(t *testing.T) *Log {
	t.Helper()
	dir, err := state.OpenDir(filepath.Join(t.TempDir(), "toolreg"))
	if err != nil {
		t.Fatal(err)
	}
	return &Log{Dir: dir}
}

func add(t *testing.T, l *Log, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		if err := l.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t *testing.T, l *Log) (tools []string, damaged int) {
	t.Helper()
	damaged, err := l.Scan(t.Context(), ScanOptions{}, func(e Entry) error {
		tools = append(tools, e.Tool)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tools, damaged
}

func at(second int) time.Time { return time.Date(2026, 11, 21, 8, 0, second, 0, time.UTC) }

func TestEntriesAreReadUnchanged(t *testing.T) {
	l := openLog(t)
	want := Entry{
		Time: at(1), Tool: "git__log", ServerTool: "log", Source: "mcp:git", Server: "git", Project: "/p", Decision: "ask", Rule: "person",
		Outcome: Denied, Code: "denied", Exit: 5, DurationMs: 1.5, ParamsBytes: 2, ResultBytes: 3, ParamsSHA256: HashParams(json.RawMessage("{}")),
		Cached: true, Attempts: 2, Params: json.RawMessage(`{"a":"<&>"}`),
	}
	add(t, l, want)
	var got []Entry
	if _, err := l.Scan(t.Context(), ScanOptions{}, func(e Entry) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Entry{want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(l.Dir.Path, fileName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestEntryAlwaysFitsOneLine(t *testing.T) {
	huge := strings.Repeat("\x01\"ü\n", 5000)
	for name, params := range map[string]json.RawMessage{
		"no params":    nil,
		"long":         json.RawMessage(`{"a":"` + strings.Repeat("x", 9000) + `"}`),
		"many escapes": json.RawMessage(`{"a":"` + strings.Repeat(`\u0001`, 9000) + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t)
			add(t, l, Entry{Time: at(1), Tool: huge, ServerTool: huge, Source: huge, Server: huge, Project: huge, Rule: huge, Code: huge, Error: huge, Outcome: OK, Params: params})
			var got Entry
			damaged, err := l.Scan(t.Context(), ScanOptions{}, func(e Entry) error { got = e; return nil })
			if err != nil || damaged != 0 || got.Outcome != OK {
				t.Fatalf("%+v, %d damaged, %v", got, damaged, err)
			}
			if got.ParamsCut != (params != nil) {
				t.Errorf("cut: %t", got.ParamsCut)
			}
			var start string
			if params != nil && (json.Unmarshal(got.Params, &start) != nil || !strings.HasPrefix(string(params), start) || len(start) < 100) {
				t.Errorf("params %.50s", got.Params)
			}
		})
	}
}

func TestHashDoesNotDependOnKeyOrder(t *testing.T) {
	a := HashParams(json.RawMessage(`{"a": 1, "b": [1.0, "x"]}`))
	if b := HashParams(json.RawMessage(`{"b":[1.0,"x"],"a":1}`)); a != b || len(a) != 64 {
		t.Errorf("%s, %s", a, b)
	}
	if c := HashParams(json.RawMessage(`{"a":2,"b":[1.0,"x"]}`)); a == c {
		t.Error("different params have the same hash")
	}
	long := `{"a":"` + strings.Repeat("x", maxHashed) + `"}`
	if HashParams(json.RawMessage(long)) == HashParams(json.RawMessage(long+" ")) {
		t.Error("params of more than 1 MiB are canonicalized")
	}
	if HashParams(nil) != "" {
		t.Error("empty params have a hash")
	}
}

func TestDamagedLinesAreSkipped(t *testing.T) {
	l := openLog(t)
	add(t, l, Entry{Time: at(1), Tool: "one", Outcome: OK})
	f, err := os.OpenFile(filepath.Join(l.Dir.Path, fileName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"time\":\n\n[1]\n{}\n" + strings.Repeat("z", 200_000) + "\n{\"torn"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	add(t, l, Entry{Time: at(2), Tool: "two", Outcome: OK})
	got, damaged := names(t, l)
	if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" || damaged != 5 {
		t.Errorf("%d damaged; (-want +got):\n%s", damaged, diff)
	}
}

func TestRotatedFilesAreReadInOrder(t *testing.T) {
	l := openLog(t)
	l.MaxSize, l.Keep = 1, 3
	if got, _ := names(t, l); got != nil {
		t.Errorf("a missing log has %v", got)
	}
	for i := range 6 {
		add(t, l, Entry{Time: at(i), Tool: fmt.Sprint(i), Outcome: OK})
	}
	got, _ := names(t, l)
	if diff := cmp.Diff([]string{"3", "4", "5"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Entries added while the log is followed are read once and in order, however often
// the log is rotated.
func TestFollow(t *testing.T) {
	l := openLog(t)
	l.MaxSize, l.Keep = 300, 50
	add(t, l, Entry{Time: at(0), Tool: "before", Outcome: OK})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	current := make(chan int, 1)
	var got []string
	done := make(chan error, 1)
	go func() {
		_, err := l.Scan(ctx, ScanOptions{Follow: true, Poll: time.Millisecond, Current: func() error { current <- len(got); return nil }}, func(e Entry) error {
			if got = append(got, e.Tool); e.Tool == "last" {
				cancel()
			}
			return nil
		})
		done <- err
	}()
	if n := <-current; n != 1 {
		t.Errorf("%d entries were there", n)
	}
	want := []string{"before"}
	for i := range 30 {
		name := fmt.Sprint(i)
		want = append(want, name)
		add(t, l, Entry{Time: at(i), Tool: name, Outcome: OK})
	}
	add(t, l, Entry{Time: at(59), Tool: "last", Outcome: OK})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want, "last"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScanStopsAtError(t *testing.T) {
	l := openLog(t)
	add(t, l, Entry{Time: at(1), Tool: "a", Outcome: OK}, Entry{Time: at(2), Tool: "b", Outcome: OK})
	enough, n := errors.New("enough"), 0
	if _, err := l.Scan(t.Context(), ScanOptions{}, func(Entry) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

// Fifty processes log at the same time while the log is rotated repeatedly.
func TestConcurrentProcessesLoseNoEntry(t *testing.T) {
	l := openLog(t)
	l.Keep = stormKeeps
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("AUDIT_TEST_PLAYER=p%d", i), "AUDIT_TEST_DIR="+l.Dir.Path)
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	got, damaged := names(t, l)
	for _, name := range got {
		seen[name]++
	}
	if len(got) != runs*callsEach || len(seen) != runs*callsEach || damaged != 0 {
		t.Errorf("%d entries of %d, %d of them different, %d lines damaged", len(got), runs*callsEach, len(seen), damaged)
	}
	files, err := filepath.Glob(filepath.Join(l.Dir.Path, fileName+".[0-9]*"))
	if err != nil || len(files) < 5 {
		t.Errorf("only %d rotations (%v), too few for this test", len(files), err)
	}
	t.Logf("%d entries, %d rotations", len(got), len(files))
}

func BenchmarkAdd(b *testing.B) {
	dir, err := state.OpenDir(filepath.Join(b.TempDir(), "toolreg"))
	if err != nil {
		b.Fatal(err)
	}
	l := &Log{Dir: dir}
	e := Entry{Time: time.Now(), Tool: "read_file", Source: "builtin", Project: "/home/me/project", Decision: "allow", Rule: "default", Outcome: OK,
		DurationMs: 1.234, ParamsBytes: 40, ResultBytes: 1000, ParamsSHA256: HashParams(json.RawMessage(`{"file_path":"a.txt"}`))}
	for b.Loop() {
		if err := l.Add(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	dir, err := state.OpenDir(filepath.Join(b.TempDir(), "toolreg"))
	if err != nil {
		b.Fatal(err)
	}
	l := &Log{Dir: dir}
	for range 10_000 {
		if err := l.Add(b.Context(), Entry{Time: time.Now(), Tool: "read_file", Source: "builtin", Outcome: OK, ParamsSHA256: strings.Repeat("0", 64)}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := l.Scan(b.Context(), ScanOptions{}, func(Entry) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
