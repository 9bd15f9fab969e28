package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toolreg/toolreg/internal/store/storetest"
)

const (
	replicaToken   = "0123456789abcdef-replicas"
	replicaCallers = 16
)

// Three replicas serve behind HAProxy, as in examples/serve, without session affinity.
// Each in turn is terminated and started again while clients make calls: no call fails.
func TestReplicasTerminate(t *testing.T) { testReplicas(t, false, syscall.SIGTERM) }

// The replicas are killed: only calls that they were answering fail, and none runs twice.
func TestReplicasAreKilled(t *testing.T) { testReplicas(t, false, syscall.SIGKILL) }

// Each answer to a question about a call, from the policy or a server, reaches another
// replica. No call fails while each replica is terminated and started again, and none runs
// twice.
func TestReplicasAskAndTerminate(t *testing.T) { testReplicas(t, true, syscall.SIGTERM) }

// The same with replicas that are killed: only calls that they were answering fail.
func TestReplicasAskAndAreKilled(t *testing.T) { testReplicas(t, true, syscall.SIGKILL) }

// testReplicas makes calls while each replica gets a signal and is started again. Calls
// may fail only if a killed replica was answering them.
func testReplicas(t *testing.T, asks bool, signal syscall.Signal) {
	r := newReplicas(t, asks)
	failed := r.call(t, signal)
	most := 0
	if signal == syscall.SIGKILL {
		most = replicaCallers * len(r.ports)
	}
	if len(failed) > most {
		t.Errorf("%d calls failed, the first: %s", len(failed), failed[0])
	}
	t.Logf("failed: %d", len(failed))
}

type replicas struct {
	dir   string
	ports []string // the first is the proxy's
	calls int
	asks  bool              // whether calls need approval
	store *storetest.Server // nil means only the state key and the state folder are shared

	requests, elsewhere atomic.Int64 // requests of calls that ask: all, and those that did not reach the same replica as the request before
}

// newReplicas starts HAProxy. If asks is set, HAProxy sends each request to the next
// replica.
func newReplicas(t *testing.T, asks bool) *replicas {
	t.Helper()
	calls, err := strconv.Atoi(os.Getenv("TOOLREG_REPLICAS"))
	if err != nil {
		t.Skip("make replicas runs it")
	}
	r := &replicas{dir: t.TempDir(), calls: calls, asks: asks}
	config := r.example(t, "haproxy.cfg")
	config = bytes.Replace(config, []byte("    option httpchk\n"), []byte("    http-response set-header Replica %s\n    option httpchk\n"), 1)
	if asks {
		config = bytes.Replace(config, []byte("balance leastconn"), []byte("balance roundrobin"), 1)
	}
	r.write(t, "haproxy.cfg", string(config))
	r.write(t, "tokens", "alice "+replicaToken+"\n")
	r.write(t, "key", strings.Repeat("0123456789abcdef", 2))
	for name, trust := range map[string]bool{"settings.json": true, "asking.json": false} {
		r.write(t, name, fmt.Sprintf(`{"mcpServers": {"m": {"command": "mcp-testserver", "args": ["--dialogs"], "inheritEnv": true, "trust": %t}}, "serve": {"stateKey": "file:key"}}`, trust))
	}
	r.startProxy(t, "haproxy", "-db", "-f", "haproxy.cfg")
	return r
}

// example returns a file of examples/serve, changed to free ports, which it stores in r.
func (r *replicas) example(t *testing.T, name string) []byte {
	t.Helper()
	config, err := os.ReadFile(filepath.Join("../../examples/serve", name))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		port := storetest.FreePort(t)
		for slices.Contains(r.ports, port) {
			port = storetest.FreePort(t)
		}
		config = bytes.ReplaceAll(config, fmt.Appendf(nil, "127.0.0.1:%d", 8080+i), []byte("127.0.0.1:"+port))
		r.ports = append(r.ports, port)
	}
	return config
}

func (r *replicas) startProxy(t *testing.T, command ...string) {
	t.Helper()
	proxy := exec.CommandContext(t.Context(), command[0], command[1:]...)
	proxy.Dir, proxy.Stderr = r.dir, os.Stderr
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Process.Kill(); _ = proxy.Wait() })
}

func (r *replicas) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts a replica and waits until it is healthy.
func (r *replicas) start(t *testing.T, port string) *exec.Cmd {
	t.Helper()
	settings := "settings.json"
	if r.asks {
		settings = "asking.json"
	}
	c := exec.CommandContext(t.Context(), "toolreg", "--settings", settings, "serve", "--source", "mcp:*", "--http", "127.0.0.1:"+port, "--token-file", "tokens")
	c.Dir, c.Env, c.Stderr = r.dir, []string{"HOME=" + r.dir, "PATH=" + os.Getenv("PATH")}, os.Stderr
	if r.store != nil {
		c.Env = append(c.Env, "XDG_STATE_HOME="+filepath.Join(r.dir, "state-"+port))
	}
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

// call makes calls while each replica is sent a signal and started again, and returns the
// errors of the calls that failed. Each call writes a line to its own file.
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
				err := r.make(t.Context(), id)
				runs, _ := os.ReadFile(r.marker(id))
				ran := bytes.Count(runs, []byte("\n"))
				if ran > 1 || err == nil && ran != 1 && !r.dialog(id) {
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
	if r.asks {
		t.Logf("%d answers, of which %d went to another replica than the one that asked", r.requests.Load(), r.elsewhere.Load())
	}
	return failed
}

func (r *replicas) marker(id int64) string { return filepath.Join(r.dir, fmt.Sprint("ran-", id)) }

// dialog reports whether the server asks twice during the call with this id.
func (r *replicas) dialog(id int64) bool { return r.asks && id%2 == 0 }

// make makes one call through the proxy and answers the questions.
func (r *replicas) make(ctx context.Context, id int64) error {
	if r.dialog(id) {
		return r.converse(ctx, id, "m__rounds", `{"count":2}`, "asked 2 times")
	}
	return r.converse(ctx, id, "m__slow", r.slow(id), "slept")
}

// slow returns the arguments of a call that writes a line to its own file.
func (r *replicas) slow(id int64) string {
	return fmt.Sprintf(`{"seconds":0.01,"started":%q}`, r.marker(id))
}

// converse makes a call of revision 2026-07-28 and answers the questions. The result must have
// a text in it.
func (r *replicas) converse(ctx context.Context, id int64, tool, args, want string) error {
	answers, asked := "", ""
	for range 4 {
		answer, by, err := r.post(ctx, id, tool, args, answers)
		if err != nil {
			return err
		}
		var message struct {
			Result struct {
				Requests map[string]json.RawMessage `json:"inputRequests"`
				State    string                     `json:"requestState"`
			} `json:"result"`
		}
		event, _, _ := bytes.Cut(answer[bytes.IndexByte(answer, '{'):], []byte("\n")) // a comment may follow it
		_ = json.Unmarshal(event, &message)
		if asked != "" {
			r.requests.Add(1)
			if asked != by {
				r.elsewhere.Add(1)
			}
		}
		if asked = by; len(message.Result.Requests) == 0 {
			if !bytes.Contains(answer, []byte(want)) {
				return fmt.Errorf("%s: %s", tool, answer)
			}
			return nil
		}
		content := map[string]json.RawMessage{}
		for key := range message.Result.Requests {
			content[key] = json.RawMessage(`{"action":"accept","content":{}}`)
			if key == "toolreg.approval" {
				content[key] = json.RawMessage(`{"action":"accept","content":{"decision":"yes"}}`)
			}
		}
		responses, err := json.Marshal(content)
		if err != nil {
			return err
		}
		answers = fmt.Sprintf(`"requestState":%q,"inputResponses":%s,`, message.Result.State, responses)
	}
	return errors.New("asked too often")
}

// post sends a request and returns the answer and the replica that sent it.
func (r *replicas) post(ctx context.Context, id int64, tool, args, answers string) (answer []byte, by string, err error) {
	return r.request(ctx, id, "tools/call", tool, fmt.Sprintf(`%s"name":%q,"arguments":%s`, answers, tool, args))
}

// request sends a request of revision 2026-07-28 about what has a name.
func (r *replicas) request(ctx context.Context, id int64, method, name, params string) (answer []byte, by string, err error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"replicas","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, id, method, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+r.ports[0]+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + replicaToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("{"))) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	return answer, resp.Header.Get("Replica"), err
}
