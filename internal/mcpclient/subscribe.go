package mcpclient

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
)

// Complete connects to the server and makes it complete an argument of a prompt
// or of a template (completion/complete). Errors are those of ReadResource.
func (s *Source) Complete(ctx context.Context, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	var result *mcp.CompleteResult
	request := newRequest(ctx, "completion", nil, func(ctx context.Context, sess *session, _ string) error {
		var err error
		result, err = sess.client.Complete(ctx, params)
		return err
	})
	_, err := s.fetch(ctx, request, "completions", "completion/complete")
	return result, err
}

// Change is something that a server says has changed.
type Change = transport.Change

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
	on, before := s.subscribed[uri]
	if s.subscribed == nil {
		s.subscribed = map[string]*session{}
	}
	if !before {
		s.subscribed[uri] = nil // a process that is started meanwhile is asked as well
	}
	s.mu.Unlock()
	if on == sess {
		return nil
	}
	if err := s.subscribe(ctx, sess, uri); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !before && s.subscribed[uri] == nil {
			delete(s.subscribed, uri)
		}
		return err
	}
	return nil
}

func (s *Source) subscribe(ctx context.Context, sess *session, uri string) error {
	err := s.control(ctx, sess, "resources/subscribe", func(ctx context.Context) error {
		return sess.client.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wanted := s.subscribed[uri]; wanted {
		s.subscribed[uri] = sess
	}
	return nil
}

// control makes a request about subscriptions. The SDK's client opens and ends a stream
// for it if the server is modern.
func (s *Source) control(ctx context.Context, sess *session, method string, send func(context.Context) error) error {
	if !sess.offers("resources") {
		return &NotOfferedError{Server: s.opts.Server.Name, What: "resources"}
	}
	if sess.modern() {
		if err := send(ctx); err != nil {
			return s.errorf("subscriptions/listen", err, sess.failure(nil, err))
		}
		return nil
	}
	request := newRequest(ctx, method, nil, func(ctx context.Context, _ *session, _ string) error { return send(ctx) })
	raw, err := s.doOn(ctx, sess, request)
	return s.answerError(ctx, sess, request.exchange, method, raw, err)
}

// Unsubscribe ends what [Source.Subscribe] began. It starts no server.
func (s *Source) Unsubscribe(ctx context.Context, uri string) error {
	s.mu.Lock()
	sess := s.subscribed[uri]
	delete(s.subscribed, uri)
	s.mu.Unlock()
	if sess == nil || !sess.conn.Alive() {
		return nil
	}
	return s.control(caller.With(ctx, nil), sess, "resources/unsubscribe", func(ctx context.Context) error {
		return sess.client.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
	})
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
	result := sess.client.InitializeResult()
	caps := result.Capabilities
	if !followed || !sess.modern() || caps == nil {
		return
	}
	wanted := mcp.NotificationSubscriptions{
		ToolsListChanged:     caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: caps.Resources != nil && caps.Resources.ListChanged,
	}
	params, err := json.Marshal(&mcp.SubscriptionsListenParams{Notifications: &wanted, Meta: mcp.Meta{
		mcp.MetaKeyProtocolVersion: result.ProtocolVersion, mcp.MetaKeyClientInfo: s.implementation(), mcp.MetaKeyClientCapabilities: s.asker.Capabilities()}})
	if err == nil && (wanted.ToolsListChanged || wanted.PromptsListChanged || wanted.ResourcesListChanged) {
		sess.conn.ListenForChanges(caller.With(context.WithoutCancel(ctx), nil), result.ProtocolVersion, params)
	}
}
