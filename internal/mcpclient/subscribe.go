package mcpclient

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
	"github.com/toolreg/toolreg/internal/text"
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

// Subscribe asks the server to report changes of a resource, until Close. Errors are
// those of ReadResource.
func (s *Source) Subscribe(ctx context.Context, uri string) error {
	sess, err := s.liveSession(ctx)
	if err != nil {
		return err
	}
	if err := s.subscribe(ctx, sess, uri); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscribed == nil {
		s.subscribed = map[string]bool{}
	}
	s.subscribed[uri] = true
	return nil
}

func (s *Source) subscribe(ctx context.Context, sess *session, uri string) error {
	if sess.modern() { // the answer is a stream
		if err := sess.client.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
			return s.errorf("subscriptions/listen", err, sess.failure(err))
		}
		return nil
	}
	request := newRequest(ctx, "resource "+text.Quote(uri), nil, func(ctx context.Context, sess *session, _ string) error {
		return sess.client.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	})
	_, err := s.fetch(ctx, request, "resources", "resources/subscribe")
	return err
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

// restarted renews what a lost session of the shared process had.
func (s *Source) restarted(ctx context.Context, sess *session) {
	s.mu.Lock()
	uris := slices.Collect(maps.Keys(s.subscribed))
	s.mu.Unlock()
	for _, uri := range uris {
		if err := s.subscribe(ctx, sess, uri); err != nil {
			s.log().Debug("not subscribed again", "uri", uri, "error", err)
		}
	}
	s.report(Change{List: listTools})
}
