package trust

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestScriptsAreCodeThatWordsName(t *testing.T) {
	root := Real(t.TempDir())
	for name, text := range map[string]string{
		"run.sh": ". ./loaded.sh\n", "loaded.sh": "", "free.sh": "", "server.py": "", "data.json": "{}", "package.json": "{}",
		"index.js": `require("./lib")`, "lib.js": "", "node_modules/x/index.js": "", "bin/tool": "", ".venv/bin/python": "",
	} {
		path, mode := filepath.Join(root, name), os.FileMode(0o600)
		if filepath.Base(filepath.Dir(name)) == "bin" {
			mode = 0o700
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
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
		for i := range got {
			got[i] = Name(root, got[i])
		}
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q, %v", test.argv, got, test.want, err)
		}
	}
}
