//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"
)

// keysCommand runs "keys FILE N command args…" with all streams at a new terminal of 80
// columns, and requires exit code N. Each line of FILE is "TEXT => KEYS": once TEXT has
// appeared after the previous keys, KEYS are typed. Escapes such as \r and \x03 are as in
// Go, and \e is the escape key. KEYS may also be "size COLUMNS ROWS" or "signal TERM". The
// whole output is in the file "tty".
func keysCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: keys FILE N command args…")
	}
	var steps [][2]string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		text, keys, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if ok {
			steps = append(steps, [2]string{text, keys})
		}
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path, err := lookPath(ts, args[2])
	ts.Check(err)
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(environ(ts), "PWD="+cmd.Dir)
	shown, err := typeKeys(cmd, steps)
	ts.Check(os.WriteFile(ts.MkAbs("tty"), []byte(shown), 0o666))
	if got := exitCode(err); got != want {
		ts.Fatalf("exit code %d (%v), want %d\n%q", got, err, want, shown)
	}
}

// typeKeys runs cmd at a terminal and performs the steps. It returns an error if cmd ends
// before the last step or does not restore the state of the terminal.
func typeKeys(cmd *exec.Cmd, steps [][2]string) (shown string, err error) {
	control, tty, err := pty.Open()
	if err != nil {
		return "", err
	}
	defer control.Close()
	if err := pty.Setsize(control, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		return "", err
	}
	before, err := term.GetState(int(control.Fd()))
	if err != nil {
		return "", err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	tty.Close()
	if err != nil {
		return "", err
	}
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop() // fails the test instead of hanging it
	var screen bytes.Buffer
	seen, buf := 0, make([]byte, 4096)
	for {
		n, readErr := control.Read(buf)
		screen.Write(buf[:n])
		if len(steps) > 0 && bytes.Contains(screen.Bytes()[seen:], []byte(unquoted(steps[0][0]))) {
			seen = screen.Len()
			if err := act(cmd, control, steps[0][1]); err != nil {
				return screen.String(), err
			}
			steps = steps[1:]
		}
		if readErr != nil {
			break
		}
	}
	err = cmd.Wait()
	if after, stateErr := term.GetState(int(control.Fd())); stateErr != nil || *after != *before {
		return screen.String(), fmt.Errorf("the state of the terminal was not restored (%v)", stateErr)
	}
	if err == nil && len(steps) > 0 {
		err = fmt.Errorf("it ended before %q was shown", steps[0][0])
	}
	return screen.String(), err
}

func act(cmd *exec.Cmd, control *os.File, keys string) error {
	var columns, rows uint16
	if n, _ := fmt.Sscanf(keys, "size %d %d", &columns, &rows); n == 2 {
		return pty.Setsize(control, &pty.Winsize{Rows: rows, Cols: columns})
	}
	if keys == "signal TERM" {
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	_, err := control.WriteString(unquoted(keys))
	return err
}

func unquoted(s string) string {
	if out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `\e`, `\x1b`) + `"`); err == nil {
		return out
	}
	return s
}
