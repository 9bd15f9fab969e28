package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Clients that start their own serve are killed in the middle of a call, and so is serve
// itself. Neither serve nor its servers keep running.
func TestNothingOutlivesItsClient(t *testing.T) {
	n := 12
	if sessions, err := strconv.Atoi(os.Getenv("TOOLREG_SOAK")); err == nil {
		n = min(max(sessions/80, n), 120)
	}
	dir := t.TempDir()
	text := `{"mcpServers": {"a": {"command": "mcp-testserver", "args": ["--grandchild"], "inheritEnv": true, "trust": true}, "b": {"command": "mcp-testserver", "args": ["--grandchild"], "inheritEnv": true}}}`
	if err := os.WriteFile(filepath.Join(dir, "s.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := "TOOLREG_SOAK_MARK=" + filepath.Base(dir) + fmt.Sprint(os.Getpid())
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			soakStdio(t, i, dir, append(os.Environ(), mark, "HOME="+dir, "GORACE=atexit_sleep_ms=0"))
		})
	}
	wg.Wait()
	settle(t, mark, func(left map[int]string) bool { return len(left) == 0 })
}

// settle waits until the processes with a variable in their environment are as expected.
func settle(t *testing.T, variable string, expected func(map[int]string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for left := marked(variable); !expected(left); left = marked(variable) {
		select {
		case <-ctx.Done():
			t.Fatalf("left: %v", left)
		case <-tick.C:
		}
	}
}

// Runs share a kept server while it, the process that keeps it or one of the runs is killed.
// Each call runs once or its run says that it failed, the next run finds or starts a server as soon
// as the end of the last one was noticed, and nothing is left when it is stopped.
func TestKeptServersAreKilled(t *testing.T) {
	rounds := 4
	if sessions, err := strconv.Atoi(os.Getenv("TOOLREG_SOAK")); err == nil {
		rounds = min(max(sessions/50, rounds), 200)
	}
	dir, err := os.MkdirTemp("", "kept") // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text := `{"mcpServers": {"k": {"command": "mcp-testserver", "args": ["--grandchild"], "inheritEnv": true, "keep": true, "trust": true}}}`
	for name, content := range map[string]string{"p/.git/HEAD": "", "p/s.json": text} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	home := "HOME=" + filepath.Join(dir, "home")
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command("toolreg", append([]string{"--settings", "s.json"}, args...)...)
		cmd.Dir, cmd.Env = filepath.Join(dir, "p"), append(os.Environ(), home, "XDG_RUNTIME_DIR=", "XDG_STATE_HOME=", "GORACE=atexit_sleep_ms=0")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	call := func(id string) *exec.Cmd {
		return start("call", "k__slow", "seconds:=0.005", "started="+filepath.Join(dir, id))
	}
	ran := func(id string) int {
		marks, _ := os.ReadFile(filepath.Join(dir, id))
		return bytes.Count(marks, []byte("\n"))
	}
	for round := range rounds {
		runs := map[string]*exec.Cmd{}
		for i := range 6 {
			id := fmt.Sprintf("%d.%d", round, i)
			runs[id] = call(id)
		}
		time.Sleep(rand.N(150 * time.Millisecond))
		victim, keeper := []string{"keep-server", "mcp-testserver", " call "}[round%3], 0
		for pid, line := range marked(home) {
			if strings.Contains(line, victim) {
				if victim == "mcp-testserver" {
					keeper = parentOf(pid)
				}
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
		for id, cmd := range runs {
			_ = cmd.Wait()
			code := cmd.ProcessState.ExitCode()
			if n := ran(id); n > 1 || code == 0 && n != 1 || code > 0 && code != 8 {
				t.Errorf("a %s was killed: run %s exited with %d, and its call ran %d times", victim, id, code, n)
			}
		}
		settle(t, home, func(left map[int]string) bool { return left[keeper] == "" }) // it ends with its server
		after := fmt.Sprintf("%d.after", round)
		if err := call(after).Wait(); err != nil || ran(after) != 1 {
			t.Errorf("a %s was killed: the next call ran %d times, %v", victim, ran(after), err)
		}
		settle(t, home, func(left map[int]string) bool {
			keepers := 0
			for _, line := range left {
				if strings.Contains(line, "keep-server") {
					keepers++
				}
			}
			return keepers == 1
		})
	}
	if err := start("servers", "stop", "--all").Wait(); err != nil {
		t.Error(err)
	}
	settle(t, home, func(left map[int]string) bool { return len(left) == 0 })
}

// parentOf returns the id of a process's parent; 0 if it has ended.
func parentOf(pid int) (parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, _ = fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), " %c %d", new(rune), &parent)
	return parent
}

// soakStdio runs a client, which starts serve, makes a call and exits, or kills serve.
func soakStdio(t *testing.T, i int, dir string, environ []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	serve := exec.CommandContext(ctx, "toolreg", "--settings", "s.json", "serve", "--source", "mcp:*")
	serve.Dir, serve.Env = dir, environ
	in, inErr := serve.StdinPipe()
	out, outErr := serve.StdoutPipe()
	if err := errors.Join(inErr, outErr, serve.Start()); err != nil {
		t.Error(err)
		return
	}
	if i%4 == 3 { // kill it at a random moment while it starts
		kill := time.AfterFunc(rand.N(300*time.Millisecond), func() { _ = serve.Process.Kill() })
		defer kill.Stop()
		_ = serve.Wait()
		return
	}
	lines := bufio.NewReader(out)
	_, _ = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"7"}}}`)
	_, _ = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__echo","arguments":{"text":"hello"}}}`)
	for line := ""; !strings.Contains(line, `"id":2`); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil || strings.Contains(line, `"error":`) {
			t.Errorf("client %d: %q, %v", i, line, err)
			break
		}
	}
	_, _ = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a__slow","arguments":{"seconds":1}}}`)
	switch i % 4 {
	case 0: // the client closes stdin and reads the answer
		_ = in.Close()
		_, _ = lines.ReadString('\n')
	case 1: // the client is killed, which closes its ends of both pipes
		_ = in.Close()
		_ = out.Close()
	case 2:
		_ = serve.Process.Kill()
	}
	_ = serve.Wait()
}

// marked returns the command lines of processes with a variable in their environment, by PID.
func marked(variable string) map[int]string {
	out := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(variable)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			out[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return out
}
