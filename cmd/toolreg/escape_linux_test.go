package main

import (
	"bytes"
	"cmp"
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

// escapeBatch is how many programs at most share a workspace and a call.
const escapeBatch = 12

// TestEscape runs each program of testdata/escape twice: directly, which must succeed,
// and with run_shell_command in the sandbox, which must not. A program succeeds by
// printing ESCAPED or by leaving a trace outside (see proven). Programs with the same
// settings share a workspace, in which each has a folder with a repository, except those
// marked "alone:", whose folder is the workspace.
func TestEscape(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts some 600 programs")
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
		groups := map[string][]*escapeProgram{}
		for _, f := range archive.Files {
			p := &escapeProgram{name: f.Name, text: string(f.Data)}
			if only == "" || only == f.Name {
				groups[p.group()] = append(groups[p.group()], p)
			}
		}
		for _, group := range groups {
			for batch := range slices.Chunk(group, escapeBatch) {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
					t.Parallel()
					machine.try(t, batch)
				})
			}
		}
	}
}

// try runs the programs of a batch outside and inside.
func (m *escapeMachine) try(t *testing.T, batch []*escapeProgram) {
	var possible []*escapeProgram
	for _, p := range batch {
		why := ""
		for _, need := range p.words("needs:") {
			why = cmp.Or(why, m.lacks(need))
		}
		if why != "" {
			t.Run(p.name, func(t *testing.T) { t.Skip(why) })
			continue
		}
		possible = append(possible, p)
	}
	if len(possible) == 0 {
		return
	}
	outside := m.run(t, possible, false)
	inside := m.run(t, possible, true)
	for i, p := range possible {
		t.Run(p.name, func(t *testing.T) {
			switch {
			case strings.Contains(outside[i].output, "UNSUPPORTED"):
				t.Skip("this machine does not have what it uses")
			case !outside[i].escaped:
				t.Errorf("the control fails: outside the sandbox this program must succeed:\n%s", outside[i].output)
			case inside[i].escaped:
				t.Errorf("it escaped:\n%s", inside[i].output)
			}
		})
	}
}

// escapeProgram is a program that tries to get out of the sandbox.
type escapeProgram struct {
	name string
	text string
}

// line returns what follows a mark in the program's comments.
func (p *escapeProgram) line(mark string) (text string, ok bool) {
	for line := range strings.Lines(p.text) {
		if before, words, found := strings.Cut(line, " "+mark); found && len(before) <= 2 {
			return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(words), "*/")), true
		}
	}
	return "", false
}

// words returns the words of line.
func (p *escapeProgram) words(mark string) []string {
	text, _ := p.line(mark)
	return strings.Fields(text)
}

// group returns what is the same for programs that may share a workspace.
func (p *escapeProgram) group() string {
	if _, alone := p.line("alone:"); alone || slices.Contains(p.words("needs:"), "terminal") {
		return p.name
	}
	settings, _ := p.line("sandbox:")
	return fmt.Sprint(settings, len(p.words("calls:")))
}

// isAlone reports whether the program's folder is the workspace.
func (p *escapeProgram) isAlone() bool { return p.group() == p.name }

// escapeTools are what programs in the shell use.
const escapeTools = `escaped() { echo ESCAPED; }
has() { cat "$@" 2>/dev/null | grep -q "$MARK" && escaped; }
evil() { printf '#!/bin/sh\ntouch "%s/ran"\n' "$PWD" >"$1"; chmod +x "$1"; }
rebase() { git commit -q --allow-empty -m a && git commit -q --allow-empty -m b && GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i --root; }
`

// write puts the program into a folder and returns the command that starts it.
func (p *escapeProgram) write(dir string) (argv []string, err error) {
	text, path := p.text, filepath.Join(dir, p.name)
	switch filepath.Ext(p.name) {
	case ".sh", ".bash":
		argv = []string{strings.TrimPrefix(filepath.Ext(p.name), "."), p.name}
		text = escapeTools + text
	case ".py":
		argv = []string{"python3", "-S", p.name}
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

// escapeOutcome is what one run of a program has shown.
type escapeOutcome struct {
	output  string
	escaped bool
}

// run runs programs in a place of their own, one after the other.
func (m *escapeMachine) run(t *testing.T, programs []*escapeProgram, confined bool) []escapeOutcome {
	t.Helper()
	place := m.place(t, programs)
	var before, during, after strings.Builder
	for i, p := range programs {
		dir := place.folder(p)
		argv, err := p.write(dir)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&during, "(cd %s; timeout 20 %s) >%s/out%d 2>&1\n", dir, strings.Join(argv, " "), place.work, i)
		for text, mark := range map[*strings.Builder]string{&before: "before:", &after: "after:"} {
			if command, ok := p.line(mark); ok {
				fmt.Fprintf(text, "(cd %s; %s) >>%s/%s%d 2>&1 </dev/null\n", dir, command, place.dir, mark, i)
			}
		}
	}
	settings, _ := programs[0].line("sandbox:")
	place.files(t, map[string]string{
		"work/run": "set -a; . ./variables\n" + during.String(), "before": ". work/variables\n" + escapeTools + before.String(), "after": ". work/variables\n" + after.String(),
		"sandbox.yaml": "policy: {rules: [{tool: run_shell_command, decision: sandbox}]}\nsandbox: {shell: {" + settings + "}}\n",
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	start := func(dir string, argv ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, place.environ
		cmd.WaitDelay = time.Second // left processes may keep the output open
		return cmd
	}
	argv := []string{"sh", "run"}
	if confined {
		argv = []string{m.toolreg, "--settings", filepath.Join(place.dir, "sandbox.yaml"), "--non-interactive", "call", "run_shell_command", "--json", "command=sh run"}
	}
	if before.Len() > 0 {
		_ = start(place.dir, "sh", "before").Run()
	}
	var out bytes.Buffer
	for range max(1, len(programs[0].words("calls:"))) {
		cmd := start(place.work, argv...)
		secret, err := os.Open(filepath.Join(place.outside, "secret"))
		folder, folderErr := os.Open(place.outside)
		if err := errors.Join(err, folderErr); err != nil {
			t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{secret, folder} // like a careless parent
		if slices.Contains(programs[0].words("needs:"), "terminal") {
			err = onTerminal(cmd, &out)
		} else {
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
		}
		_, _ = secret.Close(), folder.Close()
		fmt.Fprintln(&out, err)
	}
	if confined && !strings.Contains(out.String(), `"confined"`) {
		t.Fatalf("it did not run confined:\n%s", out.String())
	}
	if after.Len() > 0 {
		_ = start(place.dir, "sh", "after").Run()
	}
	outcomes := make([]escapeOutcome, len(programs))
	for i, p := range programs {
		text, err := os.ReadFile(filepath.Join(place.work, fmt.Sprint("out", i)))
		if err != nil {
			t.Fatalf("%s did not run: %v\n%s", p.name, err, out.String())
		}
		outcomes[i] = escapeOutcome{string(text) + out.String(), bytes.Contains(text, []byte("ESCAPED")) || place.proven(t, p)}
	}
	return outcomes
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
func (s *escapePlace) proven(t *testing.T, p *escapeProgram) bool {
	t.Helper()
	proof := p.words("proof:")
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
		path = filepath.Join(s.folder(p), path)
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
	if len(words) == 1 {
		return true
	}
	text, err := os.ReadFile(path)
	if err == nil && words[1] == "without" {
		return !bytes.Contains(text, []byte(words[2]))
	}
	return err != nil || bytes.Contains(text, []byte(words[1]))
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
