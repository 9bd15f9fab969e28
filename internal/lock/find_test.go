package lock

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// Where no folder counts there is no lock file, whatever the current folder has.
func TestFindLooksOnlyInFoldersThatCount(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(Name, []byte(`{"version": 1, "tools": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if file, err := Find("", ""); file != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, %v", file, err)
	}
}
