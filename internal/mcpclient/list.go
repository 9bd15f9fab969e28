package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// listing is what all pages of a list gave.
type listing struct {
	items []json.RawMessage
	cut   string // why it was not listed to its end, "" if it was
	loop  bool   // the server repeated a cursor
}

// pager asks for one page of a list. The answer comes through the exchange.
type pager func(ctx context.Context, cursor string) error

func toolPages(c *mcp.ClientSession) pager {
	return func(ctx context.Context, cursor string) error {
		_, err := c.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		return err
	}
}

func promptPages(c *mcp.ClientSession) pager {
	return func(ctx context.Context, cursor string) error {
		_, err := c.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		return err
	}
}

func resourcePages(c *mcp.ClientSession) pager {
	return func(ctx context.Context, cursor string) error {
		_, err := c.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		return err
	}
}

// list asks for all pages of a list whose items are under key. A server that
// does not know the method has none.
func (s *Source) list(ctx context.Context, page pager, key string) (listing, error) {
	var l listing
	limits := s.opts.Limits
	seen := map[string]bool{"": true}
	cursor := ""
	for range limits.Pages {
		x := transport.NewExchange(nil, nil)
		err := page(x.Context(ctx), cursor)
		var refused *jsonrpc.Error
		if cursor == "" && errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
			return l, nil
		}
		if err != nil {
			return l, err
		}
		items, next, err := readPage(x.Result(), key, limits.frame())
		if err != nil {
			return l, err
		}
		l.items = append(l.items, items...)
		switch {
		case len(l.items) > limits.Tools:
			l.items = l.items[:limits.Tools]
			l.cut = fmt.Sprintf("it lists more than %d, which is the limit (limits.tools); the rest is left out", limits.Tools)
			return l, nil
		case next == "":
			return l, nil
		case seen[next]:
			l.loop, l.cut = true, fmt.Sprintf("it repeats the cursor %s; listing was ended", text.Quote(next))
			return l, nil
		}
		seen[next] = true
		cursor = next
	}
	l.cut = fmt.Sprintf("it has more than %d pages, which is the limit (limits.pages); the rest is left out", limits.Pages)
	return l, nil
}

func readPage(raw json.RawMessage, key string, limit transport.Limit) (items []json.RawMessage, next string, err error) {
	if int64(len(raw)) > limit.Bytes {
		return nil, "", limit.Exceeded("message")
	}
	items, ok := jsonx.Elements(jsonx.Get(raw, key))
	if !ok {
		return nil, "", fmt.Errorf("its answer holds no list %q", key)
	}
	cursor := jsonx.Get(raw, "nextCursor")
	if jsonx.IsNull(cursor) {
		return items, "", nil
	}
	next, ok = jsonx.Text(cursor)
	if !ok {
		return nil, "", errors.New("its nextCursor is no string")
	}
	return items, next, nil
}

// listTools lists the server's tools and counts the rest if asked to.
func (s *Source) listTools(ctx context.Context, sess *session) ([]registry.Tool, []registry.Diagnostic, error) {
	caps := sess.client.InitializeResult().Capabilities
	if caps == nil {
		caps = &mcp.ServerCapabilities{}
	}
	var l listing
	if caps.Tools != nil {
		var err error
		if l, err = s.list(ctx, toolPages(sess.client), "tools"); err != nil {
			return nil, nil, s.listError(ctx, sess, "tools/list", err)
		}
		s.mu.Lock()
		s.paramHeaders = slices.ContainsFunc(l.items, transport.HasParamHeaders)
		s.mu.Unlock()
	}
	tools, diags := s.tools(l, sess.hasParamHeaders())
	counted := s.opts.Counts
	if counted {
		failed := s.countOthers(ctx, sess, caps)
		counted = len(failed) == 0
		diags = append(diags, failed...)
	}
	s.storeListing(ctx, l, tools, counted)
	return tools, diags, nil
}

func (s *Source) countOthers(ctx context.Context, sess *session, caps *mcp.ServerCapabilities) []registry.Diagnostic {
	var diags []registry.Diagnostic
	count := func(page pager, key string) int {
		l, err := s.list(ctx, page, key)
		if err != nil {
			diags = append(diags, s.diagnose(registry.SeverityWarning, "count_failed", "",
				s.listError(ctx, sess, key+"/list", err).Error(), ""))
		}
		return len(l.items)
	}
	var prompts, resources int
	if caps.Prompts != nil {
		prompts = count(promptPages(sess.client), "prompts")
	}
	if caps.Resources != nil {
		resources = count(resourcePages(sess.client), "resources")
	}
	s.update(func(i *Info) { i.Prompts, i.Resources = prompts, resources })
	return diags
}

func (s *Source) listError(ctx context.Context, sess *session, phase string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if login := sess.http.LoginFailure(); login != nil {
		return s.loginError(login)
	}
	return s.errorf(phase, err, sess.failure(err))
}

func (s *Source) diagnose(severity registry.Severity, code, tool, message, hint string) registry.Diagnostic {
	return registry.Diagnostic{Severity: severity, Code: code, Source: s.Name(), Tool: tool, Message: message, Hint: hint}
}
