//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// TestTools runs common build and test tools under the default profile, which has
// only a loopback network, with the caches of the user who runs the tests.
func TestTools(t *testing.T) {
	needFull(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	for tool, script := range map[string]string{
		"git":     `git init -q . && git add . && git commit -qm one && git checkout -q -b topic && git gc -q && git log --oneline`,
		"make":    `make -s built && cat built`,
		"cc":      `echo 'int puts(const char *); int main() { puts("c"); }' >a.c && cc -o a a.c && ./a`,
		"go":      `go build -o a . && ./a && go vet . && go test .`,
		"cargo":   `cargo check -q --offline && cargo run -q --offline`,
		"python3": `python3 server.py && python3 -m venv --without-pip v && v/bin/python -c 'import ssl, sqlite3'`,
		"node":    `node --test server.test.js >out || { cat out; exit 1; }`,
		"npm":     `npm test --silent && npm ci --silent --offline --no-audit --no-fund`,
		"bash":    `cat <<<here && diff <(echo a) <(echo a) && mkfifo p && (echo x >p & cat p) && tty; [ -w /dev/shm ]`,
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			if _, err := osexec.LookPath(tool); err != nil {
				t.Skip(err)
			}
			if tool == "cargo" { // may be a proxy of rustup without a toolchain
				if out, err := osexec.CommandContext(t.Context(), tool, "--version").CombinedOutput(); err != nil {
					t.Skipf("cargo --version: %v: %s", err, out)
				}
			}
			dir := t.TempDir()
			for name, text := range toolFiles() {
				writeFile(t, filepath.Join(dir, name), text)
			}
			profile := sandbox.Default(sandbox.Place{Workspace: []string{dir}, Home: home, Environ: os.Environ()})
			env := append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com",
				"GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=off")
			o, err := process.Run(t.Context(), process.Spec{Argv: []string{"/bin/bash", "-c", script}, Env: env, Dir: dir, Confine: &profile})
			if err != nil || o.ExitCode != 0 {
				t.Errorf("%v, exit code %d\n%s%s", err, o.ExitCode, o.Stdout, o.Stderr)
			}
		})
	}
}

// toolFiles is a project in several languages, whose tests start servers.
func toolFiles() map[string]string {
	return map[string]string{
		"Makefile":  "built:\n\techo made >built\n",
		"go.mod":    "module example.com/a\n\ngo 1.22\n",
		"main.go":   "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"go\") }\n",
		"a_test.go": "package main\n\nimport (\n\t\"net\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestServer(t *testing.T) {\n\tl, err := net.Listen(\"tcp\", \"localhost:0\")\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tif _, err := net.Dial(\"tcp\", l.Addr().String()); err != nil {\n\t\tt.Fatal(err)\n\t}\n\tif err := os.WriteFile(t.TempDir()+\"/f\", nil, 0o600); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n",
		"server.py": "import http.server, multiprocessing, threading, urllib.request\ns = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever, daemon=True).start()\nassert urllib.request.urlopen('http://127.0.0.1:%d/go.mod' % s.server_port).status == 200\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as p: assert p.map(abs, [-1, 2]) == [1, 2]\n",
		"server.test.js": "const test = require('node:test'), http = require('node:http');\ntest('server', async (t) => {\n  const s = http.createServer((q, r) => r.end('ok')).listen(0, '127.0.0.1');\n" +
			"  t.after(() => { s.close(); s.closeAllConnections(); });\n  await new Promise(r => s.on('listening', r));\n  const r = await fetch('http://127.0.0.1:' + s.address().port);\n  if (await r.text() !== 'ok') throw 1;\n});\n",
		"package.json":      `{"name": "a", "version": "1.0.0", "scripts": {"test": "node -e 0"}}`,
		"package-lock.json": `{"name": "a", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "a", "version": "1.0.0"}}}`,
		"Cargo.toml":        "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"src/main.rs":       "fn main() { println!(\"rust\"); }\n",
	}
}
