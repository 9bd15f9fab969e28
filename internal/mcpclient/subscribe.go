package mcpclient

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// Subscribe subscribes to changes of a resource, for which changed is called.
// For a server of revision 2026-07-28, whose subscriptions are streams, the
// error is a *NotOfferedError. Other errors are those of ReadResource.
func (s *Source) Subscribe(ctx context.Context, uri string, changed func(uri string)) error {
	sess, err := s.liveSession(ctx)
	if err != nil {
		return err
	}
	if sess.modern() {
		return &NotOfferedError{Server: s.opts.Server.Name, What: "subscriptions"}
	}
	s.mu.Lock()
	s.changed = changed
	s.mu.Unlock()
	request := newRequest(ctx, "resource "+text.Quote(uri), nil, func(ctx context.Context, sess *session, _ string) error {
		return sess.client.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	})
	_, err = s.fetch(ctx, request, "resources", "resources/subscribe")
	return err
}

// resourceUpdated passes on a change of a resource.
func (s *Source) resourceUpdated(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed(req.Params.URI)
	}
}
