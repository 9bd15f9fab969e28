package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/store"
)

// What replicas of a server do together, by a store that they share.
//
// A session of a revision before 2026-07-28 is in one replica at a time, which holds it. The
// store has a record of each (session_records.go). A request that arrives at another replica
// is relayed to the holder through the store (relay.go, relayed.go). If the holder has ended,
// or gave the session up because it is about to, the replica where the next request arrives
// takes it over (takeover.go). Requests are relayed only to a replica that is connected, and
// never twice, so that no call runs twice.

const (
	// beatEvery is how often a replica says that it lives, and alive how long that holds.
	beatEvery = time.Second
	alive     = 4 * time.Second
	// replicaKind is the kind of values that say that a replica lives.
	replicaKind = "replica"
)

// replica is one replica of several. Create it with [newReplica].
type replica struct {
	id     string
	store  *store.Store
	server *Server
	http   *HTTP // set before run

	connected atomic.Bool  // messages arrive
	stale     atomic.Bool  // the records must be written again
	lostAt    atomic.Int64 // when the connection was interrupted last, Unix time in ms
	records   records
	relays    relays // that others answer
	served    served // for others
	processes processes
	asked     sync.Map // chan mcp.InputResponse by ID: what clients of others are asked

	mu       sync.Mutex
	adopting map[string]chan struct{} // closed when the session was taken over, or was not
}

func newReplica(server *Server, shared *store.Store) *replica {
	return &replica{id: rand.Text(), store: shared, server: server, records: records{byID: map[string]*record{}}, relays: relays{byID: map[string]*relay{}},
		served: served{byID: map[string]*servedRelay{}, seen: map[string]time.Time{}}, adopting: map[string]chan struct{}{}}
}

// Replicas makes this process one of the replicas that share the server's store, until ctx is
// done. It returns when others can reach it, or nothing is shared. The caller calls stop, which
// waits.
func (h *HTTP) Replicas(ctx context.Context) (stop func()) {
	r := h.server.replica
	if r == nil {
		return func() {}
	}
	r.http = h
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	ready := make(chan struct{})
	first := sync.OnceFunc(func() { close(ready) })
	connected := func() { r.connected.Store(true); first() }
	running.Go(func() { r.store.Receive(ctx, r.id, connected, r.lost, func(data []byte) { r.receive(ctx, data) }) })
	running.Go(func() { r.beat(ctx) })
	select {
	case <-ready:
	case <-ctx.Done():
	}
	return func() {
		cancel()
		running.Wait()
		r.lost()
		r.served.running.Wait()
		gone, done := context.WithTimeout(context.WithoutCancel(ctx), store.Timeout)
		defer done()
		r.giveUpProcesses(gone)
		_ = r.store.Delete(gone, replicaKind, r.id) // otherwise it ends soon
	}
}

// beat says that this replica lives, and looks after its records and relays, until ctx is done.
func (r *replica) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var last, renewed time.Time // of success
	r.stale.Store(true)
	for {
		if err := r.store.Put(ctx, replicaKind, r.id, nil, alive); err == nil {
			// Others may have taken this replica for dead, or the store may have come back empty.
			if r.stale.Swap(false) || time.Since(last) > alive-beatEvery || time.Since(renewed) > renewEvery {
				r.renew(ctx)
				r.renewProcesses(ctx)
				renewed = time.Now()
			}
			last = time.Now()
			r.endOrphans(ctx)
		} else {
			r.stale.Store(true)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lives reports whether a replica has said lately that it lives.
func (r *replica) lives(ctx context.Context, id string) (bool, error) {
	v, err := r.store.Get(ctx, replicaKind, id)
	return v.Exists(), err
}

// settling reports whether the connection was interrupted lately. A store that came back empty
// gets the records of sessions within that time.
func (r *replica) settling() bool {
	return time.Since(time.UnixMilli(r.lostAt.Load())) < 3*beatEvery
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

// endOrphans ends the relays whose other replica does not live any more.
func (r *replica) endOrphans(ctx context.Context) {
	peers := map[string]bool{}
	r.relays.addPeers(peers)
	r.served.addPeers(peers)
	for peer := range peers {
		if is, err := r.lives(ctx, peer); err == nil && !is {
			r.relays.fail(peer, errEnded)
			r.served.cancel(peer)
		}
	}
}

// lost ends all relays, because messages were missed.
func (r *replica) lost() {
	r.connected.Store(false)
	r.stale.Store(true)
	r.lostAt.Store(time.Now().UnixMilli())
	r.relays.fail("", errLost)
	r.served.cancel("")
}

var (
	errEnded = errors.New("the replica in which this request was running has ended; it may have run in part")
	errLost  = errors.New("the connection of replicas (serve.store) was interrupted while this request was running; it may have run, or still run, in another replica")
)
