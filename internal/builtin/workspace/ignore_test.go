package workspace

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/process"
)

var update = flag.Bool("update", false, "ask the installed git again for testdata/ignore.json")

// ignoreCase is a set of ignore files and git's answers for some paths.
type ignoreCase struct {
	Files   map[string]string `json:"files"`   // path of an ignore file to its text
	Paths   []string          `json:"paths"`   // folders end in a slash
	Ignored []string          `json:"ignored"` // those that git ignores
}

const ignoreVectors = "testdata/ignore.json"

// TestIgnoreLikeGit compares the matcher with recorded answers of git
// check-ignore, for handwritten and random cases.
func TestIgnoreLikeGit(t *testing.T) {
	if *update {
		record(t)
	}
	var cases []ignoreCase
	data, err := os.ReadFile(ignoreVectors)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 400 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.Ignored, ignoredPaths(c)); diff != "" {
			t.Errorf("%q (-git +ours)\n%s", c.Files, diff)
		}
	}
}

// ignoredPaths walks down to each path as a search does.
func ignoredPaths(c ignoreCase) []string {
	out := []string{}
	for _, path := range c.Paths {
		plain := strings.TrimSuffix(path, "/")
		var g *IgnoreRules
		parts := strings.Split(plain, "/")
		for i := range parts {
			dir := strings.Join(parts[:i], "/")
			if text, ok := c.Files[Join(dir, ".gitignore")]; ok {
				next := &IgnoreRules{}
				if g != nil {
					*next = *g
				}
				next[0] = &ignoreList{base: dir, rules: parseIgnore([]byte(text)), next: next[0]}
				g = next
			}
			last := i == len(parts)-1
			if g.Ignored(strings.Join(parts[:i+1], "/"), !last || path != plain) {
				out = append(out, path)
				break
			}
		}
	}
	return out
}

// record creates the cases and asks git for the answers.
func record(t *testing.T) {
	cases := slices.Concat(handwritten(), random(rand.New(rand.NewPCG(1, 2)), 400))
	for i := range cases {
		askGit(t, &cases[i])
	}
	lines := make([]string, len(cases))
	for i := range cases {
		data, err := json.Marshal(cases[i])
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(data)
	}
	tooltest.Put(t, ignoreVectors, "[\n"+strings.Join(lines, ",\n")+"\n]\n")
}

func handwritten() []ignoreCase {
	paths := []string{"a", "b", "a.o", "dir/", "dir/a", "dir/a.o", "dir/sub/", "dir/sub/a", "dir/sub/b.o", "x y", "!a", "#a", "A", "build/", "build/keep", "é", "a\\b", "[a]", "dir/abc/x", "a/b/c/d", "abc", "axc", "foo/bar/", "foo/barbaz/", "foo/bar/x"}
	one := []string{
		"a", "*.o", "/a", "dir", "dir/", "dir/*", "dir/**", "**/a", "**/sub/**", "dir/**/a", "!a\na", "a\n!a", "*\n!dir/\n!dir/a",
		"[!a]", "[^a]", "[a-c]", "[]a]", "[[:upper:]]", "[[:lower:]].o", "[[:bogus:]]", "[a", "a[", "x\\ y", "x y  ", "x y\\ ", "\\!a", "\\#a", "#a",
		"\ufeffa", "a\r\n*.o\r", "a/**", "**", "***", "**/", "/**", "dir/sub/", "sub/a", "/sub", "build\n!build/keep", "build/*\n!build/keep",
		"*/a", "*/*", "?", "??", "a?c", "a*c", "a**c", "dir/a**c/x", "ab**/x", "é", "\\a", "a\\", "a\\\\b", "\\[a\\]", "[/]", "dir[/]a", "dir/[!b]",
		"foo/bar/", "foo/ba/", "foo/*r/", "dir//a", "//a", "./a", "../a", "/", "//", "!", "!/", " a", "a ", "\ta", "a\t", "[a-]", "[--0]", "[z-a]", "[\\]a]", "[!]]",
	}
	var out []ignoreCase
	for _, text := range one {
		out = append(out, ignoreCase{Files: map[string]string{".gitignore": text}, Paths: paths})
	}
	return append(out,
		ignoreCase{Files: map[string]string{".gitignore": "*.o", "dir/.gitignore": "!a.o"}, Paths: paths},
		ignoreCase{Files: map[string]string{".gitignore": "!a", "dir/.gitignore": "a\n/sub/b.o"}, Paths: paths},
		ignoreCase{Files: map[string]string{".gitignore": "dir/", "dir/.gitignore": "!*"}, Paths: paths},
	)
}

func random(r *rand.Rand, n int) []ignoreCase {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	pieces := []string{"a", "b", "ab", "*", "**", "?", "/", "/", "[ab]", "[!a]", "\\a", ".", "a*", "*b", "**/", "/**"}
	names := []string{"a", "b", "ab", "ba", "aa", "a.b", "abc"}
	var out []ignoreCase
	for range n {
		c := ignoreCase{Files: map[string]string{}}
		for _, file := range []string{".gitignore", "a/.gitignore"} {
			var lines []string
			for range 1 + r.IntN(3) {
				line := pick([]string{"", "", "", "!", "/"})
				for range 1 + r.IntN(4) {
					line += pick(pieces)
				}
				lines = append(lines, line)
			}
			c.Files[file] = strings.Join(lines, "\n")
		}
		seen := map[string]bool{}
		for range 14 {
			var parts []string
			for range 1 + r.IntN(4) {
				parts = append(parts, pick(names))
			}
			path := strings.Join(parts, "/")
			if !seen[path] {
				seen[path] = true
				c.Paths = append(c.Paths, path)
			}
		}
		// A path that is the parent of others is a folder.
		for i, p := range c.Paths {
			if slices.ContainsFunc(c.Paths, func(q string) bool { return strings.HasPrefix(q, p+"/") }) || p == "a" {
				c.Paths[i] = p + "/"
			}
		}
		out = append(out, c)
	}
	return out
}

// askGit records the answers of git check-ignore for the paths. It creates them
// first, so that git sees which are folders.
func askGit(t *testing.T, c *ignoreCase) {
	t.Helper()
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		out, err := process.Run(t.Context(), process.Spec{
			Argv: append([]string{"git"}, args...), Dir: dir, Stdin: []byte(stdin),
			Env: []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME=" + dir, "XDG_CONFIG_HOME=" + dir},
		})
		if err != nil || out.ExitCode > 1 {
			t.Fatalf("git %v: %v, exit code %d: %s", args, err, out.ExitCode, out.Stderr)
		}
		return string(out.Stdout)
	}
	git("", "init", "-q")
	var usable []string
	for _, p := range c.Paths {
		full := filepath.Join(dir, filepath.FromSlash(p))
		var err error
		if strings.HasSuffix(p, "/") {
			err = os.MkdirAll(full, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(full), 0o755); err == nil {
			if info, statErr := os.Stat(full); statErr == nil && info.IsDir() {
				continue
			}
			err = os.WriteFile(full, nil, 0o644)
		}
		if err == nil {
			usable = append(usable, p)
		}
	}
	c.Paths = usable
	for file, text := range c.Files {
		tooltest.Put(t, filepath.Join(dir, filepath.FromSlash(file)), text)
	}
	c.Ignored = []string{}
	plain := make([]string, len(usable))
	for i, p := range usable {
		plain[i] = strings.TrimSuffix(p, "/")
	}
	answer := git(strings.Join(plain, "\x00")+"\x00", "check-ignore", "-z", "--stdin")
	said := strings.Split(strings.TrimSuffix(answer, "\x00"), "\x00")
	for i, p := range usable {
		if slices.Contains(said, plain[i]) {
			c.Ignored = append(c.Ignored, p)
		}
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add("a\n!b\n*.o\n[!a]/**\n", "a/b/c.o")
	f.Add("**/[[:alpha:]\\", "x")
	f.Fuzz(func(t *testing.T, text, path string) {
		path = strings.Trim(path, "/")
		list := &ignoreList{rules: parseIgnore([]byte(text))}
		first, ignored := list.decide(path, false)
		if ignored && !first {
			t.Error("ignored without a rule")
		}
		// Comments, empty lines and a byte order mark change nothing.
		noisy := bytes.Join([][]byte{[]byte("# comment\n\n"), bytes.TrimPrefix([]byte(text), []byte(textfile.BOM)), []byte("\n#\n")}, nil)
		if _, again := (&ignoreList{rules: parseIgnore(noisy)}).decide(path, false); again != ignored {
			t.Errorf("%q ignored: %v, with comments %v", path, ignored, again)
		}
	})
}

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
