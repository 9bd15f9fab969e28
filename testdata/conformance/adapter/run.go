//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/creack/pty"
)

// command returns toolreg with the settings of the scenario and a home of its
// own.
func (p *person) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.toolreg, append([]string{"--settings", filepath.Join(p.home, "settings.json")}, args...)...)
	cmd.Dir = p.home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TERM=xterm",
		"XDG_CONFIG_HOME=" + filepath.Join(p.home, "config"),
		"XDG_STATE_HOME=" + filepath.Join(p.home, "state"),
		"XDG_CACHE_HOME=" + filepath.Join(p.home, "cache"),
	}
	return cmd
}

// run runs toolreg without a terminal and returns its stdout. The suite keeps
// our stderr, so toolreg's goes there.
func (p *person) run(args ...string) (out []byte, err error) {
	err = p.loggedIn(func() error {
		cmd := p.command(args...)
		cmd.Stderr = os.Stderr
		fmt.Fprintln(os.Stderr, "$ toolreg", strings.Join(args, " "))
		if out, err = cmd.Output(); err != nil {
			return fmt.Errorf("toolreg %s: %w", args[0], err)
		}
		return nil
	})
	return out, err
}

// atTerminal runs toolreg at a terminal of its own, where a person takes every
// default, and the first of the words where there is a choice.
func (p *person) atTerminal(args ...string) error {
	return p.loggedIn(func() error { return p.converse(args) })
}

func (p *person) converse(args []string) error {
	control, tty, err := pty.Open()
	if err != nil {
		return err
	}
	defer control.Close()
	cmd := p.command(args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, tty
	cmd.ExtraFiles = []*os.File{tty}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	fmt.Fprintln(os.Stderr, "$ toolreg", strings.Join(args, " "), "# at a terminal")
	err = cmd.Start()
	tty.Close()
	if err != nil {
		return err
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		answer(control, os.Stderr)
	}()
	err = cmd.Wait()
	<-answered
	if err != nil {
		return fmt.Errorf("toolreg %s: %w", strings.Join(args[:2], " "), err)
	}
	return nil
}

// answer types an answer whenever a question, which ends in "> " or ": ", stands
// at the end of the screen. What was shown goes to log.
func answer(control *os.File, log io.Writer) {
	buf := make([]byte, 4096)
	var line []byte
	for {
		n, err := control.Read(buf)
		_, _ = log.Write(buf[:n]) // to be read by people alone
		line = append(line, buf[:n]...)
		line = line[bytes.LastIndexByte(line, '\n')+1:]
		if bytes.Equal(line, []byte("> ")) || bytes.HasSuffix(line, []byte(": ")) {
			reply := "\n"
			if i := bytes.IndexByte(line, '['); i >= 0 {
				reply = string(line[i+1]) + "\n"
			}
			if _, err := control.WriteString(reply); err != nil {
				return
			}
			line = nil
		}
		if err != nil {
			return
		}
	}
}
