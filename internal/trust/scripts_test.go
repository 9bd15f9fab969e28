package trust

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestScriptsAreCodeThatWordsName(t *testing.T) {
	root := project(t, map[string]string{
		"run.sh": ". ./loaded.sh\n", "loaded.sh": "", "free.sh": "", "server.py": "", "data.json": "{}", "package.json": "{}",
		"index.js": `require("./lib")`, "lib.js": "", "node_modules/x/index.js": "", "bin/tool": "", ".venv/bin/python": "",
	})
	for _, test := range []struct {
		argv, want []string
	}{
		{[]string{"sh", "run.sh"}, []string{"loaded.sh", "run.sh"}},
		{[]string{"sh", "-c", "sh run.sh >data.json"}, []string{"loaded.sh", "run.sh"}},
		{[]string{"python3", "-m", "server"}, []string{"server.py"}},
		{[]string{"python3", filepath.Join(root, "server.py"), "--config=data.json"}, []string{"server.py"}},
		{[]string{"node", "index.js"}, []string{"index.js", "lib.js"}},
		{[]string{"bin/tool"}, []string{"bin/tool"}},
		{[]string{"npm", "start"}, nil},
		{[]string{".venv/bin/python", "node_modules/x/index.js"}, nil},
	} {
		got, err := Scripts(root, []Program{{Argv: test.argv, Dir: root}})
		checkNames(t, root, test.argv, test.want, got, err)
	}
}

// What a command starts with has the files that tell a runner what to do, and the programs that
// these name; but not what only later arguments would run.
func TestStartedFilesAreThoseOfTheProgram(t *testing.T) {
	root := project(t, map[string]string{
		"run.sh": ". ./loaded.sh\n", "loaded.sh": "", "pkg/mod.py": "", "Makefile": "", "bin/make": "", "data.txt": "",
		"package.json": `{"scripts": {"start": "node index.js && tool && dep"}}`, "index.js": "", "node_modules/.bin/tool": "",
		"node_modules/dep/package.json": `{"scripts": {"start": "inner"}}`, "node_modules/dep/node_modules/.bin/inner": "",
	})
	for _, test := range []struct {
		argv, want []string
	}{
		{[]string{"./run.sh", "data.txt"}, []string{"loaded.sh", "run.sh"}},
		{[]string{"run.sh"}, nil}, // searched for in PATH, not in the folder
		{[]string{"sh", "run.sh"}, []string{"loaded.sh", "run.sh"}},
		{[]string{"sh", "-c", "sh run.sh"}, nil}, // the command in it is one of its own
		{[]string{"python3", "-m", "pkg.mod"}, []string{"pkg/mod.py"}},
		{[]string{"python3", "-x", "pkg.mod"}, nil},
		{[]string{"make", "all"}, []string{"Makefile"}},
		{[]string{"echo", "npm"}, nil},
		{[]string{"npm", "start"}, []string{"index.js", "node_modules/.bin/tool", "node_modules/dep/package.json", "package.json"}},
		{nil, nil},
	} {
		got, err := Started(root, Program{Argv: test.argv, Dir: root})
		checkNames(t, root, test.argv, test.want, got, err)
	}
}

// project returns a folder with files. Those in folders for programs can be run.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	root := Real(t.TempDir())
	for name, text := range files {
		path, mode := filepath.Join(root, name), os.FileMode(0o600)
		if folder := filepath.Base(filepath.Dir(name)); folder == "bin" || folder == ".bin" {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// checkNames compares the files found for a command with their names in the project.
func checkNames(t *testing.T, root string, argv, want, got []string, err error) {
	t.Helper()
	for i := range got {
		got[i] = Name(root, got[i])
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %q, want %q, %v", argv, got, want, err)
	}
}
