//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/sandbox"
)

func TestMain(m *testing.M) {
	testscript.Main(withServer{m}, map[string]func(){
		"toolreg":     run,
		"mcp-browser": func() { os.Exit(browse()) },
	})
}

// withServer adds mcp-testserver to PATH.
type withServer struct{ *testing.M }

func (w withServer) Run() int {
	dir, err := mcptest.Build()
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		log.Fatal(err)
	}
	// Under nohup, or behind & of a script, the programs that the tests start would inherit that
	// these are ignored. A caught signal is not ignored in them.
	caught := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return w.M.Run()
}

// run is main, but ends at once after it has evaluated an expression, whose time is
// limited: with the race detector, os.Exit takes a second. On a busy machine anything may take
// two seconds, so who is waited for is told only where a script says so.
func run() {
	streams := cli.NewStreams(os.Stdin, os.Stdout, os.Stderr)
	if len(os.Args) > 1 && os.Args[1] == cli.EvaluateCommand {
		syscall.Exit(commands.Program(version).Run(context.Background(), os.Args, streams, os.Environ()))
	}
	if os.Getenv("TELL_WAITS") == "" {
		streams.Patience = 0
	}
	os.Exit(program(streams))
}

// TestScripts runs the command as a user would, against real files, processes,
// terminals and servers.
func TestScripts(t *testing.T) {
	t.Parallel()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lookAt(t, filepath.Join(repo, "testdata"))
	lookAt(t, filepath.Join(repo, "examples"))
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(repo, "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
			e.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
			e.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
			e.Setenv("TERM", "xterm")
			e.Setenv("PAGER", "cat")
			e.Setenv("REPO", repo)
			// With the race detector a program sleeps for a second before it exits.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Defer(func() { stopKept(e) })
			// Every script has its own project. Without this folder the search for the
			// project root would leave the work directory.
			return os.MkdirAll(filepath.Join(e.WorkDir, ".git"), 0o777)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":      codeCommand,
			"answer":    answerCommand,
			"keys":      keysCommand,
			"signal":    signalCommand,
			"gone":      goneCommand,
			"pack":      packCommand,
			"registry":  registryCommand,
			"website":   websiteCommand,
			"collector": collectorCommand,
			"redis":     redisCommand,
			"authority": authorityCommand,
		},
		Condition: func(name string) (bool, error) {
			if name != "sandbox" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return sandbox.Probe().Full(), nil
		},
	})
}

// lookAt looks at each file of a folder. Many are read only by the programs that tests
// start, of which go test knows nothing: after a change of such a file it would print the result of an
// earlier run.
func lookAt(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// stopKept stops the servers that a script has left running because it failed.
func stopKept(e *testscript.Env) {
	sockets, err := filepath.Glob(filepath.Join(e.Getenv("XDG_STATE_HOME"), "toolreg", "kept", "*.lock"))
	if err != nil || len(sockets) == 0 {
		return
	}
	for _, dir := range filepath.SplitList(e.Getenv("PATH")) {
		cmd := exec.Command(filepath.Join(dir, "toolreg"), "servers", "stop", "--all")
		cmd.Env, cmd.Dir = e.Vars, e.WorkDir
		if cmd.Run() == nil {
			return
		}
	}
}

// codeCommand runs "code N command args…" and requires that exit code. The script can
// check stdout and stderr as after exec.
func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitCode(err error) int {
	var ee *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ee):
		return ee.ExitCode()
	}
	return -1
}

// answerCommand runs "answer [-stderr|-stdout|-stdin] FILE N [<STDIN] command args…" at a
// new terminal, requires exit code N, and types one line of FILE at each question. It
// waits for the question because the program discards what was typed before it. A
// question ends in "[n]o: " or, for a field of a form, in "> " on its own line. The lines
// ^C and ^D are those keys, and ^- types nothing; ^D is also typed if FILE has no more
// lines. The file "tty" has what the terminal showed, "out" and "err" have stdout and
// stderr. With -stderr the terminal is also stderr, with -stdout it is stdout and stderr,
// with -stdin all three.
func answerCommand(ts *testscript.TestScript, neg bool, args []string) {
	onTerminal := ""
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		onTerminal, args = args[0], args[1:]
	}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: answer [-stderr|-stdout|-stdin] FILE N [<STDIN] command args…")
	}
	keys := strings.NewReplacer("^C\n", "\x03", "^D\n", "\x04", "^-\n", "\x00")
	answers := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	for i, a := range answers {
		answers[i] = keys.Replace(a)
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	args = args[2:]
	stdin := ""
	if name, ok := strings.CutPrefix(args[0], "<"); ok {
		stdin, args = ts.ReadFile(name), args[1:]
	}
	path, err := lookPath(ts, args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(environ(ts), "PWD="+cmd.Dir)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if onTerminal != "" {
		cmd.Stderr = nil
	}
	if onTerminal == "-stdout" || onTerminal == "-stdin" {
		cmd.Stdout = nil
	}
	if onTerminal == "-stdin" {
		cmd.Stdin = keyboard{}
	}
	shown, err := atTerminal(cmd, answers)
	ts.Check(os.WriteFile(ts.MkAbs("tty"), []byte(shown), 0o666))
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o666))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errOut.Bytes(), 0o666))
	ts.Logf("[tty]\n%s\n[out]\n%s\n[err]\n%s", shown, out.String(), errOut.String())
	if got := exitCode(err); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// keyboard marks the terminal as the stdin of a command.
type keyboard struct{ io.Reader }

// atTerminal runs cmd with a new controlling terminal, which is also its stderr if cmd
// has none.
func atTerminal(cmd *exec.Cmd, answers []string) (shown string, err error) {
	control, tty, err := pty.Open()
	if err != nil {
		return "", err
	}
	defer control.Close()
	if err := pty.Setsize(control, &pty.Winsize{Rows: 24, Cols: 80, X: 800, Y: 480}); err != nil {
		return "", err
	}
	cmd.ExtraFiles = []*os.File{tty}
	if _, ok := cmd.Stdin.(keyboard); ok {
		cmd.Stdin = tty
	}
	if cmd.Stderr == nil {
		cmd.Stderr = tty
	}
	if cmd.Stdout == nil {
		cmd.Stdout = tty
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if err := cmd.Start(); err != nil {
		tty.Close()
		return "", err
	}
	tty.Close()
	// A program that waits forever would hang all tests. SIGQUIT makes it print its stacks
	// to the screen, and the terminal hangs up when its leader ends.
	limit := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer limit.Stop()
	var screen bytes.Buffer
	var wg sync.WaitGroup
	wg.Go(func() { converse(control, &screen, answers) })
	err = cmd.Wait()
	wg.Wait()
	return strings.ReplaceAll(screen.String(), "\r\n", "\n"), err
}

// converse types an answer whenever the screen ends with a question.
func converse(control *os.File, screen *bytes.Buffer, answers []string) {
	buf := make([]byte, 4096)
	asked := 0
	for {
		n, err := control.Read(buf)
		screen.Write(buf[:n])
		if rest := screen.Bytes()[asked:]; bytes.HasSuffix(rest, []byte("]o: ")) || bytes.HasSuffix(rest, []byte("\n> ")) {
			asked = screen.Len()
			answer := "\x04" // no answers are left
			if len(answers) > 0 && answers[0] != "" {
				answer, answers = answers[0], answers[1:]
			}
			if answer == "\x00" {
				answer = ""
			}
			if _, err := control.WriteString(answer); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// signalCommand runs "signal SIG CODE FILE command args…", sends SIG once FILE has
// content and requires the exit code.
func signalCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: signal SIG CODE FILE command args…")
	}
	sig := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path, err := lookPath(ts, args[3])
	ts.Check(err)
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(environ(ts), "PWD="+cmd.Dir)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if !waitFor(func() bool { info, err := os.Stat(ts.MkAbs(args[2])); return err == nil && info.Size() > 0 }, ended) {
		ts.Fatalf("%s never came\n%s", args[2], errOut.String())
	}
	ts.Check(cmd.Process.Signal(sig))
	if got := exitCode(<-ended); got != want {
		ts.Fatalf("exit code %d, want %d\n%s", got, want, errOut.String())
	}
}

// goneCommand waits until the process whose id is in the file has ended.
func goneCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gone PIDFILE")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	if !waitFor(func() bool { return !running(pid) }, nil) {
		ts.Fatalf("process %d is still there", pid)
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s in PATH", name)
}

// environ is the environment of the script.
func environ(ts *testscript.TestScript) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TERM", "WORK", "EDITOR", "PAGER", "TOOLREG_PAGER", "LESS", "BROWSER", "BROWSED", "DISPLAY", "MCP", "AS", "NO_COLOR", "COLUMNS", "KITTY_WINDOW_ID", "TMUX", "TERM_PROGRAM", "GORACE", "TOOLREG_DEPTH", "SECRET"} {
		if v := ts.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}
