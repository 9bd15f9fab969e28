package cli

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that is only touched has not changed, and neither has a folder in which a file was
// replaced.
func TestTouchedFilesHaveNotChanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "settings.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a: 1")
	w := &Watcher{state: map[string]string{}, content: map[string]string{}}
	w.record(file, dir, filepath.Join(dir, "absent"))
	later := time.Now().Add(time.Hour)
	for _, path := range []string{file, dir} {
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	if maps.Equal(w.snapshot(), w.state) || !w.hasSameContent() {
		t.Error("a touched file counts as changed")
	}
	write("a: 2")
	if w.hasSameContent() {
		t.Error("other text of the same length does not count as a change")
	}
	write("a: 1")
	if err := os.WriteFile(filepath.Join(dir, "absent"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w.hasSameContent() {
		t.Error("a new file does not count as a change")
	}
}
