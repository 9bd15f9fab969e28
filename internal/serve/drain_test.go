package serve

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/serve/auth"
)

// A load balancer has time to notice that the server shuts down: until then requests are
// accepted, and each response closes its connection.
func TestDrainGivesLoadBalancersTime(t *testing.T) {
	handler := newServer(t, nil).HTTP(HTTPOptions{Loopback: true})
	h := serveHandler(t, handler)
	ask := func(method, path string) (status int, last bool) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := h.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Body.Close() == nil && resp.Close
	}
	for range 2 {
		if status, last := ask(http.MethodGet, "/healthz"); status != http.StatusOK || last {
			t.Errorf("healthy: status %d, last %v", status, last)
		}
	}
	before, _ := ask(http.MethodPost, auth.Endpoint)
	ctx, noticed := context.WithCancel(t.Context())
	defer noticed()
	over := make(chan int)
	go func() { over <- handler.Drain(ctx) }()
	waitFor(t, func() bool {
		status, _ := ask(http.MethodGet, "/healthz")
		return status == http.StatusServiceUnavailable
	})
	if status, last := ask(http.MethodPost, auth.Endpoint); status != before || !last {
		t.Errorf("not yet noticed: status %d as against %d, last %v", status, before, last)
	}
	noticed()
	<-over
	if status, _ := ask(http.MethodPost, auth.Endpoint); status != http.StatusServiceUnavailable {
		t.Errorf("drained: status %d", status)
	}
}

// A single health check does not come from a load balancer, so draining does not wait.
func TestDrainDoesNotWaitWithoutLoadBalancer(t *testing.T) {
	handler := newServer(t, nil).HTTP(HTTPOptions{Loopback: true})
	h := serveHandler(t, handler)
	resp, err := h.Client().Get(h.URL + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), noticeTime)
	defer cancel()
	handler.Drain(ctx)
	if ctx.Err() != nil {
		t.Error("Drain waited")
	}
}
