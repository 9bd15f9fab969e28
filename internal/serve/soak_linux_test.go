package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
)

// soak is how many client sessions a test makes: few, unless TOOLREG_SOAK says more
// (make soak).
func soak(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("TOOLREG_SOAK"))
	if err != nil {
		return 80
	}
	t.Logf("%d sessions", n)
	return n
}

// Clients of old and new revisions come and go, a tenth of them in the middle of a call,
// while servers are killed. At the end no session, call, process, descriptor or goroutine
// is left, and every call was answered.
func TestNothingIsLeft(t *testing.T) {
	sessions := soak(t)
	from := newSession(t, map[string]string{"m": "", "l": ";legacy"})
	server := serverOf(t, from)
	server.SetLimits(Limits{Session: time.Minute}) // longer than a busy machine lets a client wait
	h := httptest.NewServer(server.HTTP(HTTPOptions{Loopback: true}))
	defer h.Close()
	soakClient(t, h, 0).visit(t.Context(), false) // creates what is created only once
	h.CloseClientConnections()
	before := settledCounts(t, func(now counts) bool { return now.children == 4 }) // two servers and their guards

	ctx, stop := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() { killServers(ctx, 400*time.Millisecond) })
	var answered, failed atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < sessions; i += 8 {
				c := soakClient(t, h, i)
				breaksOff := i%10 == 3
				switch err := c.visit(t.Context(), breaksOff); {
				case err == nil:
					answered.Add(1)
				case breaksOff || strings.Contains(err.Error(), "which may have had effects") || strings.Contains(err.Error(), "in a row"),
					strings.Contains(err.Error(), "it exited (signal: SIGKILL)"): // while it started
					failed.Add(1) // canceled here, or its server was killed and the error says so
				default:
					t.Errorf("session %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	stop()
	killer.Wait()
	t.Logf("%d calls were answered, %d failed", answered.Load(), failed.Load())
	if answered.Load() == 0 {
		t.Error("no call was answered")
	}
	h.CloseClientConnections()
	server.SetLimits(Limits{Session: time.Second}) // of sessions that were broken off
	settledCounts(t, func(now counts) bool {
		return server.running() == 0 && sum(server.sessions.Counts()) == 0 && now.children <= before.children && now.files <= before.files && now.goroutines <= before.goroutines
	})
	from.Close()
	settledCounts(t, func(now counts) bool { return now.children == 0 })
}

// While clients make calls, the settings are reloaded again and again: no call fails, and
// each runs once.
func TestReloadLosesNoCall(t *testing.T) {
	loads := min(max(soak(t)/100, 8), 100)
	servers := map[string]string{"m": ""}
	server := serverOf(t, newSession(t, servers))
	h := httptest.NewServer(server.HTTP(HTTPOptions{Loopback: true}))
	defer h.Close()
	ctx, stop := context.WithCancel(t.Context())
	dir := t.TempDir()
	var calls sync.WaitGroup
	for worker := range 8 {
		calls.Go(func() {
			c := soakClient(t, h, worker)
			if err := c.begin(ctx); err != nil {
				t.Error(err)
				return
			}
			marks, n := filepath.Join(dir, fmt.Sprint(worker)), 0
			for ; ctx.Err() == nil; n++ {
				if err := c.call(t.Context(), "slow", map[string]any{"seconds": 0.005, "started": marks}); err != nil {
					t.Error(err)
					return
				}
			}
			if ran, err := os.ReadFile(marks); err != nil || bytes.Count(ran, []byte("\n")) != n {
				t.Errorf("%d calls ran %d times, %v", n, bytes.Count(ran, []byte("\n")), err)
			}
			if err := c.end(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	var last *engine.Session
	for range loads {
		next := newSession(t, servers)
		if err := server.Load(t.Context(), next); err != nil {
			t.Error(err)
		}
		last = next
	}
	stop()
	calls.Wait()
	server.Wait()
	last.Close()
	settledCounts(t, func(now counts) bool { return now.children == 0 })
}

// soaking is a client without the SDK: small, and able to go away at any time.
type soaking struct {
	url, session, revision string
	http                   *http.Client
}

func soakClient(t *testing.T, h *httptest.Server, i int) *soaking {
	t.Helper()
	return &soaking{url: h.URL + auth.Endpoint, http: h.Client(), revision: []string{"2026-07-28", "2025-11-25", "2025-03-26"}[i%3]}
}

// visit begins a session, makes a call and ends the session, or cancels the call and
// disconnects.
func (c *soaking) visit(ctx context.Context, breakOff bool) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	tool := []string{"m__", "l__"}[rand.IntN(2)]
	if breakOff {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(50))*time.Millisecond)
		defer cancel()
		return c.call(ctx, tool+"slow", map[string]any{"seconds": 60})
	}
	if err := c.call(ctx, tool+"echo", map[string]any{"text": "hello"}); err != nil {
		return err
	}
	return c.end(ctx)
}

func (c *soaking) modern() bool { return c.revision == wire.FirstModern }

func (c *soaking) begin(ctx context.Context) error {
	if c.modern() {
		return nil
	}
	_, err := c.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+c.revision+`","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	if err == nil {
		_, err = c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return err
}

func (c *soaking) call(ctx context.Context, tool string, args map[string]any) error {
	params := map[string]any{"name": tool, "arguments": args}
	if c.modern() {
		params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": c.revision, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "soak", "version": "1"}}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
	if err != nil {
		return err
	}
	answer, err := c.post(ctx, string(body), "Mcp-Method", "tools/call", "Mcp-Name", tool)
	if err == nil && (!strings.Contains(answer, `"result"`) || strings.Contains(answer, `"isError":true`)) {
		return fmt.Errorf("%s", answer)
	}
	return err
}

func (c *soaking) end(ctx context.Context) error {
	if c.modern() {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Mcp-Session-Id", c.session)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (c *soaking) post(ctx context.Context, body string, headers ...string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" || c.modern() {
		req.Header.Set("Mcp-Protocol-Version", c.revision)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; c.modern() && i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	c.session = cmp.Or(c.session, resp.Header.Get("Mcp-Session-Id"))
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	return string(answer), err
}

// killServers kills a server's process every now and then.
func killServers(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pids := slices.DeleteFunc(children(), func(pid int) bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return bytes.Contains(line, []byte("toolreg-guard"))
		})
		if len(pids) > 0 {
			_ = syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL)
		}
	}
}

// counts are the resources of a process that could leak.
type counts struct{ children, files, goroutines int }

// settledCounts waits until the counts are good, and returns them.
func settledCounts(t *testing.T, good func(counts) bool) counts {
	t.Helper()
	var now counts
	defer func() {
		t.Logf("%+v", now)
		if t.Failed() {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1) // what is left
		}
	}()
	waitFor(t, func() bool {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		now = counts{len(children()), len(files), runtime.NumGoroutine()}
		return good(now)
	})
	return now
}

// children returns the running child processes.
func children() []int {
	var out []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
			out = append(out, pid)
		}
	}
	return out
}
