//go:build unix

package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAppendRejectsInvalidLines(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	for _, line := range []string{"a\nb", "\nb", strings.Repeat("x", MaxLine)} {
		if err := dir.Append(t.Context(), "log", []byte(line)); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%.10q: %v", line, err)
		}
	}
	if err := dir.Append(t.Context(), "log", []byte(strings.Repeat("x", MaxLine-1))); err != nil {
		t.Errorf("the longest line: %v", err)
	}
}

func TestRotate(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	if err := dir.Rotate(t.Context(), "log", 1, 2); err != nil {
		t.Errorf("an absent log: %v", err)
	}
	for _, line := range []string{"one", "two", "three", "four"} {
		if err := dir.Append(t.Context(), "log", []byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := dir.Rotate(t.Context(), "log", 1000, 2); err != nil {
			t.Fatal(err)
		}
		if err := dir.Rotate(t.Context(), "log", 4, 2); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, name := range []string{"log", "log.1", "log.2", "log.3"} {
		if data, err := dir.Read(name); err == nil {
			got[name] = string(data)
		}
	}
	if diff := cmp.Diff(map[string]string{"log.1": "four\n", "log.2": "three\n"}, got); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
}

// A log is rotated once it has the size, and not if another run has done it before the lock is there.
func TestRotateAtSize(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	if err := dir.Append(t.Context(), "log", []byte("123")); err != nil {
		t.Fatal(err)
	}
	root, err := dir.open(false)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, size := range []int64{5, 4, 4} {
		if err := rotate(root, "log", size, 1); err != nil {
			t.Errorf("rotating at %d bytes: %v", size, err)
		}
		if _, err := dir.Read("log.1"); (err == nil) != (size == 4) {
			t.Errorf("rotated at %d bytes: %v", size, err)
		}
	}
	if err := dir.Rotate(t.Context(), "log", 4, 1); err != nil {
		t.Errorf("without a log: %v", err)
	}
	if err := dir.Append(t.Context(), "log", []byte("456")); err != nil {
		t.Fatal(err)
	}
	if err := dir.Rotate(t.Context(), "log", 4, 1); err != nil {
		t.Fatal(err)
	}
	if data, err := dir.Read("log.1"); string(data) != "456\n" {
		t.Errorf("the rotated log has %q, %v", data, err)
	}
}

func BenchmarkAppend(b *testing.B) {
	dir, err := OpenDir(filepath.Join(b.TempDir(), "toolreg"))
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 300))
	for b.Loop() {
		if err := dir.Append(b.Context(), "log", line); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAppenderReopensReplacedLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolreg")
	dir, other := open(t, path), open(t, path)
	a := dir.Appender("log")
	defer a.Close()
	add := func(line string) int64 {
		t.Helper()
		size, err := a.Append(t.Context(), []byte(line))
		if err != nil {
			t.Fatal(err)
		}
		return size
	}
	content := func(name string) string {
		data, err := other.Read(name)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	if size := add("one"); size != 0 {
		t.Errorf("size before the first line: %d", size)
	}
	if size := add("two"); size != 4 {
		t.Errorf("size before the second line: %d", size)
	}

	// Another run rotates the log.
	if err := other.Rotate(t.Context(), "log", 1, 3); err != nil {
		t.Fatal(err)
	}
	add("three")
	if content("log.1") != "one\ntwo\n" || content("log") != "three\n" {
		t.Errorf("after rotation: %q, %q", content("log.1"), content("log"))
	}

	// Another process appends a complete line, then a truncated one.
	file := filepath.Join(path, "log")
	for _, foreign := range []string{"four\n", "cut o"} {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(foreign)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		add("mine")
	}
	if got := content("log"); got != "three\nfour\nmine\ncut o\nmine\n" {
		t.Errorf("after another's lines: %q", got)
	}

	// The log is removed. Then a link replaces it, which is not followed.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	add("new")
	if got := content("log"); got != "new\n" {
		t.Errorf("after removal: %q", got)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Remove(file), os.WriteFile(elsewhere, nil, 0o600), os.Symlink(elsewhere, file)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(t.Context(), []byte("leaked")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("through a link: %v", err)
	}
	if data, err := os.ReadFile(elsewhere); len(data) > 0 || err != nil {
		t.Errorf("elsewhere holds %q, %v", data, err)
	}
	if err := errors.Join(a.Close(), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	add("again")
	if got := content("log"); got != "again\n" {
		t.Errorf("after closing: %q", got)
	}
}

// A log that is written often stays open, and only once.
func TestAppenderKeepsTheLogOpen(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	a := dir.Appender("log")
	defer a.Close()
	add := func() *os.File {
		t.Helper()
		if _, err := a.Append(t.Context(), []byte("line")); err != nil {
			t.Fatal(err)
		}
		return a.file
	}
	first := add()
	if second := add(); first == nil || second != first {
		t.Errorf("the log was opened again: %v, %v", first, second)
	}
	if err := dir.Rotate(t.Context(), "log", 1, 1); err != nil {
		t.Fatal(err)
	}
	if third := add(); third == first || first.Close() == nil {
		t.Error("a rotated log is still open")
	}
}

// The line that is ended may have been ended by another run before the lock is there.
func TestEndedLineStays(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	a := dir.Appender("log")
	defer a.Close()
	if _, err := a.Append(t.Context(), []byte("line")); err != nil {
		t.Fatal(err)
	}
	if err := a.endTorn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, err := dir.Read("log"); string(data) != "line\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAppenderIsSafeForConcurrentUse(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	a := dir.Appender("log")
	defer a.Close()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 20 {
				if _, err := a.Append(t.Context(), []byte(strings.Repeat(string(rune('a'+i%26)), 100))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	data, err := dir.Read("log")
	lines := strings.Fields(string(data))
	if err != nil || len(lines) != 1000 || len(data) != 101*1000 {
		t.Errorf("%d lines, %d bytes, %v", len(lines), len(data), err)
	}
}

func BenchmarkAppender(b *testing.B) {
	dir, err := OpenDir(filepath.Join(b.TempDir(), "toolreg"))
	if err != nil {
		b.Fatal(err)
	}
	a := dir.Appender("log")
	defer a.Close()
	line := []byte(strings.Repeat("x", 300))
	for b.Loop() {
		if _, err := a.Append(b.Context(), line); err != nil {
			b.Fatal(err)
		}
	}
}

// If two processes ended a truncated line at the same time, they would leave an empty
// line.
func TestTruncatedLineIsEndedUnderLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolreg")
	dir := open(t, path)
	if err := dir.Append(t.Context(), "log", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(path, "log"), 3); err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock(t.Context(), "log")
	if err != nil {
		t.Fatal(err)
	}
	dir.Wait = 10 * time.Millisecond
	if err := dir.Append(t.Context(), "log", []byte("early")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("while another holds the lock: %v", err)
	}
	unlock()
	dir.Wait = 0
	for range 2 {
		if err := dir.Append(t.Context(), "log", []byte("line")); err != nil {
			t.Fatal(err)
		}
	}
	data, err := dir.Read("log")
	if string(data) != "who\nline\nline\n" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}
