package serve

import (
	"net/http"
	"time"
)

// Metrics serves /metrics to clients with a token. It must be called before the first
// request.
func (h *HTTP) Metrics(serve http.HandlerFunc) { h.metrics = h.WithToken(serve) }

// WithToken returns a handler that only clients with a token for the whole registry reach: those
// that are bound to a profile must not learn what is outside it.
func (h *HTTP) WithToken(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, ok := h.authenticated(w, r)
		switch {
		case !ok:
		case h.server.isBound(from):
			h.refuse(w, r, http.StatusForbidden, "forbidden: this token is bound to a profile")
		default:
			next(w, r)
		}
	}
}

// OwnServer returns a server for small requests, such as those for metrics. If it is local, it
// refuses names of other hosts, with which a page in a browser could reach it.
func OwnServer(next http.Handler, local bool) *http.Server {
	return &http.Server{ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if local && !isLoopback(r.Host) {
				http.Error(w, "the host is not this machine", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})}
}
