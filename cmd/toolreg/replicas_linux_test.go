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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

const (
	replicaToken   = "0123456789abcdef-replicas"
	replicaCallers = 16
)

// Three replicas stand behind HAProxy, as in examples/serve, without affinity. Each in
// turn is ended and started again while clients call: no call fails.
func TestReplicasEndInOrder(t *testing.T) {
	r := newReplicas(t)
	failed := r.call(t, syscall.SIGTERM)
	if len(failed) > 0 {
		t.Errorf("%d calls failed, the first: %s", len(failed), failed[0])
	}
}

// The replicas are killed: no more calls fail than they can have been answering, and
// none runs twice.
func TestReplicasAreKilled(t *testing.T) {
	r := newReplicas(t)
	failed := r.call(t, syscall.SIGKILL)
	if most := replicaCallers * len(r.ports); len(failed) > most {
		t.Errorf("%d calls failed, the first: %s", len(failed), failed[0])
	}
	t.Logf("failed: %d", len(failed))
}

type replicas struct {
	dir   string
	ports []string // the proxy's comes first
	calls int
}

// newReplicas starts HAProxy.
func newReplicas(t *testing.T) *replicas {
	t.Helper()
	calls, err := strconv.Atoi(os.Getenv("TOOLREG_REPLICAS"))
	if err != nil {
		t.Skip("make replicas runs it")
	}
	config, err := os.ReadFile("../../examples/serve/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	r := &replicas{dir: t.TempDir(), calls: calls}
	for i := range 4 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		config = bytes.ReplaceAll(config, fmt.Appendf(nil, ":%d\n", 8080+i), []byte(":"+port+"\n"))
		r.ports = append(r.ports, port)
		_ = l.Close()
	}
	r.write(t, "haproxy.cfg", string(config))
	r.write(t, "tokens", "alice "+replicaToken+"\n")
	r.write(t, "settings.json", `{"mcpServers": {"m": {"command": "mcp-testserver", "inheritEnv": true, "trust": true}}}`)
	proxy := exec.CommandContext(t.Context(), "haproxy", "-db", "-f", filepath.Join(r.dir, "haproxy.cfg"))
	proxy.Stderr = os.Stderr
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Process.Kill(); _ = proxy.Wait() })
	return r
}

func (r *replicas) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts a replica and returns when it is healthy.
func (r *replicas) start(t *testing.T, port string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "toolreg", "--settings", "settings.json", "serve", "--source", "mcp:*", "--http", "127.0.0.1:"+port, "--token-file", "tokens")
	c.Dir, c.Env, c.Stderr = r.dir, []string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH")}, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r.await(t, port)
	return c
}

// await waits until a replica, or the proxy, answers health checks.
func (r *replicas) await(t *testing.T, port string) {
	t.Helper()
	if !waitFor(func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/healthz", nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, nil) {
		t.Fatalf("port %s: no answer", port)
	}
}

// call makes calls while each replica is sent a signal and started again, and returns
// the errors of those that failed. Every call writes a line to a file of its own.
func (r *replicas) call(t *testing.T, end syscall.Signal) (failed []string) {
	t.Helper()
	running := make([]*exec.Cmd, 0, 3)
	for _, port := range r.ports[1:] {
		running = append(running, r.start(t, port))
	}
	r.await(t, r.ports[0])
	var done, next atomic.Int64
	var mu sync.Mutex
	var rolled atomic.Bool
	var callers sync.WaitGroup
	for range replicaCallers {
		callers.Go(func() {
			for !rolled.Load() || next.Load() < int64(r.calls) {
				id := next.Add(1)
				err := r.post(t.Context(), id)
				runs, _ := os.ReadFile(r.marker(id))
				ran := bytes.Count(runs, []byte("\n"))
				if ran > 1 || err == nil && ran != 1 {
					t.Errorf("call %d ran %d times, %v", id, ran, err)
				}
				if err != nil {
					mu.Lock()
					failed = append(failed, err.Error())
					mu.Unlock()
				}
				done.Add(1)
			}
		})
	}
	for i, port := range r.ports[1:] {
		underWay := done.Load() + 300
		waitFor(func() bool { return done.Load() >= underWay }, nil)
		_ = running[i].Process.Signal(end)
		if err := running[i].Wait(); (err == nil) != (end == syscall.SIGTERM) {
			t.Errorf("replica %d: %v", i, err)
		}
		running[i] = r.start(t, port)
	}
	rolled.Store(true)
	callers.Wait()
	t.Logf("%d calls", done.Load())
	return failed
}

func (r *replicas) marker(id int64) string { return filepath.Join(r.dir, fmt.Sprint("ran-", id)) }

// post makes one call by way of the proxy.
func (r *replicas) post(ctx context.Context, id int64) error {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"m__slow","arguments":{"seconds":0.01,"started":%q},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"replicas","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, id, r.marker(id))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+r.ports[0]+"/mcp", strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + replicaToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "m__slow"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("slept"))) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	return err
}
