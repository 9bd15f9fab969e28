package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestChangedFileEndsTrust checks every way in which a command can name a file: if
// the file is changed or created after the grant, the project is no longer
// trusted.
func TestChangedFileEndsTrust(t *testing.T) {
	tests := []struct {
		name string
		argv []string
		env  []string // from the settings
		have []string // inherited
		dir  string
		file string // the file that changes
		new  bool   // the file is created after the grant
	}{
		{name: "a path", argv: []string{"./tools/run.sh"}, file: "tools/run.sh"},
		{name: "a missing path", argv: []string{"sh", "./tools/run.sh"}, file: "tools/run.sh", new: true},
		{name: "a variable of ours", argv: []string{"sh", "-c", `exec "$TOOLREG_PROJECT_ROOT"/tools/run.sh`}, dir: "sub", file: "tools/run.sh"},
		{name: "in braces", argv: []string{"sh", "-c", "${TOOLREG_PROJECT_ROOT:?}/tools/run.sh"}, dir: "sub", file: "tools/run.sh"},
		{name: "a variable of the settings", argv: []string{"sh", "-c", "$X/run.sh"}, env: []string{"X=tools"}, file: "tools/run.sh"},
		{name: "a variable of the process", argv: []string{"sh", "-c", "$HOME/p/tools/run.sh"}, have: []string{"HOME=<above>"}, file: "tools/run.sh"},
		{name: "an unknown variable", argv: []string{"sh", "-c", "cd sub; $(git rev-parse --show-toplevel)/tools/run.sh"}, file: "tools/run.sh"},
		{name: "a folder of the process", argv: []string{"sh", "/proc/self/cwd/tools/run.sh"}, file: "tools/run.sh"},
		{name: "its root", argv: []string{"sh", "/proc/self/root<root>/tools/run.sh"}, file: "tools/run.sh"},
		{name: "another folder", argv: []string{"sh", "-c", "cd tools && ./run.sh"}, file: "tools/run.sh"},
		{name: "folder by folder", argv: []string{"sh", "-c", "cd a; cd b; ./run.sh"}, file: "a/b/run.sh"},
		{name: "inside quotes", argv: []string{"sh", "-c", `tools/r"u"n'.sh'`}, file: "tools/run.sh"},
		{name: "a pattern", argv: []string{"sh", "-c", "tools/r?n.*"}, file: "tools/run.sh"},
		{name: "a program that runs it", argv: []string{"env", "A=b", "timeout", "5", "sh", "tools/run.sh"}, file: "tools/run.sh"},
		{name: "an option's value", argv: []string{"node", "--require=./tools/hook.js", "x"}, file: "tools/hook.js"},
		{name: "an option's letter", argv: []string{"node", "-r./tools/hook.js"}, file: "tools/hook.js"},
		{name: "a file of arguments", argv: []string{"java", "@tools/args"}, file: "tools/args"},
		{name: "an address", argv: []string{"deno", "run", "file://<root>/tools/d.ts"}, file: "tools/d.ts"},
		{name: "code", argv: []string{"python3", "-c", `exec(open("tools/d.py").read())`}, file: "tools/d.py"},
		{name: "code that adds words", argv: []string{"python3", "-c", `import os; exec(open(os.environ["TOOLREG_PROJECT_ROOT"]+"/tools/d.py").read())`}, dir: "sub", file: "tools/d.py"},
		{name: "a module", argv: []string{"python3", "-m", "tools.disc"}, file: "tools/disc.py"},
		{name: "a module at its letter", argv: []string{"python3", "-mtools.disc"}, file: "tools/disc.py"},
		{name: "a package", argv: []string{"python3", "-m", "tools.disc"}, file: "tools/disc/__main__.py"},
		{name: "around a module", argv: []string{"python3", "-m", "tools.disc"}, file: "tools/__init__.py", new: true},
		{name: "before the library's", argv: []string{"python3", "-m", "json.tool"}, file: "json/tool.py", new: true},
		{name: "before what that imports", argv: []string{"python3", "-m", "json.tool"}, file: "argparse.py", new: true},
		{name: "beside the script", argv: []string{"python3", "tools/d.py"}, file: "tools/json.py", new: true},
		{name: "a library beside it", argv: []string{"uv", "run", "python", "tools/d.py"}, file: "tools/json.so", new: true},
		{name: "a package beside it", argv: []string{"python3", "tools/d.py"}, file: "tools/json/__init__.py", new: true},
		{name: "an application", argv: []string{"uvicorn", "app.main:app"}, file: "app/main.py"},
		{name: "an extension", argv: []string{"node", "tools/d"}, file: "tools/d.js"},
		{name: "before the extension", argv: []string{"node", "tools/hook"}, file: "tools/hook", new: true},
		{name: "a folder's entry", argv: []string{"node", "srv"}, file: "srv/index.js"},
		{name: "a folder's package", argv: []string{"node", "srv"}, file: "srv/package.json", new: true},
		{name: "what a package names", argv: []string{"node", "pkg"}, file: "pkg/lib/x.js"},
		{name: "a script of a package", argv: []string{"npm", "run", "discover"}, file: "tools/d.js"},
		{name: "a runner's settings", argv: []string{"npm", "run", "discover"}, file: ".npmrc", new: true},
		{name: "a runner below", argv: []string{"npm", "run", "discover"}, dir: "sub", file: "package.json"},
		{name: "make", argv: []string{"make", "x"}, file: "Makefile"},
		{name: "before the Makefile", argv: []string{"make", "x"}, file: "GNUmakefile", new: true},
		{name: "make elsewhere", argv: []string{"make", "-C", "tools"}, file: "tools/Makefile"},
		{name: "make at its letter", argv: []string{"make", "-Ctools"}, file: "tools/Makefile"},
		{name: "make in a shell", argv: []string{"sh", "-c", "cd tools && make"}, file: "tools/Makefile"},
		{name: "pixi", argv: []string{"pixi", "run", "x"}, file: "pixi.toml"},
		{name: "devenv", argv: []string{"devenv", "shell", "x"}, file: "devenv.nix", new: true},
		{name: "vite-node", argv: []string{"vite-node", "x.ts"}, file: "vite.config.ts", new: true},
		{name: "nodemon", argv: []string{"nodemon", "x.js"}, file: "nodemon.json"},
		{name: "dotenvx", argv: []string{"dotenvx", "run", "--", "x"}, file: ".env.local", new: true},
		{name: "fastmcp", argv: []string{"fastmcp", "run"}, file: "fastmcp.json"},
		{name: "just", argv: []string{"just", "x"}, file: ".justfile", new: true},
		{name: "cargo", argv: []string{"cargo", "run"}, file: "build.rs", new: true},
		{name: "go", argv: []string{"go", "run", "./cmd"}, file: "cmd/other.go", new: true},
		{name: "PATH of the settings", argv: []string{"x"}, env: []string{"PATH=<root>/bin:/usr/bin"}, file: "bin/x"},
		{name: "PATH by a variable", argv: []string{"x"}, env: []string{"PATH=$TOOLREG_PROJECT_ROOT/bin:$PATH"}, file: "bin/x"},
		{name: "PATH of the process", argv: []string{"x"}, have: []string{"PATH=<root>/bin:/usr/bin"}, file: "bin/x"},
		{name: "before another in PATH", argv: []string{"sh", "-c", "ls"}, env: []string{"PATH=<root>/bin:/usr/bin"}, file: "bin/ls", new: true},
		{name: "npx", argv: []string{"npx", "-y", "mcp-x@1.0.0"}, file: "node_modules/.bin/mcp-x", new: true},
		{name: "npx with a scope", argv: []string{"npx", "@a/mcp-x"}, file: "node_modules/@a/mcp-x/package.json", new: true},
		{name: "npx below", argv: []string{"npx", "mcp-x"}, dir: "sub", file: "node_modules/.bin/mcp-x", new: true},
		{name: "uv", argv: []string{"uv", "run", "mcp-x"}, file: ".venv/bin/mcp-x", new: true},
		{name: "BASH_ENV alone", env: []string{"BASH_ENV=tools/run.sh"}, file: "tools/run.sh"},
		{name: "NODE_OPTIONS alone", env: []string{"NODE_OPTIONS=--max-old-space-size=9 --require ./tools/hook"}, file: "tools/hook.js"},
		{name: "PYTHONSTARTUP alone", env: []string{"PYTHONSTARTUP=$TOOLREG_PROJECT_ROOT/tools/d.py"}, file: "tools/d.py"},
		{name: "PYTHONPATH", argv: []string{"python3", "-m", "x"}, env: []string{"PYTHONPATH=lib"}, file: "lib/y/z.py", new: true},
		{name: "what a script sources", argv: []string{"tools/sources.sh"}, file: "tools/lib.sh"},
		{name: "what that sources", argv: []string{"tools/sources.sh"}, dir: "sub", file: "tools/deep/x.sh"},
		{name: "by the folder of the script", argv: []string{"tools/sources.sh"}, dir: "sub", file: "lib/found.sh"},
		{name: "by a variable", argv: []string{"tools/sources.sh"}, dir: "sub", file: "tools/variable.sh"},
		{name: "what a script runs", argv: []string{"tools/sources.sh"}, dir: "sub", file: "tools/run.py"},
		{name: "what a script without extension runs", argv: []string{"bin/start"}, file: "srv/x.mjs"},
		{name: "a module of JavaScript", argv: []string{"node", "tools/main"}, file: "lib/a.js"},
		{name: "a module of that", argv: []string{"node", "tools/main.js"}, file: "lib/b/index.js"},
		{name: "a module that is found first", argv: []string{"node", "tools/main.js"}, file: "lib/a", new: true},
		{name: "git in a plugin", file: ".toolreg/plugins/one/.git/run"},
		{name: "a new file in a plugin", file: ".toolreg/plugins/one/new", new: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			above := tempDir(t)
			root := filepath.Join(above, "p")
			for _, dir := range []string{"sub", "a/b", "srv", "tools", "lib", "bin", "cmd"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(root, "package.json"), `{"scripts": {"discover": "node tools/d.js"}}`)
			write(t, filepath.Join(root, "pkg/package.json"), `{"main": "./lib/x"}`)
			write(t, filepath.Join(root, "tools/d.py"), "x")
			write(t, filepath.Join(root, "tools/sources.sh"), "#!/usr/bin/env bash\nset -e; . tools/lib.sh\n"+
				"source \"$(cd \"$(dirname \"$0\")\" && pwd)/../lib/found.sh\" x\nif source ${HERE}/variable.sh; then exec python3 -u \"$HERE/run.py\" \"$@\"; fi\n")
			write(t, filepath.Join(root, "tools/lib.sh"), ". ./deep/x.sh")
			write(t, filepath.Join(root, "bin/start"), "#!/bin/sh\nexec node \"$(dirname \"$0\")/../srv/x.mjs\"\n")
			write(t, filepath.Join(root, "tools/main.js"), "const a = require('../lib/a');\n")
			write(t, filepath.Join(root, "lib/a.js"), "import x, {\n y } from \"./b\"\n")
			write(t, filepath.Join(root, "lib/b/index.js"), "require('../a.js')")
			write(t, filepath.Join(root, ".toolreg/plugins/one/plugin.yaml"), "id: one")
			file := filepath.Join(root, test.file)
			if !test.new {
				write(t, file, "before")
			}
			known := strings.NewReplacer("<root>", root, "<above>", above)
			all := func(in []string) (out []string) {
				for _, word := range in {
					out = append(out, known.Replace(word))
				}
				return out
			}
			p := Program{Dir: filepath.Join(root, test.dir), Argv: all(test.argv), Env: all(test.env), Inherited: all(test.have)}
			cover := func() []File {
				files, err := Cover(root, nil, []Program{p}, []string{filepath.Join(root, ".toolreg", "plugins")})
				if err != nil {
					t.Fatal(err)
				}
				return files
			}
			s := newStore(t)
			if _, err := s.Grant(t.Context(), root, cover(), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if st, err := s.Check(root, cover()); err != nil || !st.Trusted {
				t.Fatalf("unchanged: %+v, %v", st, err)
			}
			write(t, file, "after")
			if st, err := s.Check(root, cover()); err != nil || st.Trusted {
				t.Errorf("%s changed, and the project is still trusted (%v)", test.file, err)
			}
		})
	}
}

func TestTooManyFoldersFail(t *testing.T) {
	root := tempDir(t)
	var argv []string
	for i := range maxFolders {
		dir := filepath.Join(root, "d"+strings.Repeat("x", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		argv = append(argv, dir)
	}
	if _, err := Cover(root, nil, []Program{{Argv: argv, Dir: root}}, nil); err == nil {
		t.Error("the command is covered although not all its folders were searched")
	}
}

// TestBytecode checks that compiled Python modules are covered if Python runs them
// without comparing them with the source, and that ordinary ones, which change
// often, are not.
func TestBytecode(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "run.py"), "import helper")
	write(t, filepath.Join(root, "helper.py"), "")
	timed, hashed := "\xa7\r\r\n\x00\x00\x00\x00............", "\xa7\r\r\n\x01\x00\x00\x00............"
	write(t, filepath.Join(root, "__pycache__/helper.cpython-311.pyc"), timed)
	write(t, filepath.Join(root, "__pycache__/another.cpython-311.pyc"), hashed)
	write(t, filepath.Join(root, "__pycache__/other.cpython-311.pyc"), hashed)
	covered := func() string {
		files, err := Cover(root, nil, []Program{{Dir: root, Argv: []string{"python3", "run.py"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range files {
			names = append(names, f.Name)
		}
		return strings.Join(names, " ")
	}
	if got := covered(); got != "helper.py run.py" {
		t.Errorf("covered: %s", got)
	}
	write(t, filepath.Join(root, "__pycache__/helper.cpython-312.pyc"), hashed)
	write(t, filepath.Join(root, "__pycache__/helper.cpython-312.opt-1.pyc"), hashed)
	if got := covered(); got != "__pycache__/helper.cpython-312.opt-1.pyc __pycache__/helper.cpython-312.pyc helper.py run.py" {
		t.Errorf("covered: %s", got)
	}
}

func TestFilesThatScriptsLoadAreCovered(t *testing.T) {
	padded := func(script string, size int) string { return script + strings.Repeat("#", size-len(script)) }
	for name, tt := range map[string]struct {
		run  string
		text string
		want string
	}{
		"a script without a first line of its own": {"run.sh", "cd x\n. ./lib.sh\n", "lib.sh run.sh"},
		"a script of another language":             {"run", "#!/usr/bin/python3\n. ./lib.sh\nimport './one'\n", "one.js run"},
		"the largest script that is searched":      {"run.sh", padded(". ./lib.sh\n", 256<<10), "lib.sh run.sh"},
		"a larger one":                             {"run.sh", padded(". ./lib.sh\n", 256<<10+1), "run.sh"},
		"two modules":                              {"run.js", "import './one'\nimport './two'\n", "one.js run.js two.js"},
		"a script beside folders of that name":     {"run.sh", ". ./four\n", "four run.sh"},
		"a module beside a folder of that name":    {"run.js", "import './three'\n", "run.js three.ts"},
	} {
		root := tempDir(t)
		for _, file := range []string{"lib.sh", "one.js", "two.js", "three.js/empty", "three.ts", "four.sh/empty", "four.js/empty", "four"} {
			write(t, filepath.Join(root, file), "")
		}
		write(t, filepath.Join(root, tt.run), tt.text)
		if got := strings.Join(names(t, root, Program{Argv: []string{"./" + tt.run}, Dir: root}), " "); got != tt.want {
			t.Errorf("%s: covered %s, want %s", name, got, tt.want)
		}
	}
}

// If a command may mean several files, all of them are covered. A file outside the
// project is covered only if it is a link into it.
func TestAmbiguousCommandCoversAllMeanings(t *testing.T) {
	for name, tt := range map[string]struct {
		argv, env []string // <above> is the folder above the project
		want      string
	}{
		"a pattern":                    {argv: []string{"sh", "-c", "tools/*.sh"}, want: "tools/a.sh tools/b.sh"},
		"extensions":                   {argv: []string{"node", "srv/d"}, want: "srv/d srv/d.js srv/d.ts"},
		"one with its extension":       {argv: []string{"node", "srv/d.ts"}, want: "srv/d.ts"},
		"programs on PATH":             {argv: []string{"one", "two", "plain"}, env: []string{"PATH=<above>/bin"}, want: "tools/a.sh tools/b.sh"},
		"folders of code":              {argv: []string{"x"}, env: []string{"PYTHONPATH=none:lib:more"}, want: "lib/l.py more/m.py"},
		"folders of code by variables": {argv: []string{"x"}, env: []string{"NODE_PATH=lib", "RUBYLIB=more"}, want: "lib/l.py more/m.py"},
		"a folder of code outside":     {argv: []string{"x"}, env: []string{"PYTHONPATH=<above>/bin"}},
		"a file as a folder of code":   {argv: []string{"x"}, env: []string{"CLASSPATH=tools/a.sh"}, want: "tools/a.sh"},
	} {
		above := tempDir(t)
		root := filepath.Join(above, "p")
		for _, file := range []string{"tools/a.sh", "tools/b.sh", "srv/d", "srv/d.js", "srv/d.ts", "lib/l.py", "more/m.py", "../bin/plain"} {
			write(t, filepath.Join(root, file), "")
		}
		link(t, filepath.Join(root, "tools/a.sh"), filepath.Join(above, "bin/one"))
		link(t, filepath.Join(root, "tools/b.sh"), filepath.Join(above, "bin/two"))
		var env []string
		for _, entry := range tt.env {
			env = append(env, strings.ReplaceAll(entry, "<above>", above))
		}
		got := strings.Join(names(t, root, Program{Argv: tt.argv, Dir: root, Env: env}), " ")
		if want := strings.ReplaceAll(tt.want, "<above>", above); got != want {
			t.Errorf("%s: covered %q, want %q", name, got, want)
		}
	}
}

// A file that is too large to be covered is an error wherever it is found.
func TestTooLargeFileFails(t *testing.T) {
	for _, tt := range []struct {
		argv, env []string
		large     string
	}{
		{[]string{"python3", "run.py"}, nil, "other.py"},
		{[]string{"sh", "-c", "*.py"}, nil, "run.py"},
		{[]string{"node", "run"}, nil, "run.js"},
		{[]string{"x"}, []string{"PYTHONPATH=lib"}, "lib/x.py"},
		{[]string{"sh", "run.sh"}, nil, "lib.sh"},
		{[]string{"node", "run.mjs"}, nil, "lib.mjs"},
	} {
		root := tempDir(t)
		write(t, filepath.Join(root, "run.py"), "")
		write(t, filepath.Join(root, "run.sh"), ". ./lib.sh")
		write(t, filepath.Join(root, "run.mjs"), "import './lib.mjs'")
		if err := os.Truncate(write(t, filepath.Join(root, tt.large), ""), maxBytes+1); err != nil { // sparse
			t.Fatal(err)
		}
		if _, err := Cover(root, nil, []Program{{Argv: tt.argv, Dir: root, Env: tt.env}}, nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%q %q, %s: %v, want ErrTooLarge", tt.argv, tt.env, tt.large, err)
		}
	}
}

// A link in a folder of PATH outside the project can lead to a program in it.
func TestProgramThatPathFindsThroughLinkIsCovered(t *testing.T) {
	root := tempDir(t)
	program := write(t, filepath.Join(root, "tools/run"), "")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(tempDir(t), "bin")
	write(t, filepath.Join(bin, "other"), "")
	link(t, program, filepath.Join(bin, "run"))
	link(t, write(t, filepath.Join(root, "tools/more"), ""), filepath.Join(bin, "more"))
	for line, want := range map[string]string{"run": "tools/run", "other": "", "run more": "tools/more tools/run"} {
		if got := strings.Join(names(t, root, Program{Argv: strings.Fields(line), Dir: root, Inherited: []string{"PATH=" + bin}}), " "); got != want {
			t.Errorf("%s: covered %q, want %q", line, got, want)
		}
	}
}

// Only programs that find more files by themselves are named, each once.
func TestRunnersAreNamedOnce(t *testing.T) {
	got := Runners([]string{"cat", "npx", "npx", "python3", "srv.py", "node", "srv.js"})
	if diff := cmp.Diff([]string{"npx"}, got); diff != "" {
		t.Error(diff)
	}
}

// PATH finds the first program of a name that can run. A path is no such name.
func TestProgramOnPathIsTheFirstThatRuns(t *testing.T) {
	root, top := tempDir(t), tempDir(t)
	write(t, filepath.Join(top, "plain/run"), "")
	write(t, filepath.Join(top, "folder/run/x"), "")
	for _, name := range []string{"bin/run", "bin/sub/run"} {
		if err := os.Chmod(write(t, filepath.Join(top, name), ""), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := strings.Join([]string{filepath.Join(top, "missing"), filepath.Join(top, "plain"), filepath.Join(top, "folder"), filepath.Join(top, "bin")}, string(filepath.ListSeparator))
	for word, want := range map[string]string{"run": filepath.Join(top, "bin/run"), "sub/run": "", "": "", "..": "", ".": ""} {
		files, err := Cover(root, nil, []Program{{Argv: []string{word}, Dir: root, Inherited: []string{"PATH=" + path}}}, nil)
		got := ""
		for _, f := range files {
			got += f.Path
		}
		if got != want || err != nil {
			t.Errorf("%q: %q, want %q, %v", word, got, want, err)
		}
	}
}
