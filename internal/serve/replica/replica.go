// Package replica makes a server one of several processes that share a store, its replicas, so that
// a client can send each request to any of them.
//
// A session (revisions before 2026-07-28) is held by one replica at a time. The store has a record
// of each (sessions.go). A request that arrives elsewhere is forwarded to the holder (forward.go).
// If the holder has ended, or has given up the session because it is about to end, the replica that
// receives the next request takes the session over. Later revisions have no sessions, but some
// requests must be handled by a certain replica: the one where the call waits that a request
// continues, or the one that has the caller's own process of a server (perClient). They are
// forwarded in the same way. A request about a task is answered by the replica that has the task
// (tasks.go). No request is sent twice, so that no call runs twice.
//
// Package cluster finds other replicas and carries requests to them. This package decides which of
// them must handle a request. The server handles requests; its part is passed in [Options].
package replica

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/store"
)

// processKind is the kind of values that say which replica has a caller's process.
const processKind = "process"

// Replica is this process as one of the replicas. Create it with [New]. It is safe for concurrent use.
type Replica struct {
	*cluster.Member
	store *store.Store
	opts  Options

	records   sync.Map        // *record by ID: the sessions that this replica holds
	moving    sync.Map        // chan struct{} by ID: closed when a session was taken over, or closed because another replica took it over
	processes *cluster.Claims // on callers' processes of servers
	asked     sync.Map        // chan mcp.InputResponse by ID: questions to clients of other replicas
	leaving   atomic.Bool     // set by Drain
}

// Options are what a [Replica] needs from its server. All are required.
type Options struct {
	// Sessions, Calls and Tasks are those of this process.
	Sessions *transport.Sessions
	Calls    *question.Calls
	Tasks    *task.Tasks
	// Closing is waited for before the process ends.
	Closing *sync.WaitGroup
	Log     *slog.Logger

	// ProcessOf names the caller's own process of a server that a request needs; "" if it needs
	// none.
	ProcessOf func(*transport.Inbound) string
	// Pass handles a request in this process. The error says why it was not handled; see
	// [transport.Refuse].
	Pass func(*transport.Inbound) error
	// Begin counts a request of another replica among those of this process, and waits for its
	// turn. An error means that its client is gone.
	Begin func(*transport.Inbound) (done func(), err error)
	// Room makes room for another session of a token. The error says why there is none.
	Room func(token string) error
	// Replay passes the SDK a message that the client of a session has sent to another replica. The
	// method "initialize" begins the session.
	Replay func(ctx context.Context, session, method string, params any)
}

// New returns a replica that others cannot see until [Replica.Join].
func New(shared *store.Store) *Replica {
	member := cluster.New(shared)
	return &Replica{Member: member, store: shared, processes: member.Claims(processKind, recordTime)}
}

// Join makes this process one of the replicas, before the first request of a client arrives. When
// it returns, others can reach this process. The caller must call leave, which waits.
func (r *Replica) Join(ctx context.Context, opts Options) (leave func(), err error) {
	r.opts = opts
	opts.Sessions.Over = func(id string) {
		if one := r.forget(id); one != nil { // immediately, because the session may be taken over again
			opts.Closing.Go(func() { r.ended(context.WithoutCancel(ctx), id, one) })
		}
	}
	stop, err := r.Member.Join(ctx, cluster.Options{Handle: r.handle, Log: opts.Log, Renew: func(ctx context.Context) {
		for id := range r.records.Range {
			r.change(ctx, id.(string), func(*sessionRecord) {})
		}
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

// Drain releases callers' processes, and the waiting calls that other replicas can run again.
// [Replica.GiveUpSessions] releases sessions.
func (r *Replica) Drain(ctx context.Context) {
	r.leaving.Store(true)
	r.processes.GiveUp(ctx)
}

// handle handles a request of another replica. If what the request is about is not here, it does
// nothing and returns false.
func (r *Replica) handle(w http.ResponseWriter, req *http.Request) bool {
	from, ok := senderOf(req)
	if !ok {
		http.Error(w, "the request does not say who sends it", http.StatusBadRequest)
		return true
	}
	in := transport.NewInbound(w, req, from)
	if req.Method == http.MethodPost {
		var err error
		if in.Body, err = io.ReadAll(http.MaxBytesReader(w, req.Body, transport.MaxBody)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
	}
	switch req.URL.Path {
	case auth.Endpoint:
		return r.forwarded(in)
	case tasksPath:
		return r.aboutTask(in)
	}
	return r.passAnswer(strings.TrimPrefix(req.URL.Path, answersPath), in.Body)
}
