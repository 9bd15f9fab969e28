package workspace

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// What lies above the workspace is ignored as git does it from there: by the ignore files of
// its repository, unless that is the home directory, and by the user's excludes.
func TestIgnoreFilesAboveTheWorkspace(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string // "~" is the home
		home  string
		want  string
	}{
		"nothing": {
			want: "a.o anchored excluded global mid mine",
		},
		"the repository": {
			files: map[string]string{"top/.git/info/exclude": "excluded", "top/.gitignore": "*.o\n/mid/ws/anchored\n/mine", "top/mid/.ignore": "mid"},
			want:  "global mine",
		},
		"no repository": {
			files: map[string]string{"top/.gitignore": "*.o", "top/mid/.ignore": "mid"},
			want:  "a.o anchored excluded global mid mine",
		},
		"beyond the repository": {
			files: map[string]string{"top/.gitignore": "*.o", "top/.git/info/exclude": "excluded", "top/mid/.git/info/exclude": "/ws/anchored", "top/mid/.gitignore": "mid"},
			want:  "a.o excluded global mine",
		},
		"the workspace as the repository": {
			files: map[string]string{"top/mid/ws/.git/info/exclude": "/excluded", "top/mid/.gitignore": "mid"},
			want:  "a.o anchored global mid mine",
		},
		"the home above": {
			files: map[string]string{"top/.git/info/exclude": "excluded", "top/.gitignore": "*.o"},
			home:  "top",
			want:  "a.o anchored excluded global mid mine",
		},
		"the home itself": {
			files: map[string]string{"top/mid/ws/.git/info/exclude": "excluded"},
			home:  "top/mid/ws",
			want:  "a.o anchored global mid mine",
		},
		"excludes of the user": {
			files: map[string]string{"config/git/ignore": "global"},
			want:  "a.o anchored excluded mid mine",
		},
		"excludes in a file of its own": {
			files: map[string]string{"config/git/ignore": "global", "config/git/config": "[core]\n\texcludesFile = ~/mine\n[user]\n\tname = x\n", "home/mine": "mine"},
			want:  "a.o anchored excluded global mid",
		},
		"excludes in two files": {
			files: map[string]string{"config/git/config": "[core]\n\texcludesFile = ~/mine", "home/.gitconfig": "[core]\n\texcludesFile = ~/other", "home/mine": "mine", "home/other": "mid"},
			want:  "a.o anchored excluded global mine",
		},
	} {
		top := tooltest.Place(t, map[string]string{"home/x": "", "config/x": ""})
		for _, file := range []string{"a.o", "anchored", "excluded", "global", "mid", "mine"} {
			tooltest.Put(t, filepath.Join(top, "top/mid/ws", file), "")
		}
		for file, text := range tt.files {
			tooltest.Put(t, filepath.Join(top, file), text)
		}
		if tt.home == "" {
			tt.home = "home"
		}
		w := tooltest.Open(t, New(Options{Dir: filepath.Join(top, "top/mid/ws"), Home: filepath.Join(top, tt.home), ConfigHome: filepath.Join(top, "config")}))
		var mu sync.Mutex
		var visited []string
		if _, err := w.Walk(t.Context(), WalkOptions{Start: ".", Respect: true, Enter: func(e *Entry) bool { return e.Name != ".git" }, Each: func(_ int, e *Entry) {
			mu.Lock()
			defer mu.Unlock()
			visited = append(visited, e.Path)
		}}); err != nil {
			t.Fatal(name, err)
		}
		slices.Sort(visited)
		if got := strings.Join(visited, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
