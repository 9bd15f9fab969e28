package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/ui/browsertest"
	"github.com/toolreg/toolreg/internal/ui/page"
)

// TestConsoleWithManyCalls shows as many calls as are kept: the page has elements only for those
// in view, keeps the place where a person reads, and filters all of them.
func TestConsoleWithManyCalls(t *testing.T) {
	c := New()
	call := func(i int) {
		outcome := audit.OK
		if i%1000 == 0 {
			outcome = audit.Error
		}
		e := audit.Entry{Tool: fmt.Sprintf("tool_%d", i), Time: time.UnixMilli(int64(i)), Caller: &audit.Caller{Name: "alice", Client: "agent"}}
		ended := c.Began(e)
		e.Outcome, e.DurationMs, e.ResultBytes = outcome, 1, 100
		ended(&e)
	}
	for i := range maxEnded {
		call(i)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/console", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.WriteConsole(w, "many", "dev", "/console", nil)
	})
	stopping := make(chan struct{})
	mux.Handle("/console/", c.Handler("/console", Options{Servers: func() []Server { return nil }, Restart: func(context.Context, string) error { return nil },
		Visitor: func(context.Context) string { return "anna" }, Stopping: stopping, Log: slog.New(slog.DiscardHandler)}))
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(stopping) })
	tab := browsertest.Open(t, h.URL+"/console", 1280, 1000)
	tab.Wait(`document.querySelector("#shown").textContent.startsWith("10,000 of 10,000 calls")`)
	if got := tab.Eval(`document.querySelectorAll("#rows .call").length < 100 && document.querySelector("#rows .name").textContent`); got != "tool_9999" {
		t.Errorf("the first row is %s", got)
	}
	tab.Eval(`document.querySelector("#calls").scrollTop = 1e9; 1`)
	tab.Wait(`[...document.querySelectorAll("#rows .name")].at(-1).textContent === "tool_0"`)
	tab.Eval(`document.querySelector("#calls").scrollTop = 32 * 5000; 1`)
	const middle = `(() => { const list = document.querySelector("#calls").getBoundingClientRect(); return document.elementFromPoint(list.left + 150, list.top + 300).closest(".call").querySelector(".name").textContent; })()`
	tab.Wait(middle + ` < "tool_5"`)
	read := tab.Eval(middle)
	call(maxEnded + 1) // the first call, an error, makes room
	tab.Wait(`document.querySelector("#numbers").textContent.includes("9 errors")`)
	tab.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
	if got := tab.Eval(middle); got != read {
		t.Errorf("the list moved from %s to %s", read, got)
	}
	tab.Eval(`document.querySelector("#which").value = "failed"; document.querySelector("#which").dispatchEvent(new Event("change")); 1`)
	if got := tab.Eval(`document.querySelector("#shown").textContent + document.querySelectorAll("#rows .call").length`); got != "9 of 10,000 calls; earlier ones are in the audit log9" {
		t.Errorf("filtered: %s", got)
	}
}
