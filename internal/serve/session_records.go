//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package serve

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/store"
)

const (
	// sessionKind is the kind of values for sessions, and recordTime how long the record of
	// one stays that its holder does not renew.
	sessionKind = "session"
	recordTime  = 10 * time.Minute
)

// sessionRecord is what a replica needs to take over a session.
type sessionRecord struct {
	Holder    string                 `json:"holder"`  // id of a replica; "" if it gave the session up
	Account   string                 `json:"account"` // see [auth.Identity.Account]
	State     mcp.ServerSessionState `json:"state"`
	Resources []string               `json:"resources"` // it has subscribed to
}

// record is the record of a session that this replica holds.
type record struct {
	mu    sync.Mutex // held while it is written
	now   sessionRecord
	value store.Value // that was written last
	over  bool
}

// records are those of the sessions that this replica holds. It is safe for concurrent use.
type records struct {
	mu   sync.Mutex
	byID map[string]*record
}

func (r *records) get(id string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *records) add(id string, one *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = one
}

func (r *records) remove(id string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.byID[id]
	delete(r.byID, id)
	return one
}

func (r *records) ids() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.byID {
		ids = append(ids, id)
	}
	return ids
}

// remember is the middleware that keeps the records of sessions.
func (s *Server) remember(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		session, _ := req.GetSession().(*mcp.ServerSession)
		if s.replica == nil || err != nil || session == nil || session.ID() == "" {
			return result, err
		}
		ctx = context.WithoutCancel(ctx)
		switch p := req.GetParams().(type) {
		case *mcp.InitializeParams:
			if s.replica.records.get(session.ID()) == nil { // else it was taken over
				s.replica.records.add(session.ID(),
					&record{now: sessionRecord{
						Holder: s.replica.ID, Account: s.identify(ctx, req).Account(),
						State: mcp.ServerSessionState{InitializeParams: session.InitializeParams()},
					}})
			}
			s.replica.change(ctx, session.ID(), func(*sessionRecord) {})
		case *mcp.SetLoggingLevelParams:
			s.replica.change(ctx, session.ID(), func(r *sessionRecord) { r.State.LogLevel = p.Level })
		case *mcp.SubscribeParams:
			s.replica.change(ctx, session.ID(), func(r *sessionRecord) {
				if !slices.Contains(r.Resources, p.URI) {
					r.Resources = append(r.Resources, p.URI)
				}
			})
		case *mcp.UnsubscribeParams:
			s.replica.change(ctx, session.ID(), func(r *sessionRecord) {
				r.Resources = slices.DeleteFunc(r.Resources, func(uri string) bool { return uri == p.URI })
			})
		}
		return result, err
	}
}

// change changes the record of a session that this replica holds. If the store is away, it is
// written later. If another replica has taken the session over, it ends here.
func (r *replica) change(ctx context.Context, id string, change func(*sessionRecord)) {
	one := r.records.get(id)
	if one == nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.over {
		return
	}
	change(&one.now)
	if held, err := r.write(ctx, id, one); err == nil && !held {
		one.over = true
		r.records.remove(id)
		r.server.endSession(id)
	}
}

// write writes a record. It reports false if another replica holds the session. one.mu is held.
func (r *replica) write(ctx context.Context, id string, one *record) (held bool, err error) {
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
		one.value = value // the store came back empty, or has answered too late
	}
	return true, nil
}

func readRecord(v store.Value) (sessionRecord, bool) {
	var now sessionRecord
	ok := v.Exists() && json.Unmarshal(v.Data, &now) == nil && now.State.InitializeParams != nil
	return now, ok
}

// renew writes the records again, so that they do not end.
func (r *replica) renew(ctx context.Context) {
	for _, id := range r.records.ids() {
		r.change(ctx, id, func(*sessionRecord) {})
	}
}

// sessionOver removes the record of a session that has ended here, in a goroutine.
func (r *replica) sessionOver(id string) {
	r.server.closing.Go(func() {
		r.server.mu.Lock()
		life := r.server.life
		r.server.mu.Unlock()
		if life != nil {
			r.ended(context.WithoutCancel(life), id)
		}
	})
}

// ended removes the record of a session that has ended here.
func (r *replica) ended(ctx context.Context, id string) {
	one := r.records.remove(id)
	if one == nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.over = true; one.value.Exists() {
		_ = r.store.Delete(ctx, sessionKind, id) // otherwise it ends later
	}
}

// giveUp writes that a session has no holder, so that another replica can take it over.
func (r *replica) giveUp(ctx context.Context, id string, one *record) {
	if one == nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.over, one.now.Holder = true, ""
	_, _ = r.write(ctx, id, one) // otherwise this replica must have ended first
}

// endSession ends a session and closes it.
func (s *Server) endSession(id string) {
	if session := s.sessions.End(id); session != nil {
		s.closing.Go(func() { _ = session.Close() })
	}
}
