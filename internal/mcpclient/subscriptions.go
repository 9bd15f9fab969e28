package mcpclient

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
)

// subscriptions are the changes that a server's shared session is to report.
type subscriptions struct {
	requests *requester

	mu        sync.Mutex
	changed   func(Change)            // nil means changes are not followed
	resources map[string]subscription // by URI
}

// Follow makes the shared process of the server call changed for every change that it
// reports: of its lists, and of the resources passed to [Source.Subscribe]. A
// restarted server may have other tools, so a restart is reported as a change too.
// changed is called from any goroutine and must return at once. Call Follow before
// Discover.
func (s *subscriptions) Follow(changed func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

func (s *subscriptions) report(c Change) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed(c)
	}
}

// Subscribe asks the shared process of the server to report changes of a resource until
// [Source.Unsubscribe] is called; a process that is started later is asked too. Errors
// are those of ReadResource.
func (s *subscriptions) Subscribe(ctx context.Context, uri string) error {
	ctx = caller.With(ctx, nil)
	sess, err := s.requests.pool.live(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	sub, before := s.resources[uri]
	if s.resources == nil {
		s.resources = map[string]subscription{}
	}
	if !before {
		s.resources[uri] = subscription{} // so that a process started meanwhile subscribes too
	}
	s.mu.Unlock()
	if sub.on == sess {
		return nil
	}
	if err := s.subscribe(ctx, sess, uri); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !before && s.resources[uri].on == nil {
			delete(s.resources, uri)
		}
		return err
	}
	return nil
}

// subscription is a session's subscription to one resource.
type subscription struct {
	on   *session // the subscribed session; nil means none yet
	stop func()   // ends it in a modern session
}

func (s *subscriptions) subscribe(ctx context.Context, sess *session, uri string) error {
	sub := subscription{on: sess}
	switch {
	case !sess.offers("resources"):
		return &NotOfferedError{Server: s.requests.opts.Server.Name, What: "resources"}
	case sess.wire.Modern():
		sub.stop = sess.wire.Listen(ctx, mcp.NotificationSubscriptions{ResourceSubscriptions: []string{uri}})
	default:
		if err := s.control(ctx, sess, "resources/subscribe", uri); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wanted := s.resources[uri]; wanted {
		s.resources[uri] = sub
	} else if sub.stop != nil {
		sub.stop()
	}
	return nil
}

// control sends a request about the subscription of a legacy session.
func (s *subscriptions) control(ctx context.Context, sess *session, method, uri string) error {
	raw, err := s.requests.doOn(ctx, sess,
		&request{method: method, asked: ask.NewRequest(ctx, method), params: map[string]string{"uri": uri}})
	return s.requests.answerError(ctx, sess, method, raw, err)
}

// Unsubscribe ends a subscription made by [Source.Subscribe]. It does not start
// the server.
func (s *subscriptions) Unsubscribe(ctx context.Context, uri string) error {
	s.mu.Lock()
	sub := s.resources[uri]
	delete(s.resources, uri)
	s.mu.Unlock()
	switch {
	case sub.stop != nil:
		sub.stop()
	case sub.on != nil && sub.on.wire.Alive():
		return s.control(caller.With(ctx, nil), sub.on, "resources/unsubscribe", uri)
	}
	return nil
}

// any reports whether there are subscriptions to resources.
func (s *subscriptions) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.resources) > 0
}

// subscribeWithin limits how long a server may take to renew all subscriptions.
const subscribeWithin = 5 * time.Second

// opened subscribes a new shared session to the resources of an earlier one and, if it is modern,
// to the changes that legacy servers report without a subscription.
func (s *subscriptions) opened(ctx context.Context, sess *session) {
	s.mu.Lock()
	followed := s.changed != nil
	uris := slices.Sorted(maps.Keys(s.resources))
	s.mu.Unlock()
	if followed && sess.kept == nil { // the process that keeps a server passes them on
		sess.wire.ListenToLists(caller.With(ctx, nil))
	}
	ctx, stop := context.WithTimeout(ctx, subscribeWithin)
	defer stop()
	for _, uri := range uris {
		if err := s.subscribe(ctx, sess, uri); err != nil {
			s.requests.opts.log().Debug("not subscribed again", "uri", uri, "error", err)
		}
	}
}
