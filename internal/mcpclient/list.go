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
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// listing is the content of all pages of a list.
type listing struct {
	items []json.RawMessage
	cut   string // why the list is incomplete, "" if it is complete
	loop  bool   // the server repeated a cursor

	pages []*reading          // of tools
	last  *transport.Exchange // of the last request
}

// The lists of a server, each named by the key of its items in a result.
const (
	listTools     = "tools"
	listPrompts   = "prompts"
	listResources = "resources"
	listTemplates = "resourceTemplates"
)

// listMethod returns the method that requests a list.
func listMethod(key string) string {
	if key == listTemplates {
		return "resources/templates/list"
	}
	return key + "/list"
}

// askPage requests one page of a list. The answer comes through the exchange.
func askPage(ctx context.Context, c *mcp.ClientSession, key, cursor string) (err error) {
	switch key {
	case listTools:
		_, err = c.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	case listPrompts:
		_, err = c.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
	case listResources:
		_, err = c.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
	case listTemplates:
		_, err = c.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
	}
	return err
}

// list requests all pages of a list. A server that does not know the method has
// an empty list. The error is a *ServerError.
func (s *Source) list(ctx context.Context, sess *session, key string) (listing, error) {
	l, err := s.listPages(ctx, sess, key)
	if err == nil {
		return l, nil
	}
	for _, page := range l.pages {
		page.Wait()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if login := l.last.LoginFailure(); login != nil {
		return l, s.loginError(login)
	}
	return l, s.errorf(listMethod(key), err, sess.failure(l.last, err))
}

// relist is list, but starts again in a new session if the server has forgotten
// this one, as the protocol requires. It returns the session used last.
func (s *Source) relist(ctx context.Context, sess *session, key string) (listing, *session, error) {
	l, err := s.list(ctx, sess, key)
	if !errors.Is(err, mcp.ErrSessionMissing) {
		return l, sess, err
	}
	sess.end()
	next, err := s.session(ctx)
	if err != nil {
		return l, sess, err
	}
	l, err = s.list(ctx, next, key)
	return l, next, err
}

func (s *Source) listPages(ctx context.Context, sess *session, key string) (listing, error) {
	var l listing
	limits := s.opts.Limits
	seen := map[string]bool{"": true}
	cursor := ""
	for range limits.Pages {
		l.last = transport.NewExchange(nil, nil)
		raw, err := l.last.Outcome(askPage(l.last.Context(ctx), sess.client, key, cursor))
		var refused *jsonrpc.Error
		if errors.As(err, &refused) && l.last.AwaitInitialized(ctx) {
			l.last = transport.NewExchange(nil, nil)
			raw, err = l.last.Outcome(askPage(l.last.Context(ctx), sess.client, key, cursor))
		}
		if cursor == "" && errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
			return l, nil
		}
		if err != nil {
			return l, err
		}
		items, next, err := readPage(raw, key, limits.frame())
		if err != nil {
			return l, err
		}
		l.items = append(l.items, items...)
		if key == listTools {
			l.pages = append(l.pages, s.read(items)) // while the server makes the next page
		}
		switch {
		case len(l.items) > limits.Tools:
			l.items = l.items[:limits.Tools]
			l.cut = fmt.Sprintf("it lists more than the limit of %d (limits.tools); the rest is left out", limits.Tools)
			return l, nil
		case next == "":
			return l, nil
		case seen[next]:
			l.loop, l.cut = true, fmt.Sprintf("it repeated the cursor %s, so the listing was stopped", text.Quote(next))
			return l, nil
		}
		seen[next] = true
		cursor = next
	}
	l.cut = fmt.Sprintf("it has more than the limit of %d pages (limits.pages); the rest is left out", limits.Pages)
	return l, nil
}

func readPage(raw json.RawMessage, key string, limit transport.Limit) (items []json.RawMessage, next string, err error) {
	if int64(len(raw)) > limit.Bytes {
		return nil, "", limit.Exceeded("message")
	}
	items, ok := jsonx.Elements(jsonx.Get(raw, key))
	if !ok {
		return nil, "", fmt.Errorf("its answer has no list %q", key)
	}
	cursor := jsonx.Get(raw, "nextCursor")
	if jsonx.IsNull(cursor) {
		return items, "", nil
	}
	next, ok = jsonx.Text(cursor)
	if !ok {
		return nil, "", errors.New("its nextCursor is not a string")
	}
	return items, next, nil
}

// discover lists the server's tools and, if requested, counts its prompts and
// resources. It returns the session used last.
func (s *Source) discover(ctx context.Context, sess *session) (*session, []registry.Tool, []registry.Diagnostic, error) {
	caps := sess.client.InitializeResult().Capabilities
	if caps == nil {
		caps = &mcp.ServerCapabilities{}
	}
	var l listing
	if caps.Tools != nil {
		var err error
		if l, sess, err = s.relist(ctx, sess, listTools); err != nil {
			return sess, nil, nil, err
		}
		s.mu.Lock()
		s.paramHeaders = slices.ContainsFunc(l.items, transport.HasParamHeaders)
		s.mu.Unlock()
	}
	tools, diags := s.tools(l, sess.hasParamHeaders())
	counted := s.opts.Counts
	if counted {
		var failed []registry.Diagnostic
		sess, failed = s.countOthers(ctx, sess, caps)
		counted = len(failed) == 0
		diags = append(diags, failed...)
	}
	s.storeListing(ctx, l, tools, counted)
	return sess, tools, diags, nil
}

func (s *Source) countOthers(ctx context.Context, sess *session, caps *mcp.ServerCapabilities) (*session, []registry.Diagnostic) {
	var diags []registry.Diagnostic
	count := func(offered bool, key string) int {
		if !offered {
			return 0
		}
		l, last, err := s.relist(ctx, sess, key)
		sess = last
		if err != nil {
			diags = append(diags, s.diagnose(registry.SeverityWarning, "count_failed", "", err.Error(), ""))
		} else {
			s.storeOffers(ctx, key, l.items)
		}
		return len(l.items)
	}
	prompts, resources := count(caps.Prompts != nil, listPrompts), count(caps.Resources != nil, listResources)
	s.update(func(i *Info) { i.Prompts, i.Resources = prompts, resources })
	return sess, diags
}

func (s *Source) diagnose(severity registry.Severity, code, tool, message, hint string) registry.Diagnostic {
	return registry.Diagnostic{Severity: severity, Code: code, Source: s.Name(), Tool: tool, Message: message, Hint: hint}
}

// Filter returns the filter that applies includeTools and excludeTools of a
// server: exact names as the server has them, "name(...)" or globs; exclusions
// win.
func Filter(s settings.Server) registry.Filter {
	setting := s.Origin.String()
	if len(s.IncludeTools.Entries) > 0 {
		setting = s.IncludeTools.Entries[0].Origin.String()
	}
	return registry.ServerToolsFilter(s.Name, s.IncludeTools.Set, s.IncludeTools.Sourced(), s.ExcludeTools.Sourced(), setting)
}
