package lock

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// Where no folder counts there is no lock file, whatever the current folder has.
func TestFindLooksOnlyInFoldersThatCount(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(Name, []byte(`{"version": 1, "tools": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if file, err := Find("", "", true); file != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, %v", file, err)
	}
}

// A project's own file comes before the user's, also if it is damaged.
func TestFindLooksInTheProjectFirst(t *testing.T) {
	folder := func(content string) string {
		dir := t.TempDir()
		if content != "" {
			if err := Write(dir, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const sound, damaged, none = `{"version": 1, "tools": []}`, `{`, ""
	for name, row := range map[string]struct {
		project, user string
		users, absent bool
		failed        bool
	}{
		"both":            {project: sound, user: sound},
		"only the user's": {project: none, user: sound, users: true},
		"only its own":    {project: sound, user: none},
		"neither":         {project: none, user: none, absent: true, failed: true},
		"damaged":         {project: damaged, user: sound, failed: true},
		"user's damaged":  {project: none, user: damaged, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Find(folder(row.project), folder(row.user), true)
			if (err != nil) != row.failed || errors.Is(err, fs.ErrNotExist) != row.absent || err == nil && (set.project == nil) != row.users {
				t.Errorf("got %+v, %v", set, err)
			}
			if err == nil && len(set.files()) != 1 {
				t.Errorf("%d files apply", len(set.files()))
			}
		})
	}
	if set, err := Find(folder(sound), "", true); err != nil || set.user != nil {
		t.Errorf("the project's alone: %v, %v", set, err)
	}
	if set, err := Find(folder(sound), folder(sound), false); err != nil || len(set.files()) != 2 {
		t.Errorf("a project that is not trusted: %v, %v", set, err)
	}
	if _, err := Find(folder(damaged), folder(sound), false); err == nil {
		t.Error("the damaged file of a project that is not trusted must not be passed over")
	}
	if _, err := Find(folder(none), "", true); err == nil || strings.Contains(err.Error(), "neither") {
		t.Errorf("where the user's does not count, the error must name one file: %v", err)
	}
}
