package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/store"
)

// What replicas of a server do together.
//
// A session of a revision before 2026-07-28 is in one replica at a time, which holds it. The
// store has a record of each (session_records.go). A request that arrives at another replica
// is forwarded to the holder (forward.go). If the holder has ended, or gave the session up
// because it is about to, the replica where the next request arrives takes it over (sessions_replicas.go).
// No request is sent twice, so that no call runs twice.

const (
	// senderHeader has the identity of the client in a request that another replica forwards.
	senderHeader = "Toolreg-Sender"
	// lookAgain is how long a replica waits before it looks again where a session is.
	lookAgain = 50 * time.Millisecond
)

// replica is one replica of several. Create it with [newReplica].
type replica struct {
	*cluster.Member
	store  *store.Store
	server *Server
	http   *HTTP // set before it joins

	records   records
	processes *cluster.Claims // on callers' processes of servers
	asked     sync.Map        // chan mcp.InputResponse by ID: what clients of other replicas are asked

	mu       sync.Mutex
	adopting map[string]chan struct{} // closed when the session was taken over, or was not
}

func newReplica(server *Server, shared *store.Store) *replica {
	member := cluster.New(shared)
	return &replica{
		Member: member, store: shared, server: server, records: records{byID: map[string]*record{}},
		processes: member.Claims(processKind, recordTime), adopting: map[string]chan struct{}{},
	}
}

// Join makes this process one of the replicas that share the server's store, if there is one. It
// returns when others can reach it. The caller calls leave, which waits.
func (h *HTTP) Join(ctx context.Context) (leave func(), err error) {
	r := h.server.replica
	if r == nil {
		return func() {}, nil
	}
	r.http = h
	stop, err := r.Member.Join(ctx, cluster.Options{Handle: h.handlePeer, Log: h.opts.Log, Renew: func(ctx context.Context) {
		r.renew(ctx)
		r.processes.Renew(ctx)
	}})
	if err != nil {
		return nil, err
	}
	return func() {
		gone, done := context.WithTimeout(context.WithoutCancel(ctx), store.Timeout)
		defer done()
		r.processes.GiveUp(gone)
		stop()
	}, nil
}

// handlePeer handles a request of another replica. It reports false, and does nothing, if what the
// request is about is not here.
func (h *HTTP) handlePeer(w http.ResponseWriter, r *http.Request) bool {
	from, ok := h.senderOf(r)
	switch {
	case !ok:
		http.Error(w, "the request does not say who sends it", http.StatusBadRequest)
		return true
	case r.URL.Path == auth.Endpoint:
		return h.forwarded(w, r, from)
	case r.URL.Path == tasksPath:
		return h.aboutTask(w, r, from)
	}
	id, _ := strings.CutPrefix(r.URL.Path, answersPath)
	return h.server.replica.answered(r, id)
}

// tellSender sets the header that says who sends a request. Only another replica gets it.
func tellSender(header http.Header, from auth.Identity) {
	data, _ := json.Marshal(from) // cannot fail
	header.Set(senderHeader, base64.StdEncoding.EncodeToString(data))
}

// senderOf returns who sends a request that another replica has forwarded, and removes the header
// that says it.
func (h *HTTP) senderOf(r *http.Request) (from auth.Identity, ok bool) {
	data, err := base64.StdEncoding.DecodeString(r.Header.Get(senderHeader))
	if r.Header.Del(senderHeader); err != nil || json.Unmarshal(data, &from) != nil || from.Name == "" {
		return auth.Identity{}, false
	}
	if h.opts.OAuth != nil {
		from = h.opts.OAuth.Vouched(from)
	}
	return from, true
}

// pause waits, at most until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
