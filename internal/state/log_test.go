//go:build unix

package state

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendRefusesWhatIsNoLine(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	for _, line := range []string{"a\nb", strings.Repeat("x", MaxLine)} {
		if err := dir.Append("log", []byte(line)); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%.10q: %v", line, err)
		}
	}
	if err := dir.Append("log", []byte(strings.Repeat("x", MaxLine-1))); err != nil {
		t.Errorf("the longest line: %v", err)
	}
}

func TestRotate(t *testing.T) {
	dir := open(t, filepath.Join(t.TempDir(), "toolreg"))
	if err := dir.Rotate(t.Context(), "log", 1, 2); err != nil {
		t.Errorf("an absent log: %v", err)
	}
	for _, line := range []string{"one", "two", "three", "four"} {
		if err := dir.Append("log", []byte(line)); err != nil {
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

func BenchmarkAppend(b *testing.B) {
	dir, err := OpenDir(filepath.Join(b.TempDir(), "toolreg"))
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 300))
	for b.Loop() {
		if err := dir.Append("log", line); err != nil {
			b.Fatal(err)
		}
	}
}
