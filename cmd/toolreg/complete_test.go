//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// shells returns the shells to test, with the line that loads the completion into a shell
// without other configuration. The line replaces toolreg by a function that prints each
// of its arguments in brackets, as the shell has parsed them.
func shells() map[string]struct {
	argv []string
	load string
} {
	const posix = `toolreg() { printf '[%s]' "$@"; echo; }; `
	return map[string]struct {
		argv []string
		load string
	}{
		"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, posix + `PS1='$ '; eval "$(command toolreg completion bash)"; echo rea''dy`},
		"zsh":  {[]string{"zsh", "-f", "-i"}, posix + `PS1='%% '; autoload -U compinit; compinit -u -D; eval "$(command toolreg completion zsh)"; echo rea''dy`},
		"fish": {[]string{"fish", "--no-config", "-i"}, `function toolreg; printf '[%s]' $argv; echo; end; command toolreg completion fish | source; echo rea''dy`},
	}
}

// completions are what is typed and what the shell then shows: after the end of a line,
// the arguments that it has parsed.
var completions = []struct{ typed, shown string }{
	// Words of the program.
	{"toolreg discov\t\n", "[discover]"},
	{"toolreg help exit\t\n", "[help][exit-codes]"},
	{"toolreg completion fi\t\n", "[completion][fish]"},
	{"toolreg schema --format bed\t\n", "[schema][--format][bedrock]"},
	{"toolreg schema --format=bed\t\n", "[schema][--format=bedrock]"},
	{"toolreg --approval-mode pl\t\n", "[--approval-mode][plan]"},
	{"toolreg list --preset read-only,tod\t\n", "[list][--preset][read-only,todo]"},
	{"toolreg list --category comm\t\n", "[list][--category][command]"},
	{"toolreg serve --print-config cod\t\n", "[serve][--print-config][codex]"},
	{"toolreg serve --expose se\t--always read_f\t\n", "[serve][--expose][search][--always][read_file]"},
	{"toolreg settings show cache.dis\t\n", "[settings][show][cache.discovery]"},
	// Tools, their params and values; no space after "=".
	{"toolreg call read_f\tlim\t7\n", "[call][read_file][limit=7]"},
	{"toolreg why read_file file_path=nota\t\n", "[why][read_file][file_path=nota.txt]"},
	{"toolreg call write_file content=@my\t\n", "[call][write_file][content=@my notes.md]"},
	{"toolreg call write_file content=@fol\tin\t\n", "[call][write_file][content=@folder/inner.txt]"},
	{"toolreg call read_file \t\t", "How many lines to read"},
	// What the cache knows about a server.
	{"toolreg call bu\tgift\tfa\t\n", "[call][buy][gift=false]"},
	{"toolreg servers read sho\ttest://docs\t\n", "[servers][read][shop][test://docs/notes.txt]"},
	{"toolreg servers prompt shop rev\tcode\tmain.go\n", "[servers][prompt][shop][review][code=main.go]"},
	{"toolreg list --source mcp:\t\n", "[list][--source][mcp:shop]"},
	{"toolreg list --server sh\t\n", "[list][--server][shop]"},
	// Files and folders.
	{"toolreg --settings=nota\t\n", "[--settings=nota.txt]"},
	{"toolreg call read_file --params-file my\t\n", "[call][read_file][--params-file][my notes.md]"},
	{"toolreg plugins check fol\t\n", "[plugins][check][folder"},
	// Names and values from a server reach the shell as text.
	{"toolreg call shop__buy mode=two\t\n", "[call][shop__buy][mode=two words]"},
	{"toolreg call shop__buy mode=run\t\n", "[call][shop__buy][mode=run$(touch evil)]"},
	{"toolreg call shop__buy mode=back\t\n", "[call][shop__buy][mode=back`touch evil`]"},
	{"toolreg call shop__buy mode=semi\t\n", "[call][shop__buy][mode=semi;touch evil]"},
	{"toolreg call shop__buy mode=quo\t\n", "[call][shop__buy][mode=quo'\"te]"},
	{"toolreg call shop__buy mode=ban\t\n", "[call][shop__buy][mode=bang!!]"},
	{"toolreg call shop__buy mode=sta\t\n", "[call][shop__buy][mode=star*?[a]{b,c}]"},
	{"toolreg call shop__buy mode=amp\t\n", "[call][shop__buy][mode=amp&|><#^]"},
	{"toolreg call shop__buy mode=dol\t\n", "[call][shop__buy][mode=dollar$HOME(touch evil)]"},
	{"toolreg call shop__buy mode=til\t\n", "[call][shop__buy][mode=tilde ~ -x]"},
	{"toolreg call shop__buy k\t1\n", "[call][shop__buy][k;touch evil=1]"},
	// Values that cannot be shown unchanged are not completed.
	{"toolreg call shop__buy mode=esc\t\n", "[call][shop__buy][mode=esc]"},
	{"toolreg call shop__buy mode=lin\t\n", "[call][shop__buy][mode=lin]"},
	{"toolreg call shop__buy mode=tai\t\n", "[call][shop__buy][mode=tai]"},
	// Tab does not run what is typed; Ctrl-U discards it.
	{"toolreg call read_file file_path=$(touch evil) lim\t\x15echo cal''m\n", "calm"},
}

// TestCompletionInShells types in real shells at a terminal.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	dir, environ := completionProject(t)
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip("no " + name)
			}
			term := startShell(t, dir, environ, shell.argv)
			term.types(t, shell.load+"\n", "ready")
			for _, c := range completions {
				term.types(t, c.typed, c.shown)
				if strings.HasSuffix(c.typed, "\t") {
					term.types(t, "\x15echo ag''ain\n", "again")
				}
			}
		})
	}
	for _, file := range []string{"evil", "started"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			t.Errorf("%s exists: something ran", file)
		}
	}
}

// completionProject creates a project with files to complete and a user with a server
// whose tools are cached. It returns the project and the user's environment. The server
// creates the file "started" whenever it is started.
func completionProject(t *testing.T) (dir string, environ []string) {
	t.Helper()
	dir = t.TempDir()
	home := t.TempDir()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	enum := []string{"two words", "run$(touch evil)", "back`touch evil`", "semi;touch evil", "quo'\"te", "esc\x1b[2Jape", "\x1b]0;x\a",
		"line\ntouch evil", "tail ", "bang!!", "star*?[a]{b,c}", "amp&|><#^", "dollar$HOME(touch evil)", "tilde ~ -x"}
	listing, err := json.Marshal(map[string]any{"tools": []any{map[string]any{
		"name": "buy", "description": "Buys \x1b[2J things.\nAnd more `$(touch evil)`.",
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{
			"gift": map[string]any{"type": "boolean"}, "mode": map[string]any{"enum": enum}, "k;touch evil": map[string]any{"type": "string"},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	// The server is started by a script outside of the project, so that the file that it
	// creates does not invalidate the cache.
	server := filepath.Join(home, "shop")
	for name, text := range map[string]string{
		filepath.Join(dir, ".git/HEAD"): "", filepath.Join(dir, "my notes.md"): "x", filepath.Join(dir, "nota.txt"): "x",
		filepath.Join(dir, "folder/inner.txt"): "x", filepath.Join(home, "tools.json"): string(listing),
		server: "#!/bin/sh\n>>" + filepath.Join(dir, "started") + "\nexec mcp-testserver -offers -listing " + filepath.Join(home, "tools.json") + "\n",
		filepath.Join(home, "config/toolreg/settings.yaml"): "cache: {discovery: 1h}\nmcpServers: {shop: {command: " + server + "}}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_STATE_HOME=" + filepath.Join(home, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(home, "cache"), "XDG_DATA_HOME=" + filepath.Join(home, "data"), "TERM=xterm", "LC_ALL=C.UTF-8",
		"USER=" + me.Username, "LOGNAME=" + me.Username, "SHELL=/bin/sh", // fish and zsh set these, and cached listings depend on them
		"GORACE=atexit_sleep_ms=0"}
	list := exec.Command("toolreg", "servers")
	list.Dir, list.Env = dir, environ
	if out, err := list.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("shop\tstdio\tconnected")) {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, "started")); err != nil {
		t.Fatal(err)
	}
	return dir, environ
}

// shellTerminal is a shell at a terminal.
type shellTerminal struct {
	control *os.File
	output  chan []byte
}

func startShell(t *testing.T, dir string, environ, argv []string) *shellTerminal {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, environ
	control, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	s := &shellTerminal{control, make(chan []byte)}
	done := make(chan struct{})
	go func() {
		defer close(s.output)
		for {
			buf := make([]byte, 4096)
			n, err := control.Read(buf)
			select {
			case s.output <- buf[:n]:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the shell leads its group
		_ = cmd.Wait()
		control.Close()
		for range s.output { // until the reader has ended
		}
	})
	return s
}

// types types text and waits until the terminal shows want.
func (s *shellTerminal) types(t *testing.T, text, want string) {
	t.Helper()
	if _, err := s.control.WriteString(text); err != nil {
		t.Fatal(err)
	}
	limit := time.After(patience)
	var shown []byte
	for !bytes.Contains(shown, []byte(want)) {
		select {
		case part, open := <-s.output:
			if !open {
				t.Fatalf("after %q the shell ended:\n%q", text, shown)
			}
			shown = append(shown, part...)
		case <-limit:
			t.Fatalf("after %q there is no %q:\n%s", text, want, shown)
		}
	}
}
