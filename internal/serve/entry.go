package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

const (
	// headerTime is the time limit for the headers of a request.
	headerTime = 10 * time.Second
	// maxForm is the maximum size of the form with a token, in bytes.
	maxForm = 4 << 10
)

// entry admits HTTP requests that have a valid token, and refuses others.
type entry struct {
	tokens auth.Verifier // if clients need tokens
	log    *slog.Logger
}

// refuse answers a request that goes no further, and logs rejected senders.
func (e *entry) refuse(w http.ResponseWriter, r *http.Request, err error) {
	no, ok := errors.AsType[*auth.Rejection](err)
	if !ok {
		transport.Refuse(w, err)
		return
	}
	e.log.Warn("request refused", "status", no.Status, "reason", no.Reason,
		"from", r.RemoteAddr, "host", r.Host, "path", r.URL.Path)
	if e.tokens != nil {
		if challenge := e.tokens.Challenge(no, r.URL.EscapedPath()); challenge != "" {
			w.Header().Set("WWW-Authenticate", challenge)
		}
	}
	if no.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	http.Error(w, no.Reason, no.Status)
}

// forbidden refuses a request regardless of its sender.
func forbidden(reason string) error {
	return &auth.Rejection{Status: http.StatusForbidden, Reason: "forbidden: " + reason}
}

// posted returns the owner of the token in a posted form.
func (e *entry) posted(w http.ResponseWriter, r *http.Request) (auth.Identity, *auth.Rejection) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTime))
	return e.tokens.Find(r.Context(), strings.TrimSpace(r.PostFormValue("token")), r.URL.EscapedPath())
}
