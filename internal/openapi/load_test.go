package openapi

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A file is read again unless its stamp says that nothing changed it since. One that has
// just changed has no stamp, because the next change might give it the same one.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the time of the last change")
	}
	in := func(path string) *localFiles {
		folder, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { folder.Close() })
		return &localFiles{&Options{Limits: Limits{Document: 1 << 20}}, path, folder}
	}
	old := "../../testdata/openapi/zoo.yaml"
	_, fact, err := in(old).readFile(old)
	if err != nil || fact.Stamp == "" || len(fact.Sum) != 64 {
		t.Fatalf("%+v, %v", fact, err)
	}
	fact.Sum = "another"
	if _, same := in(old).unchanged([]fileFact{fact}); !same {
		t.Error("a file with the same stamp is read again")
	}
	fact.Stamp += "0"
	if _, same := in(old).unchanged([]fileFact{fact}); same {
		t.Error("a file with another stamp counts as unchanged")
	}
	fresh := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(fresh, []byte("a: b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, fact, err := in(fresh).readFile(fresh); err != nil || fact.Stamp != "" || fact.Sum == "" {
		t.Errorf("a file that has just changed: %+v, %v", fact, err)
	}
}
