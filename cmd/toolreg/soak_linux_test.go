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
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for left := marked(mark); len(left) > 0; left = marked(mark) {
		select {
		case <-ctx.Done():
			t.Fatalf("left: %q", left)
		case <-tick.C:
		}
	}
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

// marked returns the command lines of processes with a variable in their environment.
func marked(variable string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(variable)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			out = append(out, string(line))
		}
	}
	return out
}
