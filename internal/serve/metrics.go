package serve

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// Numbers receives metrics. Each has a number for each combination of labels, given as alternating
// names and values.
type Numbers interface {
	Begin(name, kind, help string)
	Add(name string, number int, labels ...string)
}

// Measure reports running and waiting work by client, and the states of sources.
func (s *Server) Measure(ctx context.Context, to Numbers) {
	measure(to, "toolreg_calls_running", "Calls that run.", s.calls.running.Counts(), s.calls.label)
	measure(to, "toolreg_questions_open",
		"Questions to people that wait for an answer.", s.asked.Counts(), s.calls.label)
	measure(to, "toolreg_sessions", "Sessions of clients; clients of revision 2026-07-28 and later have none.",
		s.sessions.Counts(), s.calls.label)
	s.calls.mu.Lock()
	ended := maps.Clone(s.calls.ended)
	s.calls.mu.Unlock()
	to.Begin("toolreg_calls_total", "counter", "Calls that have ended.")
	for _, key := range slices.SortedFunc(maps.Keys(ended),
		func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		to.Add("toolreg_calls_total", ended[key], "client", key[0], "outcome", key[1])
	}
	to.Begin("toolreg_source_state", "gauge", "Whether a source of tools is in this state.")
	for _, source := range sourcesOf(ctx, s.offers.Common()) {
		for _, state := range []string{sourceUp, sourceFailed, sourceDisabled} {
			is := 0
			if source.state == state {
				is = 1
			}
			to.Add("toolreg_source_state", is, "source", source.name, "state", state)
		}
	}
}

// measure adds a gauge with numbers of clients.
func measure(to Numbers, name, help string, counts map[string]int, label func(string) string) {
	to.Begin(name, "gauge", help)
	byLabel := map[string]int{}
	for client, n := range counts {
		byLabel[label(client)] += n
	}
	for _, client := range slices.Sorted(maps.Keys(byLabel)) {
		to.Add(name, byLabel[client], "client", client)
	}
}

// The states of sources in the metrics.
const (
	sourceUp       = "up" // or not needed yet
	sourceFailed   = "failed"
	sourceDisabled = "disabled"
)

type sourceState struct {
	name     string // such as mcp:github
	state    string
	server   string // name of the MCP server or API, if it is one
	optional bool
}

// sourcesOf returns the last known states of the sources of an offer, which may be nil, servers and
// APIs first.
func sourcesOf(ctx context.Context, o *offer.Offer) (out []sourceState) {
	if o == nil {
		return nil
	}
	add := func(name, server string, failed, optional bool) {
		one := sourceState{name, sourceUp, server, optional}
		if failed {
			one.state = sourceFailed
		}
		out = append(out, one)
	}
	for _, server := range o.Session.Servers.On() {
		info := server.Info()
		add(server.Name(), info.Name, info.State == mcpclient.StateFailed || info.State == mcpclient.StateNeedsLogin,
			server.Settings().Optional)
	}
	for _, api := range o.Session.Servers.APIs() {
		entry := api.Settings()
		add(api.Name(), entry.Name, api.Info().State == openapi.Failed || api.NeedsLogin(ctx) != nil, entry.Optional)
	}
	for _, server := range o.Session.Servers.Off {
		out = append(out, sourceState{name: server.Source(), state: sourceDisabled, server: server.Name})
	}
	for _, report := range o.Registry.Reports() {
		if _, isServer := registry.ServerOf(report.Name); !isServer {
			add(report.Name, "", report.Err != nil, false)
		}
	}
	return out
}

// OwnServer returns a server for small requests, such as for metrics. If local is set, it refuses
// other host names, which a page in a browser could use to reach it.
func OwnServer(next http.Handler, local bool) *http.Server {
	return &http.Server{ReadHeaderTimeout: headerTime, ReadTimeout: headerTime,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if local && !transport.IsLoopback(r.Host) {
				http.Error(w, "the host is not this machine", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})}
}
