package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/ui"
)

const (
	// updateEvery is the time between two updates of a browser.
	updateEvery = 250 * time.Millisecond
	// serversEvery is the time between two looks at the servers.
	serversEvery = time.Second
	// quiet is how long a stream may be silent before a comment is sent.
	quiet = 15 * time.Second
	// writeTime is how long a browser may take to receive an update.
	writeTime = 30 * time.Second
	// replyTime is how long a browser may take to send an answer.
	replyTime = time.Minute
	// maxReply is the maximum size of an answer, in bytes: a whole file may be in it.
	maxReply = 32 << 20
)

// Options configure [Console.Handler]. All are required.
type Options struct {
	// Servers describes the servers, in the order to show them. It is called about once a
	// second by each browser.
	Servers func() []Server
	// Restart starts a server again.
	Restart func(ctx context.Context, name string) error
	// Visitor returns the name of the person who makes a request, given its context.
	Visitor func(context.Context) string
	// Stopping is closed when streams must end.
	Stopping <-chan struct{}
	// Log receives the answers, with the names of those who gave them, at level info.
	Log *slog.Logger
}

// handler answers the requests of browsers.
type handler struct {
	*Console
	opts Options
}

// Handler serves the requests of the console's page, below prefix: events, question, answer and
// restart.
func (c *Console) Handler(prefix string, opts Options) http.Handler {
	h := &handler{c, opts}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+prefix+"/events", h.serveEvents)
	mux.HandleFunc("GET "+prefix+"/question", h.serveQuestion)
	mux.HandleFunc("POST "+prefix+"/answer", h.serveAnswer)
	mux.HandleFunc("POST "+prefix+"/restart", h.serveRestart)
	return mux
}

// serveEvents sends updates as server-sent events until the browser goes away.
func (h *handler) serveEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	tick := time.Tick(updateEvery)
	s := seen{running: -1, questions: -1}
	for sent := time.Now(); ; {
		u, changed := h.since(&s)
		if time.Since(s.asked) >= serversEvery {
			changed = h.addServers(&u, &s) || changed
		}
		text := ": \n\n"
		if changed {
			data, err := jsonx.Marshal(u)
			if err != nil {
				return // plain structs: cannot happen
			}
			text = "data: " + string(data) + "\n\n"
		}
		if changed || time.Since(sent) >= quiet {
			_ = out.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := io.WriteString(w, text); err != nil || out.Flush() != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-h.opts.Stopping:
			return
		case <-tick:
		}
	}
}

func (h *handler) addServers(u *update, s *seen) bool {
	servers := h.opts.Servers()
	for i := range servers {
		servers[i].Name, servers[i].Error = shortName(servers[i].Name), ui.Line(servers[i].Error)
	}
	s.asked = time.Now()
	data, err := jsonx.Marshal(servers)
	if err != nil || bytes.Equal(data, s.servers) {
		return false
	}
	s.servers, u.Servers = data, &servers
	return true
}

func (h *handler) serveQuestion(w http.ResponseWriter, r *http.Request) {
	q := h.question(r.URL.Query().Get("id"))
	if q == nil {
		http.Error(w, errGone.Error(), http.StatusGone)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	data, err := jsonx.Marshal(q.details())
	if err == nil {
		_, _ = w.Write(data)
	}
}

func (h *handler) serveAnswer(w http.ResponseWriter, r *http.Request) {
	var given reply
	if !decode(w, r, &given) {
		return
	}
	q, err := h.reply(given)
	switch {
	case errors.Is(err, errGone):
		http.Error(w, err.Error(), http.StatusGone)
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	default:
		h.opts.Log.Info("question answered at the console", "tool", q.Tool,
			"caller", q.Caller, "answer", given.Choice, "by", h.opts.Visitor(r.Context()))
		w.WriteHeader(http.StatusNoContent)
	}
}

func (h *handler) serveRestart(w http.ResponseWriter, r *http.Request) {
	var server struct {
		Name string `json:"name"`
	}
	if !decode(w, r, &server) {
		return
	}
	err := h.opts.Restart(r.Context(), server.Name)
	h.opts.Log.Info("server restarted at the console",
		"server", server.Name, "by", h.opts.Visitor(r.Context()), "err", err)
	if err != nil {
		http.Error(w, ui.Visible(err.Error()), http.StatusUnprocessableEntity)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// decode reads the JSON of a request. A form on another page cannot send its content type.
func decode(w http.ResponseWriter, r *http.Request, to any) bool {
	if r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "expected application/json", http.StatusUnsupportedMediaType)
		return false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(replyTime))
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReply)).Decode(to); err != nil {
		http.Error(w, "the request cannot be read", http.StatusBadRequest)
		return false
	}
	return true
}
