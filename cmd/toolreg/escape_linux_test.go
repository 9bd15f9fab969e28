package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// escapeSecret is the content of every file, variable and key that must stay hidden.
const escapeSecret = "escape-secret"

// TestEscape runs each program of testdata/escape twice: directly, which must succeed,
// and with run_shell_command in the sandbox, which must not. A program succeeds by
// printing ESCAPED or by leaving a trace outside (see proven).
func TestEscape(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts some 400 programs")
	}
	if support := sandbox.Probe(); !support.Full() {
		t.Skipf("this system cannot confine in full; missing: %s", strings.Join(support.Missing(), ", "))
	}
	files, err := filepath.Glob("../../testdata/escape/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	only := os.Getenv("TOOLREG_ESCAPE") // the only program to try
	machine := newEscapeMachine(t)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if only != "" && only != f.Name {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				p := &escapeProgram{name: f.Name, text: string(f.Data)}
				for _, need := range p.lines("needs:") {
					if why := machine.lacks(need); why != "" {
						t.Skip(why)
					}
				}
				if output, escaped := machine.run(t, p, false); !escaped {
					t.Fatalf("the control fails: outside the sandbox this program must succeed:\n%s", output)
				}
				if output, escaped := machine.run(t, p, true); escaped {
					t.Errorf("it escaped:\n%s", output)
				}
			})
		}
	}
}

// escapeProgram is a program that tries to get out of the sandbox.
type escapeProgram struct {
	name string
	text string
}

// lines returns the words after a mark in the program's comments.
func (p *escapeProgram) lines(mark string) []string {
	for line := range strings.Lines(p.text) {
		if _, words, ok := strings.Cut(line, mark); ok {
			return strings.Fields(strings.TrimSuffix(strings.TrimSpace(words), "*/"))
		}
	}
	return nil
}

// write puts the program into a folder and returns the command that starts it.
func (p *escapeProgram) write(dir string) (argv []string, err error) {
	text, path := p.text, filepath.Join(dir, p.name)
	switch filepath.Ext(p.name) {
	case ".sh":
		argv = []string{"sh", p.name}
		text = "escaped() { echo ESCAPED; }\nhas() { cat \"$@\" 2>/dev/null | grep -q \"$MARK\" && escaped; }\n" + text
	case ".bash":
		argv = []string{"bash", p.name}
		text = "escaped() { echo ESCAPED; }\n" + text
	case ".py":
		argv = []string{"python3", p.name}
		text = "import os as _os\nHOME, MARK = _os.environ['HOME'], _os.environ['MARK']\ndef escaped(): print('ESCAPED', flush=True)\n" + text
	case ".js":
		argv = []string{"node", p.name}
		text = "const MARK = process.env.MARK, escaped = () => console.log('ESCAPED');\n" + text
	case ".c":
		argv = []string{"./program"}
	default:
		return nil, fmt.Errorf("%s: unknown kind of program", p.name)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil || argv[0] != "./program" {
		return argv, err
	}
	out, err := exec.Command("cc", "-o", filepath.Join(dir, "program"), path).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return argv, nil
}

// run runs a program in its own place, and reports whether it escaped.
func (m *escapeMachine) run(t *testing.T, p *escapeProgram, confined bool) (output string, escaped bool) {
	t.Helper()
	place := m.place(t)
	argv, err := p.write(place.work)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	script := "set -a; . ./variables; exec timeout 20 " + strings.Join(argv, " ") + "\n"
	settings := "policy: {rules: [{tool: run_shell_command, decision: sandbox}]}\nsandbox: {shell: {" + strings.Join(p.lines("sandbox:"), " ") + "}}\n"
	place.files(t, map[string]string{"work/run": script, "sandbox.yaml": settings})
	argv = []string{"sh", "run"}
	if confined {
		argv = []string{m.toolreg, "--settings", filepath.Join(place.dir, "sandbox.yaml"), "--non-interactive", "call", "run_shell_command", "--json", "command=sh run"}
	}
	secret, err := os.Open(filepath.Join(place.outside, "secret"))
	folder, folderErr := os.Open(place.outside)
	if err := errors.Join(err, folderErr); err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	defer folder.Close()
	var out bytes.Buffer
	for range max(1, len(p.lines("calls:"))) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = place.work, place.environ
		cmd.WaitDelay = time.Second                 // left processes may keep the output open
		cmd.ExtraFiles = []*os.File{secret, folder} // like a careless parent
		if slices.Contains(p.lines("needs:"), "terminal") {
			err = onTerminal(cmd, &out)
		} else {
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
		}
	}
	output = fmt.Sprintf("%s%v", out.String(), err)
	proof := p.lines("proof:")
	if confined && !strings.Contains(out.String(), `"confined"`) {
		t.Fatalf("it did not run confined:\n%s", output)
	}
	return output, strings.Contains(out.String(), "ESCAPED") || place.proven(t, proof)
}

// onTerminal runs a command with a controlling terminal.
func onTerminal(cmd *exec.Cmd, out *bytes.Buffer) error {
	tty, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer tty.Close()
	_, _ = out.ReadFrom(tty) // ends with EIO when the program has ended
	return cmd.Wait()
}

// proven reports whether a program has left the trace that proves its escape, and removes
// traces outside of the place.
func (s *escapePlace) proven(t *testing.T, proof []string) bool {
	t.Helper()
	if len(proof) == 0 {
		return false
	}
	for i, word := range proof {
		proof[i] = os.Expand(word, func(name string) string { return s.variables[name] })
	}
	kind, words := "", proof
	switch proof[0] {
	case "gone", "mode", "old", "owner", "setuid", "mount", "process":
		kind, words = proof[0], proof[1:]
	}
	if kind == "process" {
		return s.leftRunning(t, words[0])
	}
	path := words[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.work, path)
	}
	if kind == "mount" {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		_ = unix.Unmount(path, unix.MNT_DETACH)
		return err == nil && bytes.Contains(mounts, []byte(" "+path+" "))
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return kind == "gone"
	}
	if !strings.HasPrefix(path, s.dir) {
		defer os.Remove(path)
	}
	switch kind {
	case "gone":
		return false
	case "mode":
		return fmt.Sprintf("%04o", st.Mode&0o7777) == words[1]
	case "old":
		return st.Mtim.Sec < 1000
	case "owner":
		return fmt.Sprint(st.Uid) == words[1]
	case "setuid":
		return st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0
	}
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		return true
	case len(words) == 1:
		return true
	case words[1] == "without":
		return !bytes.Contains(text, []byte(words[2]))
	}
	return bytes.Contains(text, []byte(words[1]))
}

// leftRunning reports whether a program with this argument is still running after a
// moment, and kills it.
func (s *escapePlace) leftRunning(t *testing.T, word string) bool {
	t.Helper()
	limit := time.Now().Add(5 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		pids := programsWith(word)
		if len(pids) == 0 {
			return false
		}
		if time.Now().After(limit) {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return true
		}
		<-tick.C
	}
}

// programsWith returns the ids of the processes with this argument.
func programsWith(word string) []int {
	var out []int
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, err := os.ReadFile(name)
		pid, numErr := strconv.Atoi(strings.Split(name, "/")[2])
		if err == nil && numErr == nil && slices.Contains(strings.Split(string(line), "\x00"), word) {
			out = append(out, pid)
		}
	}
	return out
}
