package serve

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/timing"
)

// lists tracks which lists each session has seen, so that sessions are not notified of changes that
// only affect others. It is safe for concurrent use.
type lists struct {
	offers *current.Offers
	sdk    *mcp.Server

	mu        sync.Mutex
	bySession map[*mcp.ServerSession]*listener
}

// listenMethod is the request of revision 2026-07-28 that is open for as long as
// its client wants notifications.
const listenMethod = "subscriptions/listen"

// listChanged is the suffix of the notifications about changed lists.
const listChanged = "/list_changed"

// listKinds returns the kinds of lists.
func listKinds() []string { return []string{"tools", "prompts", "resources"} }

// listener is a session that is notified of changes.
type listener struct {
	who   *caller.Caller
	known map[string]offer.Digest // of lists, by kind: tools, prompts or resources
	news  map[string]bool         // kinds that have changed since the session was notified
}

// follow records what the caller of ctx is offered when it begins to use a session. From then on,
// the session is notified of changes. of is nil if there is no offer for the caller yet.
func (l *lists) follow(ctx context.Context, session *mcp.ServerSession, of *offer.Offer) {
	var v *offer.View
	if of != nil {
		v = l.offers.View(of, caller.Profile(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.bySession[session]
	if to == nil {
		to = &listener{caller.From(ctx), map[string]offer.Digest{}, map[string]bool{}}
		l.bySession[session] = to
	}
	for _, kind := range listKinds() {
		if _, known := to.known[kind]; !known && v != nil {
			to.known[kind] = v.Digest(caller.With(ctx, to.who), kind)
		}
	}
}

// listen handles a subscriptions/listen request, which ends only when the client cancels
// it or the server stops.
func (l *lists) listen(ctx context.Context, next mcp.MethodHandler, req mcp.Request,
	stopping <-chan struct{}) (mcp.Result, error) {
	session := question.From(ctx).Session
	l.follow(ctx, session, l.offers.For(caller.Token(ctx)))
	defer l.forget(func(other *mcp.ServerSession) bool { return other == session })
	ctx, stop := timing.Until(ctx, stopping, transport.ErrStopped)
	defer stop()
	return next(ctx, listenMethod, req)
}

// forget removes sessions that have ended.
func (l *lists) forget(ended func(*mcp.ServerSession) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for session := range l.bySession {
		if ended(session) {
			delete(l.bySession, session)
		}
	}
}

// dropOldNews is middleware that drops the SDK's notifications about lists that have changed only
// for others.
func (l *lists) dropOldNews(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasSuffix(method, listChanged) {
			session, _ := req.GetSession().(*mcp.ServerSession)
			if !l.isNews(method, session) {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}

func (l *lists) isNews(method string, session *mcp.ServerSession) bool {
	kind := strings.TrimSuffix(strings.TrimPrefix(method, "notifications/"), listChanged)
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.bySession[session]
	isNews := to == nil || to.news[kind]
	if to != nil {
		delete(to.news, kind)
	}
	return isNews
}

// announce makes the SDK notify sessions whose lists have changed. The SDK does so when it is given
// an entry, which is never looked up there; see [requests.answer]. The first offer needs no
// notification.
func (l *lists) announce(ctx context.Context, first bool) {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.bySession))
	l.mu.Unlock()
	changed := map[string]bool{}
	for _, to := range all {
		ctx := caller.With(ctx, to.who)
		of := l.offers.For(caller.Token(ctx))
		if of == nil {
			continue
		}
		v := l.offers.View(of, caller.Profile(ctx))
		l.mu.Lock()
		for _, kind := range listKinds() {
			now := v.Digest(ctx, kind)
			if before, known := to.known[kind]; !first && (!known || before != now) {
				to.news[kind], changed[kind] = true, true
			}
			to.known[kind] = now
		}
		l.mu.Unlock()
	}
	if changed["tools"] {
		l.sdk.AddTool(&mcp.Tool{Name: "any", InputSchema: map[string]any{"type": "object"}}, nil)
	}
	if changed["prompts"] {
		l.sdk.AddPrompt(&mcp.Prompt{Name: "any"}, nil)
	}
	if changed["resources"] {
		l.sdk.AddResource(&mcp.Resource{Name: "any", URI: "toolreg:any"}, nil)
	}
}
