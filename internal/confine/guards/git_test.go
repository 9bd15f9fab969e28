package guards

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/git"
)

// The settings of the repository around the workspace name files in it, those of a repository
// further out do not apply. The workspace itself stays writable.
func TestEnclosingRepositoryNamesFiles(t *testing.T) {
	repository := func(config string) map[string]string {
		return map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/config": config}
	}
	top := tooltest.Place(t, repository("[core]\n\thooksPath = in/ws/outer\n"))
	put(t, filepath.Join(top, "in"), repository("[core]\n\thooksPath = ws/sub/hooks\n"))
	dir := filepath.Join(top, "in/ws/sub")
	put(t, dir, map[string]string{"hooks/a": "", "outer": "", "a": ""})
	put(t, dir, map[string]string{"../outer/a": ""})
	for workspace, want := range map[string]string{dir: filepath.Join(dir, "hooks"), filepath.Dir(dir): filepath.Join(dir, "hooks")} {
		g, err := tooltest.Open(t, New(workspace, git.User{Home: t.TempDir()}, "")).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, g.ReadOnly); diff != "" {
			t.Errorf("%s: %s", workspace, diff)
		}
		if g.Log() != nil {
			t.Error("a log although there is no folder for it")
		}
	}
	put(t, top, map[string]string{"in/.git/config": "[core]\n\thooksPath = ws/sub\n"})
	g, err := tooltest.Open(t, New(dir, git.User{Home: t.TempDir()}, "")).Guards(t.Context(), Scope{})
	if err != nil || slices.Contains(g.ReadOnly, dir) {
		t.Errorf("the workspace is read-only: %q, %v", g.ReadOnly, err)
	}
}

// A line of an unfinished operation runs a command, or names a program as its strategy.
func TestLinesOfUnfinishedOperationsThatRun(t *testing.T) {
	for _, tt := range []struct {
		file, line string
		want       bool
	}{
		{"git-rebase-todo", "exec make", true}, {"git-rebase-todo", "x make", true}, {"git-rebase-todo", "EXEC make", true}, {"git-rebase-todo", "pick 1 exec", false}, {"git-rebase-todo", "", false},
		{"strategy", "ort", false}, {"strategy", "evil", true}, {"strategy", "ort evil", true},
		{"opts", "strategy = ort", false}, {"opts", "strategy = evil", true}, {"opts", "strategy-option = ours", false}, {"opts", "default-strategy = ort", true}, {"opts", "edit = true", false},
	} {
		if got := mayRun(tt.file, tt.line); got != tt.want {
			t.Errorf("%s: %q runs: %t", tt.file, tt.line, got)
		}
	}
}

func TestHarmlessSettings(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        bool
	}{
		{"remote.url", "repo", true}, {"remote.url", "https://a.example/x", true}, {"remote.url", "https://[::1]/x", true}, {"remote.url", "host:x::y", true}, {"remote.url", "ext::sh -c x", false},
		{"remote.pushurl", "ext::x", false}, {"user.name", "a", true}, {"core.fsmonitor", "true", false}, {"extensions.objectformat", "sha256", true},
	} {
		if got := isHarmless(tt.name, tt.value); got != tt.want {
			t.Errorf("%s = %s is harmless: %t", tt.name, tt.value, got)
		}
	}
}

// A file of git that is too large to rewrite, or is no file, is removed as a whole.
func TestLargeFilesOfGitAreRemoved(t *testing.T) {
	padded := func(text string, size int) string { return text + strings.Repeat("#", size-len(text)-1) + "\n" }
	largest := padded("exec make test\n", maxConfig)
	dir, user := place(t, map[string]string{".git/HEAD": "", ".git/objects/x": "", ".git/refs/x": "", ".git/rebase-merge/git-rebase-todo": largest})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]string{"largest": padded("[core]\n\tbare = false\n", maxConfig), "larger": padded("", maxConfig+1), "folder": ""} {
		put(t, dir, map[string]string{name + "/.git/HEAD": "", name + "/.git/objects/": "", name + "/.git/refs/": ""})
		if config == "" {
			config, name = "x", name+"/.git/config/x"
		} else {
			name += "/.git/config"
		}
		put(t, dir, map[string]string{name: config})
	}
	cleaned, err := g.Clean(t.Context(), everything)
	if diff := cmp.Diff(Cleaned{Removed: []string{"folder/.git/config", "larger/.git/config"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for name, want := range map[string]bool{".git/rebase-merge/git-rebase-todo": true, "largest/.git/config": true, "larger/.git/config": false, "folder/.git/config": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A repository is the program's if it created the folder or what makes it one.
func TestRepositoryCreatedByItsParts(t *testing.T) {
	for name, want := range map[string]bool{".git": true, "objects": true, "refs": true, "hooks": false} {
		dir, user := place(t, map[string]string{"a": ""})
		g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, map[string]string{"new/.git/HEAD": "", "new/.git/objects/": "", "new/.git/refs/": "", "new/.git/hooks/pre-commit": ""})
		cleaned, err := g.Clean(t.Context(), func(_, created string) bool { return created == name })
		if err != nil || (len(cleaned.Removed) == 1) != want || (len(cleaned.Kept) == 1) == want {
			t.Errorf("created %s: %+v, %v", name, cleaned, err)
		}
	}
}

// A program can replace a protected file by replacing its folder, which nobody else does.
func TestFileInReplacedFolderIsRemoved(t *testing.T) {
	dir, user := place(t, map[string]string{"sub/.envrc": "mine"})
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"sub/.envrc": "evil"})
	cleaned, err := g.Clean(t.Context(), everything)
	if diff := cmp.Diff(Cleaned{Removed: []string{"sub/.envrc"}}, cleaned); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Folders that are missing, or no folders, are left out.
func TestOtherFoldersMayBeMissing(t *testing.T) {
	dir, user := place(t, map[string]string{"a": ""})
	other := tooltest.Place(t, map[string]string{"file": "", "folder/.envrc": ""})
	scope := Scope{Folders: []string{filepath.Join(other, "missing"), filepath.Join(other, "file"), filepath.Join(other, "folder")}}
	g, err := tooltest.Open(t, New(dir, user, "")).Guards(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(other, "folder/.envrc")}, g.ReadOnly); diff != "" {
		t.Error(diff)
	}
}

// Settings of branches that follow remotes which were there before are accepted; all else is not.
func TestAcceptsConfig(t *testing.T) {
	const before = "# mine\n[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x.git\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = origin/main\n[alias]\n\tx = !id\n"
	replaced := func(old, new string) string { return strings.Replace(before, old, new, 1) }
	tests := map[string]struct {
		after string
		want  bool
	}{
		"nothing changed":               {before, true},
		"a branch renamed":              {replaced(`"main"`, `"trunk"`), true},
		"a branch more":                 {before + "[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x/y-1\n\trebase = true\n", true},
		"one in the middle":             {replaced("[alias]", "[branch \"x\"]\n\tremote = .\n\tmerge = refs/heads/main\n[alias]"), true},
		"a branch deleted":              {before[:strings.Index(before, "[branch")] + before[strings.Index(before, "[alias]"):], true},
		"what the branch followed":      {replaced("\tmerge = refs/heads/main\n", ""), true},
		"what another branch had":       {replaced("[alias]", "[branch \"x\"]\n\tvscode-merge-base = origin/main\n[alias]"), true},
		"a remote that does not exist":  {replaced("remote = origin", "remote = evil"), false},
		"an address as remote":          {replaced("remote = origin", "remote = https://example.net/x.git"), false},
		"a push remote":                 {replaced("\tmerge", "\tpushRemote = evil\n\tmerge"), false},
		"a new remote":                  {before + "[remote \"evil\"]\n\turl = https://example.net/x.git\n", false},
		"the address of a remote":       {replaced("example.com", "example.net"), false},
		"an alias":                      {replaced("!id", "!sh"), false},
		"a setting deleted":             {replaced("\tbare = false\n", ""), false},
		"a section deleted":             {replaced("[alias]\n", ""), false},
		"a comment":                     {replaced("# mine", "# other"), false},
		"settings on the line of":       {replaced("[branch \"main\"]", "[branch \"main\"] mergeoptions = -s evil"), false},
		"options of a merge":            {replaced("\tmerge", "\tmergeOptions = --strategy=evil\n\tmerge"), false},
		"a value that is quoted":        {replaced("remote = origin", "remote = \"origin\""), false},
		"a line that continues":         {replaced("remote = origin", "remote = origin\\"), false},
		"a section after a return":      {replaced("remote = origin\n", "remote = origin\r[core]\rfsmonitor = x\n"), false},
		"a section in the name":         {replaced("\"main\"]", "\"main\"]\n[core]\n\tfsmonitor = x\n[branch \"y\"]"), false},
		"another section of that name":  {replaced("[branch \"main\"]", "[branch.main]"), false},
		"an inclusion":                  {"[include]\n\tpath = x\n" + before, false},
		"a key before the first header": {"\tremote = origin\n" + before, false},
	}
	for name, tt := range tests {
		if got := acceptsConfig(before, tt.after); got != tt.want {
			t.Errorf("%s: %v\n%s", name, got, tt.after)
		}
	}
	for _, section := range []string{"[remote \"x\"]\n\tfetch = y\n", "[x]\n\turl = y\n"} {
		if acceptsConfig(section, section+"[branch \"y\"]\n\tremote = x\n") {
			t.Errorf("%q is taken for a remote", section)
		}
	}
	if acceptsConfig("[core]\n\tx = a \\\n", "[core]\n\tx = a \\\n[branch \"x\"]\n\trebase = true\n") {
		t.Error("a section that begins in a value is accepted")
	}
}
