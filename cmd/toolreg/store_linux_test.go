package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/store/storetest"
)

// storeReplicas are processes of serve that share a store, and one session of an older revision.
type storeReplicas struct {
	dir     string
	urls    []string
	running []*exec.Cmd
	session string
	token   string
}

// Three replicas share a session. Each in turn, whichever holds it, is terminated or killed
// during calls that reach it through the others. With SIGTERM no call fails; with SIGKILL those
// that were running at that replica do. None runs twice, and the session goes on.
func TestStoreReplicas(t *testing.T) {
	t.Parallel()
	redis := storetest.Start(t)
	for name, signal := range map[string]syscall.Signal{"terminated": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &storeReplicas{dir: t.TempDir(), token: replicaToken}
			r.write(t, "tokens", "alice "+replicaToken+"\n")
			r.write(t, "s.json", fmt.Sprintf(`{"mcpServers": {"m": {"command": "mcp-testserver", "args": ["--dialogs"], "inheritEnv": true, "trust": true}},
				"serve": {"stateKey": "0123456789abcdef0123456789abcdef", "store": %q}}`, redis.URL()+"?prefix="+name))
			for i := range 3 {
				r.start(t, i)
			}
			r.initialize(t)
			for i := range 3 {
				r.turn(t, i, signal)
			}
		})
	}
}

func (r *storeReplicas) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *storeReplicas) start(t *testing.T, i int) {
	t.Helper()
	log := filepath.Join(r.dir, fmt.Sprint(i, ".err"))
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := exec.CommandContext(t.Context(), "toolreg", "--settings", "s.json", "serve", "--source", "mcp:*", "--http", "127.0.0.1:0", "--token-file", "tokens")
	c.Dir, c.Env, c.Stderr = r.dir, []string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(r.dir, fmt.Sprint("state", i))}, file
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var url string
	if !waitFor(func() bool {
		text, _ := os.ReadFile(log)
		_, rest, found := strings.Cut(string(text), "listening on ")
		url, _, _ = strings.Cut(rest, "\n")
		return found && strings.HasSuffix(url, "/mcp")
	}, nil) {
		t.Fatal("it does not listen")
	}
	if i == len(r.running) {
		r.running, r.urls = append(r.running, c), append(r.urls, url)
		return
	}
	r.running[i], r.urls[i] = c, url
}

// post sends a message of the session to a replica and returns the status and the answer.
func (r *storeReplicas) post(t *testing.T, i int, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.urls[i], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + r.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": r.session} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp, string(answer), err
}

func (r *storeReplicas) initialize(t *testing.T) {
	t.Helper()
	resp, answer, err := r.post(t, 0, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	r.session = resp.Header.Get("Mcp-Session-Id")
	if resp, answer, err := r.post(t, 1, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatal(answer, err)
	}
}

// slow makes a call through a replica and reports whether it succeeded. It fails the test if the
// call has run twice.
func (r *storeReplicas) slow(t *testing.T, i int, id string, seconds string) bool {
	t.Helper()
	marker := filepath.Join(r.dir, "ran-"+id)
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"m__slow","arguments":{"seconds":%s,"started":%q}}}`, id, seconds, marker)
	_, answer, err := r.post(t, i, message)
	runs, _ := os.ReadFile(marker)
	for len(runs) == 0 && strings.Contains(answer, "cannot be used now") { // a busy machine lets the store be late
		_, answer, err = r.post(t, i, message)
		runs, _ = os.ReadFile(marker)
	}
	done := err == nil && strings.Contains(answer, "slept")
	if n := bytes.Count(runs, []byte("\n")); n > 1 || done && n != 1 {
		t.Errorf("call %s ran %d times: %s", id, n, answer)
	}
	return done
}

// turn ends a replica while calls run through the others, and starts it again. The session is at
// the first replica before the turns, and then moves to whichever gets the next request.
func (r *storeReplicas) turn(t *testing.T, i int, signal syscall.Signal) {
	t.Helper()
	others := []int{(i + 1) % 3, (i + 2) % 3}
	seconds := "0.7"
	if signal == syscall.SIGKILL { // which ends the calls
		seconds = "600"
	}
	var calls sync.WaitGroup
	for _, via := range others {
		calls.Go(func() {
			if ok := r.slow(t, via, fmt.Sprint(i, "-during-", via), seconds); !ok && signal == syscall.SIGTERM {
				t.Errorf("replica %d: a call through %d failed", i, via)
			} else if ok && signal == syscall.SIGKILL {
				t.Errorf("replica %d: a call through %d ended, so the session was not there", i, via)
			}
		})
	}
	for _, via := range others {
		if !waitFor(func() bool {
			text, _ := os.ReadFile(filepath.Join(r.dir, fmt.Sprint("ran-", i, "-during-", via)))
			return len(text) > 0
		}, nil) {
			t.Errorf("replica %d: a call through %d does not begin", i, via)
		}
	}
	_ = r.running[i].Process.Signal(signal)
	_ = r.running[i].Wait()
	calls.Wait()
	if !r.slow(t, others[0], fmt.Sprint(i, "-after"), "0") { // takes the session over
		t.Errorf("replica %d: the session is lost", i)
	}
	r.start(t, i)
	if !r.slow(t, i, fmt.Sprint(i, "-again"), "0") {
		t.Errorf("replica %d: a replica that was started again does not serve the session", i)
	}
}

// The folder of examples runs three replicas that share sessions, and leaves nothing running.
func TestReplicasExample(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"redis-server", "haproxy"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	port, data := sixPorts(t), t.TempDir()
	run := exec.CommandContext(t.Context(), "../../examples/replicas/run.sh")
	run.Env = []string{"HOME=" + data, "PATH=" + os.Getenv("PATH"), fmt.Sprint("PORT=", port), "DATA=" + data}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	r := &storeReplicas{urls: []string{fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}}
	if !waitFor(func() bool {
		token, _ := os.ReadFile(filepath.Join(data, "token"))
		r.token = string(token)
		resp, _, err := r.post(t, 0, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		if err == nil {
			r.session = resp.Header.Get("Mcp-Session-Id")
		}
		return err == nil && r.session != ""
	}, nil) {
		text, _ := os.ReadFile(filepath.Join(data, "toolreg-1.log"))
		t.Fatalf("no session: %s", text)
	}
	for range 6 {
		if _, answer, err := r.post(t, 0, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil || !strings.Contains(answer, `"result":{}`) {
			t.Errorf("%s, %v", answer, err)
		}
	}
	_ = run.Process.Signal(syscall.SIGTERM)
	_ = run.Wait()
	seeFree(t, port)
}

// Nothing is left either if the example is ended while it starts.
func TestReplicasExampleEndsAtOnce(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	proxy, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip(err)
	}
	port, data := sixPorts(t), t.TempDir()
	ending := "#!/bin/sh\n" + proxy + " \"$@\" && kill $PPID\n"
	if err := os.WriteFile(filepath.Join(data, "haproxy"), []byte(ending), 0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "../../examples/replicas/run.sh")
	run.Env = []string{"HOME=" + data, "PATH=" + data + ":" + os.Getenv("PATH"), fmt.Sprint("PORT=", port), "DATA=" + data}
	if err := run.Run(); run.ProcessState.ExitCode() != 143 {
		t.Errorf("%v", err)
	}
	seeFree(t, port)
}

// seeFree fails the test if one of the ports of the example stays used.
func seeFree(t *testing.T, port int) {
	t.Helper()
	for i := range 5 {
		isFree := func() bool {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port+i))
			if err == nil {
				_ = c.Close()
			}
			return err != nil
		}
		if !waitFor(isFree, nil) { // the kernel may close it a moment after the process has ended
			t.Errorf("port %d is still used", port+i)
		}
	}
}

// portGroups counts the groups that sixPorts has given.
var portGroups atomic.Int64

// sixPorts returns the first of the ports that the example uses. None is one that the system gives
// to other tests, or that it has returned before.
func sixPorts(t *testing.T) int {
	t.Helper()
	for {
		// Test programs that run at the same time, which have similar ids, get groups that are far apart.
		first, free := 20000+6*((os.Getpid()*331+int(portGroups.Add(1)))%2000), true
		for i := range 6 {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+i))
			if free = free && err == nil; err == nil {
				_ = l.Close()
			}
		}
		if free {
			return first
		}
	}
}

// The example says what it cannot start, and why, and leaves nothing running.
func TestReplicasExampleFails(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"redis-server", "haproxy"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	for want, tt := range map[string]struct {
		args  []string
		env   string
		taken int // this port after that of the proxy is taken; -1: none is
	}{
		"unknown argument: podman":                     {[]string{"podman"}, "", -1},
		"PORT must be a number from 1 to 65530: 8080x": {nil, "PORT=8080x", -1},
		"PORT must be a number from 1 to 65530: 65531": {nil, "PORT=65531", -1},
		"toolreg is not in PATH":                       {nil, "PATH=/usr/sbin:/usr/bin:/bin", -1},
		"Address already in use\n(?s).*redis-server has ended; that is the end of .*/redis-server.log": {nil, "", 4},
		"haproxy has ended; that is the end of .*/haproxy.log":                                         {nil, "", 0},
		"address already in use\n(?s).*toolreg-2 has ended":                                            {nil, "", 2},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			port, data := sixPorts(t), t.TempDir()
			if tt.taken >= 0 {
				l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+tt.taken))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
			}
			within, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			run := exec.CommandContext(within, "../../examples/replicas/run.sh", tt.args...)
			run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
			run.Env = []string{"HOME=" + data, "PATH=" + os.Getenv("PATH"), fmt.Sprint("PORT=", port), "DATA=" + data, tt.env}
			var stderr strings.Builder
			run.Stderr = &stderr
			out, err := run.Output() // ends when nothing that it has started has its stderr
			if err == nil || len(out) > 0 || !regexp.MustCompile(want).MatchString(stderr.String()) {
				t.Errorf("%v, %s%s", err, out, stderr.String())
			}
			for i := range 5 {
				if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port+i)); err == nil && i != tt.taken {
					_ = c.Close()
					t.Errorf("port %d is still used", port+i)
				}
			}
		})
	}
}
