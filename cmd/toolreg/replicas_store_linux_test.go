package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/store/storetest"
)

// storeRun is a run of three replicas with a store behind HAProxy, which sends each request to
// the next replica.
type storeRun struct {
	*replicas
	running  []*exec.Cmd
	sessions []string // of revision 2025-11-25
	next     atomic.Int64
	// askedAgain is how often clients asked for the result of a task again after an error.
	askedAgain atomic.Int64
}

func newStoreRun(t *testing.T) *storeRun {
	t.Helper()
	calls, err := strconv.Atoi(os.Getenv("TOOLREG_REPLICAS"))
	if err != nil {
		t.Skip("make replicas runs it")
	}
	r := &storeRun{replicas: &replicas{dir: t.TempDir(), calls: calls, store: storetest.Start(t)}}
	config := regexp.MustCompile(`(?m)^ *stick.*\n`).ReplaceAll(r.example(t, "haproxy.cfg"), nil)
	r.write(t, "haproxy.cfg", strings.Replace(string(config), "balance leastconn", "balance roundrobin", 1))
	r.write(t, "tokens", "alice "+replicaToken+"\n")
	r.settings(t, "")
	r.startProxy(t, "haproxy", "-db", "-f", "haproxy.cfg")
	for _, port := range r.ports[1:] {
		r.running = append(r.running, r.start(t, port))
	}
	r.await(t, r.ports[0])
	return r
}

// settings writes the settings: m is trusted, calls of q need approval, those of l are
// limited, and those of t go on as tasks. more is added to the servers.
func (r *storeRun) settings(t *testing.T, more string) {
	t.Helper()
	const server = `{"command": "mcp-testserver", "args": ["--dialogs"], "inheritEnv": true, "trust": %t}`
	r.write(t, "settings.json", fmt.Sprintf(`{"mcpServers": {"m": `+server+`, "q": `+server+`, "l": `+server+`, "t": {"command": "mcp-testserver", "args": ["--tasks"], "trust": true}`+more+`}, "serve": {"stateKey": "0123456789abcdef0123456789abcdef",
		"store": %q, "maxClients": 0, "limits": [{"tool": "l__*", "calls": 1000000, "per": "24h"}]}}`, true, false, true, r.store.URL()))
}

// older sends a message of a session of revision 2025-11-25 to a port; "" begins one.
func (r *storeRun) older(ctx context.Context, port, session, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+port+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + replicaToken, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil && resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return resp, err
}

// finish sends a message and discards the answer.
func (r *storeRun) finish(ctx context.Context, port, session, body string) (id string, err error) {
	resp, err := r.older(ctx, port, session, body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Header.Get("Mcp-Session-Id"), err
}

func (r *storeRun) open(ctx context.Context) (string, error) {
	id, err := r.finish(ctx, r.ports[0], "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	if err == nil {
		_, err = r.finish(ctx, r.ports[0], id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return id, err
}

// callOlder makes a call in a session, and approves it if that is asked.
func (r *storeRun) callOlder(ctx context.Context, port, session, tool string, id int64) error {
	resp, err := r.older(ctx, port, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, r.slow(id)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		data := bytes.TrimPrefix(lines.Bytes(), []byte("data: "))
		switch {
		case json.Unmarshal(data, &m) != nil || m.ID == nil:
		case m.Method != "":
			if _, err := r.finish(ctx, r.ports[0], session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"yes"}}}`, m.ID)); err != nil {
				return fmt.Errorf("the answer: %w", err)
			}
		case !bytes.Contains(data, []byte("slept")):
			return fmt.Errorf("%s: %s", tool, data)
		default:
			return nil
		}
	}
	return errors.New("the stream has ended")
}

// task makes a call that goes on as a task, and asks for its result until it is there.
func (r *storeRun) task(ctx context.Context, id int64, modern bool) error {
	args, session := fmt.Sprintf(`{"seconds":0.02,"started":%q}`, r.marker(id)), r.sessions[id%int64(len(r.sessions))]
	ask := func(method, name, params string) (string, error) {
		if modern {
			answer, _, err := r.request(ctx, id, method, name, params)
			return string(answer), err
		}
		resp, err := r.older(ctx, r.ports[0], session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		return string(answer), err
	}
	created, err := ask("tools/call", "t__slow_compute", fmt.Sprintf(`"name":"t__slow_compute","arguments":%s,"task":{}`, args))
	if err != nil {
		return err
	}
	found := taskID.FindStringSubmatch(created)
	if found == nil {
		return fmt.Errorf("no task: %s", created)
	}
	method, begun := "tasks/result", time.Now()
	if modern {
		method = "tasks/get"
	}
	for {
		answer, err := ask(method, found[1], fmt.Sprintf(`"taskId":%q`, found[1]))
		switch {
		case strings.Contains(answer, "computed"):
			return nil
		case (err != nil || strings.Contains(answer, "-32603")) && time.Since(begun) < 20*time.Second:
			r.askedAgain.Add(1)
			<-time.After(100 * time.Millisecond)
		case err != nil:
			return err
		case !modern || !strings.Contains(answer, `"status":"working"`):
			return fmt.Errorf("the task: %s", answer)
		}
	}
}

var taskID = regexp.MustCompile(`"taskId":"([^"]*)"`)

// Every session works through any replica: none of its calls fails.
func TestReplicasStoreSessions(t *testing.T) {
	r := newStoreRun(t)
	r.openSessions(t, 2)
	here, there := r.median(t, r.ports[1], r.ports[1]), r.median(t, r.ports[1], r.ports[2])
	t.Logf("%d sessions; a call takes %v where its session is, %v through another replica", len(r.sessions), here, there)
	for i, c := range r.running {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
		t.Logf("replica %d: %s", i, regexp.MustCompile(`VmRSS:.*`).Find(status))
	}
}

// openSessions opens TOOLREG_SESSIONS sessions and makes calls in each.
func (r *storeRun) openSessions(t *testing.T, calls int) {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("TOOLREG_SESSIONS"), "1000"))
	if err != nil || n < 1 || n > 10000 {
		t.Fatal("TOOLREG_SESSIONS must be a number up to 10000")
	}
	r.sessions = make([]string, n)
	r.each(func(i int) {
		id, err := r.open(t.Context())
		for range calls {
			call := r.next.Add(1)
			err = errors.Join(err, r.callOlder(t.Context(), r.ports[0], id, "m__slow", call))
			if ran := r.ran(call); ran != 1 {
				t.Errorf("call %d ran %d times", call, ran)
			}
		}
		if r.sessions[i] = id; err != nil {
			t.Errorf("session %d: %v", i, err)
		}
	})
}

// each does something for each session.
func (r *storeRun) each(do func(i int)) {
	var next atomic.Int64
	var callers sync.WaitGroup
	for range replicaCallers {
		callers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(r.sessions)); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	callers.Wait()
}

// ran returns how often a call ran.
func (r *storeRun) ran(id int64) int {
	runs, _ := os.ReadFile(r.marker(id))
	return bytes.Count(runs, []byte("\n"))
}

// median opens a session at one port and returns how long a request of it through another takes.
func (r *storeRun) median(t *testing.T, holder, via string) time.Duration {
	t.Helper()
	id, err := r.finish(t.Context(), holder, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for range 300 {
		begun := time.Now()
		if _, err := r.finish(t.Context(), via, id, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"m__echo","arguments":{"text":"x"}}}`); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2].Round(10 * time.Microsecond)
}

// The SDK's clients of both revisions get questions, progress, updates and changes, though each
// of their requests goes to another replica.
func TestReplicasStoreClients(t *testing.T) {
	r := newStoreRun(t)
	older, modern := r.connect(t, "2025-11-25"), r.connect(t, "2026-07-28")
	for _, c := range []*proxied{older, modern} {
		revision := c.session.InitializeResult().ProtocolVersion
		for range 6 {
			if text, err := c.call("m__echo", map[string]any{"text": "hello"}); err != nil || text != "hello" {
				t.Errorf("%s: a call: %q, %v", revision, text, err)
			}
			if text, err := c.call("m__ask", nil); err != nil || !strings.Contains(text, "plum") {
				t.Errorf("%s: a question: %q, %v", revision, text, err)
			}
		}
		if text, err := c.call("m__progress", map[string]any{"steps": 2}); err != nil || !waitFor(func() bool { return len(c.progress) >= 2 }, nil) {
			t.Errorf("%s: %d reports of progress, %q, %v", revision, len(c.progress), text, err)
		}
		for len(c.changed) > 0 { // discard earlier changes
			<-c.changed
		}
	}
	r.settings(t, `, "u": {"command": "mcp-testserver", "args": ["--changes", "--offers"], "inheritEnv": true, "trust": true}`)
	for _, c := range []*proxied{older, modern} {
		revision := c.session.InitializeResult().ProtocolVersion
		if !waitFor(func() bool { return len(c.changed) > 0 }, nil) {
			t.Errorf("%s: a change of the tools did not arrive", revision)
		}
		if err := c.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://both"}); err != nil {
			t.Fatal(revision, err)
		}
		if !waitFor(func() bool { // each replica has its own process of the server
			_, err := c.call("u__touch", map[string]any{"uri": "test://both"})
			return err == nil && len(c.updated) > 0
		}, nil) {
			t.Errorf("%s: an update did not arrive", revision)
		}
	}
}
