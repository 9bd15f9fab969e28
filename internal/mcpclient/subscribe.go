package mcpclient

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// Complete connects to the server and makes it complete an argument of a prompt
// or of a template (completion/complete). Errors are those of ReadResource.
func (s *Source) Complete(ctx context.Context, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	sent := *params
	sent.Meta = nil // of whoever asks us
	request := &request{method: "completion/complete", asked: ask.NewRequest(ctx, "completion"), params: &sent}
	raw, err := s.fetch(ctx, request, "completions")
	if err != nil {
		return nil, err
	}
	var result mcp.CompleteResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, s.malformed(request.method, "its answer is malformed: "+err.Error())
	}
	return &result, nil
}

// Change is something that a server says has changed.
type Change = wire.Change

// Follow has changed called for every change that the shared process of the server
// reports: of its lists, and of the resources that [Source.Subscribe] names. A server
// that was started again may have other tools, which counts as a change too. changed
// is called from any goroutine and must return at once. Call Follow before Discover.
func (s *Source) Follow(changed func(Change)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

// report passes on a change.
func (s *Source) report(c Change) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed(c)
	}
}

// Subscribe asks the shared process of the server to report changes of a resource, until
// [Source.Unsubscribe]; a process that is started later is asked too. Errors are those of
// ReadResource.
func (s *Source) Subscribe(ctx context.Context, uri string) error {
	ctx = caller.With(ctx, nil)
	sess, err := s.liveSession(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	sub, before := s.subscribed[uri]
	if s.subscribed == nil {
		s.subscribed = map[string]subscription{}
	}
	if !before {
		s.subscribed[uri] = subscription{} // a process that is started meanwhile is asked as well
	}
	s.mu.Unlock()
	if sub.on == sess {
		return nil
	}
	if err := s.subscribe(ctx, sess, uri); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !before && s.subscribed[uri].on == nil {
			delete(s.subscribed, uri)
		}
		return err
	}
	return nil
}

// subscription is what a session was asked to report of one resource.
type subscription struct {
	on   *session // that was asked; nil: none yet
	stop func()   // ends it in a modern session
}

func (s *Source) subscribe(ctx context.Context, sess *session, uri string) error {
	sub := subscription{on: sess}
	switch {
	case !sess.offers("resources"):
		return &NotOfferedError{Server: s.opts.Server.Name, What: "resources"}
	case sess.wire.Modern():
		sub.stop = sess.wire.Listen(ctx, mcp.NotificationSubscriptions{ResourceSubscriptions: []string{uri}})
	default:
		if err := s.control(ctx, sess, "resources/subscribe", uri); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wanted := s.subscribed[uri]; wanted {
		s.subscribed[uri] = sub
	} else if sub.stop != nil {
		sub.stop()
	}
	return nil
}

// control makes a request about the subscription of a legacy session.
func (s *Source) control(ctx context.Context, sess *session, method, uri string) error {
	raw, err := s.doOn(ctx, sess, &request{method: method, asked: ask.NewRequest(ctx, method), params: map[string]string{"uri": uri}})
	return s.answerError(ctx, sess, method, raw, err)
}

// Unsubscribe ends what [Source.Subscribe] began. It starts no server.
func (s *Source) Unsubscribe(ctx context.Context, uri string) error {
	s.mu.Lock()
	sub := s.subscribed[uri]
	delete(s.subscribed, uri)
	s.mu.Unlock()
	switch {
	case sub.stop != nil:
		sub.stop()
	case sub.on != nil && sub.on.wire.Alive():
		return s.control(caller.With(ctx, nil), sub.on, "resources/unsubscribe", uri)
	}
	return nil
}

// subscribeWithin limits how long a server may take to renew all subscriptions.
const subscribeWithin = 5 * time.Second

// subscribeAgain renews in a new shared process what an earlier one was asked to report.
func (s *Source) subscribeAgain(ctx context.Context, sess *session) {
	s.mu.Lock()
	uris := slices.Sorted(maps.Keys(s.subscribed))
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, subscribeWithin)
	defer stop()
	for _, uri := range uris {
		if err := s.subscribe(ctx, sess, uri); err != nil {
			s.log().Debug("not subscribed again", "uri", uri, "error", err)
		}
	}
}

// listenForChanges asks a modern server for what legacy ones report unasked.
func (s *Source) listenForChanges(ctx context.Context, sess *session) {
	s.mu.Lock()
	followed := s.changed != nil
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
}
