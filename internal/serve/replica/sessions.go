//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package replica

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

const (
	// sessionKind is the kind of values for sessions.
	sessionKind = "session"
	// recordTime is how long a value in the store lasts unless its holder renews it.
	recordTime = 10 * time.Minute
	// lookAgain is the pause before a replica checks again where a session is.
	lookAgain = 50 * time.Millisecond
	// subscribeWithin limits how long servers may take to accept the subscriptions of a session that is
	// taken over.
	subscribeWithin = 5 * time.Second
	// confirmWithin limits how long a request waits for the store to tell whether its session is
	// still here.
	confirmWithin = 200 * time.Millisecond
)

// sessionRecord is what a replica needs to take over a session.
type sessionRecord struct {
	Holder    string                 `json:"holder"`  // ID of a replica; empty if the session was given up
	Account   string                 `json:"account"` // see [auth.Identity.Account]
	State     mcp.ServerSessionState `json:"state"`
	Resources []string               `json:"resources"` // the client's subscriptions
}

// record is the record of a session that this replica holds.
type record struct {
	mu    sync.Mutex // held while the record is written
	now   sessionRecord
	value store.Value // the store's value after the last write
	over  bool        // the session has ended here
}

// record returns the record of a session; nil if this replica does not hold it.
func (r *Replica) record(id string) *record {
	one, _ := r.records.Load(id)
	held, _ := one.(*record)
	return held
}

// forget removes and returns the record of a session; nil if this replica does not hold it.
func (r *Replica) forget(id string) *record {
	one, _ := r.records.LoadAndDelete(id)
	held, _ := one.(*record)
	return held
}

// Remember returns middleware that maintains the records of sessions. sender returns who sends a
// message.
func (r *Replica) Remember(sender func(context.Context, mcp.Request) auth.Identity) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if session, _ := req.GetSession().(*mcp.ServerSession); err == nil && session != nil && session.ID() != "" {
				r.remember(context.WithoutCancel(ctx), session, req, sender)
			}
			return result, err
		}
	}
}

// remember records how a handled message has changed its session.
func (r *Replica) remember(ctx context.Context, session *mcp.ServerSession, req mcp.Request,
	sender func(context.Context, mcp.Request) auth.Identity) {
	change := func(*sessionRecord) {}
	switch p := req.GetParams().(type) {
	case *mcp.InitializeParams:
		r.records.LoadOrStore(session.ID(), &record{now: sessionRecord{ // a session that was taken over has a record already
			Holder: r.ID, Account: sender(ctx, req).Account(),
			State: mcp.ServerSessionState{InitializeParams: session.InitializeParams()},
		}})
	case *mcp.SetLoggingLevelParams:
		change = func(now *sessionRecord) { now.State.LogLevel = p.Level }
	case *mcp.SubscribeParams:
		change = func(now *sessionRecord) {
			now.Resources = text.AppendNew(now.Resources, p.URI)
		}
	case *mcp.UnsubscribeParams:
		change = func(now *sessionRecord) {
			now.Resources = slices.DeleteFunc(now.Resources, func(uri string) bool { return uri == p.URI })
		}
	default:
		return
	}
	r.change(ctx, session.ID(), change)
}

// change changes the record of a session that this replica holds. If the store is unavailable, it
// is written later. If another replica has taken the session over, the session ends here.
func (r *Replica) change(ctx context.Context, id string, change func(*sessionRecord)) {
	one := r.record(id)
	if one == nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.over {
		return
	}
	change(&one.now)
	if held, err := r.writeRecord(ctx, id, one); err == nil && !held {
		one.over = true
		r.forget(id)
		r.end(id)
	}
}

// end ends a session that another replica has taken over. After it is closed, it may be taken over
// again.
func (r *Replica) end(id string) {
	closed := make(chan struct{})
	before, adopting := r.moving.Swap(id, closed)
	session := r.opts.Sessions.End(id)
	r.opts.Closing.Go(func() {
		if session != nil {
			_ = session.Close()
		}
		if adopting {
			<-before.(chan struct{})
		}
		r.moving.CompareAndDelete(id, closed)
		close(closed)
	})
}

// writeRecord writes a record. It returns false if another replica holds the session. one.mu is
// held.
func (r *Replica) writeRecord(ctx context.Context, id string, one *record) (held bool, err error) {
	data, err := json.Marshal(one.now)
	if err != nil {
		return false, err
	}
	for range 3 {
		value, written, err := r.store.Swap(ctx, sessionKind, id, one.value, data, recordTime)
		if err != nil || written {
			one.value = value
			return written, err
		}
		if other, ok := readRecord(value); ok && other.Holder != r.ID {
			return false, nil
		}
		one.value = value // the store came back empty, or answered too late
	}
	return true, nil
}

func readRecord(v store.Value) (sessionRecord, bool) {
	var now sessionRecord
	ok := v.Exists() && json.Unmarshal(v.Data, &now) == nil && now.State.InitializeParams != nil
	return now, ok
}

// ended removes the record of a session that has ended here from the store.
func (r *Replica) ended(ctx context.Context, id string, one *record) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.over = true; one.value.Exists() {
		_ = r.store.Delete(ctx, sessionKind, id) // otherwise it expires
	}
}

// GiveUpSessions lets other replicas take over idle sessions; if all is set, every session.
func (r *Replica) GiveUpSessions(ctx context.Context, all bool) {
	ctx = context.WithoutCancel(ctx)
	r.opts.Sessions.EndIdle(all, func(session transport.Session) {
		one := r.forget(session.ID()) // so that its end does not remove it from the store
		r.opts.Closing.Go(func() {
			_ = session.Close()
			if one == nil {
				return
			}
			one.mu.Lock()
			defer one.mu.Unlock()
			one.over, one.now.Holder = true, ""          // so that another replica can take it over
			_, _ = r.writeRecord(ctx, session.ID(), one) // otherwise others wait until this replica has ended
		})
	})
}

// FindSession returns the other replica that holds the session of a request. The zero value means
// this one, which takes the session over if its holder has ended or given it up. The error says
// that there is no such session, that the store cannot be used, or why this replica takes no
// session; see [transport.Refuse].
func (r *Replica) FindSession(in *transport.Inbound) (holder cluster.Peer, err error) {
	ctx := in.R.Context()
	for {
		if r.isHere(in) && r.PresumedDead() {
			r.confirm(in)
		}
		if r.isHere(in) {
			return cluster.Peer{}, nil
		}
		v, err := r.store.Get(ctx, sessionKind, in.Session)
		if err != nil {
			return cluster.Peer{}, err
		}
		now, ok := readRecord(v)
		if !ok && r.Settling(ctx) { // the record may be rewritten
			if err := timing.Pause(ctx, lookAgain); err != nil {
				return cluster.Peer{}, err
			}
			continue
		}
		if !ok || now.Account != in.From.Account() {
			return cluster.Peer{}, transport.ErrNoSession
		}
		if now.Holder != "" && now.Holder != r.ID {
			holder, err := r.Find(ctx, now.Holder)
			if err != nil || holder != (cluster.Peer{}) {
				return holder, err
			}
		}
		if err := r.takeOver(in, v, now); err != nil {
			return cluster.Peer{}, err
		}
	}
}

// confirm ends the session of a request here if another replica has taken it over. Otherwise an
// answer to a question from there could arrive here and be lost. It waits only briefly, because
// sessions must work while the store is unavailable.
func (r *Replica) confirm(in *transport.Inbound) {
	ctx, cancel := context.WithTimeout(in.R.Context(), confirmWithin)
	defer cancel()
	r.change(ctx, in.Session, func(*sessionRecord) {})
}

// isHere reports whether the session of a request is in this process and belongs to the sender.
func (r *Replica) isHere(in *transport.Inbound) bool {
	return r.opts.Sessions.Belongs(in.Session, in.From.Account())
}

// takeOver makes this replica the holder of a session, unless another request or replica is faster.
// v is the session's record.
func (r *Replica) takeOver(in *transport.Inbound, v store.Value, now sessionRecord) error {
	ctx, id := in.R.Context(), in.Session
	over := make(chan struct{})
	if other, moving := r.moving.LoadOrStore(id, over); moving {
		select {
		case <-other.(chan struct{}):
			return nil // FindSession looks again
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() {
		r.moving.CompareAndDelete(id, over)
		close(over)
	}()
	if r.isHere(in) {
		return nil
	}
	if err := r.opts.Room(in.From.Name); err != nil {
		return err
	}
	now.Holder = r.ID
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	value, swapped, err := r.store.Swap(ctx, sessionKind, id, v, data, recordTime)
	if err != nil || !swapped {
		return err
	}
	return r.adopt(in, value, now)
}

// adopt begins the session of a request from its record. value is the record in the store.
func (r *Replica) adopt(in *transport.Inbound, value store.Value, now sessionRecord) error {
	ctx, id := auth.With(context.WithoutCancel(in.R.Context()), in.From), in.Session
	r.records.Store(id, &record{now: now, value: value})
	r.opts.Replay(ctx, id, "initialize", now.State.InitializeParams)
	if !r.isHere(in) {
		r.forget(id)
		return errors.New("taking over a session: it cannot begin again")
	}
	r.opts.Replay(ctx, id, "notifications/initialized", struct{}{})
	if now.State.LogLevel != "" {
		r.opts.Replay(ctx, id, "logging/setLevel", &mcp.SetLoggingLevelParams{Level: now.State.LogLevel})
	}
	r.opts.Log.Info("session taken over", "caller", in.From.Name)
	if resources := slices.Clone(now.Resources); len(resources) > 0 {
		r.opts.Closing.Go(func() {
			ctx, stop := context.WithTimeout(ctx, subscribeWithin)
			defer stop()
			for _, uri := range resources {
				r.opts.Replay(ctx, id, "resources/subscribe", &mcp.SubscribeParams{URI: uri})
			}
		})
	}
	return nil
}
