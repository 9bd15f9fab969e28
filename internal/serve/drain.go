package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
)

const (
	// noticeTime is how long requests are accepted after the health check has begun to
	// fail. A load balancer should have noticed by then.
	noticeTime = 5 * time.Second
	// checksWithin is the time within which the latest two health checks must have
	// arrived for a load balancer to be assumed.
	checksWithin = time.Minute
)

// health reports whether new requests are accepted.
func (h *HTTP) health(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case h.leaving.Load():
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
	default:
		h.checkBefore.Store(h.lastCheck.Swap(time.Now().UnixMilli()))
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ok\n")
	}
}

// readiness reports whether new requests are accepted and every server that is not optional can
// be reached. A server that was not started yet, or was closed because it was unused, counts as
// reachable. Only clients with a token learn the names of the others.
func (h *HTTP) readiness(w http.ResponseWriter, r *http.Request) {
	var failed []string // when they were last tried
	for _, source := range sourcesOf(r.Context(), h.server.offers.Common()) {
		if source.server != "" && source.state == sourceFailed && !source.optional {
			failed = append(failed, source.server)
		}
	}
	if len(failed) == 0 || h.leaving.Load() {
		h.health(w, r)
		return
	}
	text := fmt.Sprintf("servers that cannot be reached: %d", len(failed))
	if from, no := auth.Authenticate(r, h.tokens); no == nil && !h.server.isBound(from) {
		text += " (" + strings.Join(failed, ", ") + ")"
	}
	http.Error(w, text, http.StatusServiceUnavailable)
}

// Drain makes the health check fail, gives a load balancer time to notice, refuses
// new requests from then on, and ends those that wait for notifications. It returns
// the number of requests and tasks that are still running when ctx is done.
func (h *HTTP) Drain(ctx context.Context) int {
	h.leaving.Store(true)
	if time.Since(time.UnixMilli(h.checkBefore.Load())) < checksWithin {
		notice, cancel := context.WithTimeout(ctx, noticeTime)
		<-notice.Done()
		cancel()
	}
	h.endpoint.draining.Store(true)
	if h.server.replica != nil {
		h.server.replica.Drain(ctx)
	}
	h.server.stop()
	return h.wait(ctx)
}

// busy reports whether requests or tasks are running, or calls wait whose answers arrive through
// other replicas and that none of them can run again.
func (h *HTTP) busy() bool {
	return h.endpoint.calls.Load() > 0 || h.server.tasks.Running() > 0 ||
		h.server.replica != nil && h.server.states.OnlyHere("")
}

// wait waits until no request and no task is running, or ctx is done, and returns how many
// still are.
func (h *HTTP) wait(ctx context.Context) int {
	giveUp := func(all bool) {
		if h.server.replica != nil {
			h.server.replica.GiveUpSessions(ctx, all)
		}
	}
	tick := time.Tick(10 * time.Millisecond)
	for giveUp(false); h.busy() && ctx.Err() == nil; giveUp(false) {
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
	giveUp(true)
	return int(h.endpoint.calls.Load()) + h.server.tasks.Running()
}
