package mcpclient

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// Complete connects to the server and requests completions for an argument of a
// prompt or of a template (completion/complete). Errors are those of
// ReadResource.
func (s *Source) Complete(ctx context.Context, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	sent := *params
	sent.Meta = nil // it belongs to the client's request
	request := &request{method: "completion/complete", asked: ask.NewRequest(ctx, "completion"), params: &sent}
	raw, err := s.requests.fetch(ctx, request, "completions")
	if err != nil {
		return nil, err
	}
	var result mcp.CompleteResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, s.opts.malformed(request.method, "its answer is malformed: "+err.Error())
	}
	return &result, nil
}

// Change is a change reported by a server.
type Change = wire.Change

// Follow makes the shared process of the server call changed for every change that it
// reports: of its lists, and of the resources passed to [Source.Subscribe]. A
// restarted server may have other tools, so a restart is reported as a change too.
// changed is called from any goroutine and must return at once. Call Follow before
// Discover.
func (s *Source) Follow(changed func(Change)) { s.subscriptions.follow(changed) }

// Subscribe asks the shared process of the server to report changes of a resource until
// [Source.Unsubscribe] is called; a process that is started later is asked too. Errors
// are those of ReadResource.
func (s *Source) Subscribe(ctx context.Context, uri string) error {
	return s.subscriptions.add(ctx, uri)
}

// Unsubscribe ends a subscription made by [Source.Subscribe]. It does not start
// the server.
func (s *Source) Unsubscribe(ctx context.Context, uri string) error {
	return s.subscriptions.remove(ctx, uri)
}

// subscriptions are the changes that the shared session of a server has to
// report.
type subscriptions struct {
	requests *requester

	mu        sync.Mutex
	changed   func(Change)            // nil: changes are not followed
	resources map[string]subscription // by URI
}

// follow is [Source.Follow].
func (s *subscriptions) follow(changed func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

// report passes on a change.
func (s *subscriptions) report(c Change) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed(c)
	}
}

// add is [Source.Subscribe].
func (s *subscriptions) add(ctx context.Context, uri string) error {
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
		s.resources[uri] = subscription{} // a process that is started meanwhile is asked as well
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
	on   *session // the subscribed session; nil: none yet
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
	raw, err := s.requests.doOn(ctx, sess, &request{method: method, asked: ask.NewRequest(ctx, method), params: map[string]string{"uri": uri}})
	return s.requests.answerError(ctx, sess, method, raw, err)
}

// remove is [Source.Unsubscribe].
func (s *subscriptions) remove(ctx context.Context, uri string) error {
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

// opened subscribes a new shared session to what an earlier one was subscribed to and, if
// the new one is modern, to the changes that legacy servers report without a subscription.
func (s *subscriptions) opened(ctx context.Context, sess *session) {
	s.mu.Lock()
	followed := s.changed != nil
	uris := slices.Sorted(maps.Keys(s.resources))
	s.mu.Unlock()
	caps := sess.wire.Server().Capabilities
	wanted := mcp.NotificationSubscriptions{
		ToolsListChanged:     caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: caps.Resources != nil && caps.Resources.ListChanged,
	}
	if followed && sess.wire.Modern() && (wanted.ToolsListChanged || wanted.PromptsListChanged || wanted.ResourcesListChanged) {
		sess.wire.Listen(caller.With(ctx, nil), wanted)
	}
	ctx, stop := context.WithTimeout(ctx, subscribeWithin)
	defer stop()
	for _, uri := range uris {
		if err := s.subscribe(ctx, sess, uri); err != nil {
			s.requests.opts.log().Debug("not subscribed again", "uri", uri, "error", err)
		}
	}
}
