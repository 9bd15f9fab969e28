package mcpclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// lister requests the lists of a server.
type lister struct {
	opts  *Options
	pool  *pool
	fresh atomic.Bool // lists that a keeper remembers are not enough
}

// listing is the content of all pages of a list.
type listing struct {
	items []json.RawMessage
	cut   string // why the list is incomplete, "" if it is complete
	loop  bool   // the server repeated a cursor

	definitions []*definition   // of tools, complete after reading.Wait
	reading     *sync.WaitGroup // nil means they have not been read
}

func listMethod(key string) string {
	if key == listTemplates {
		return "resources/templates/list"
	}
	return key + "/list"
}

// listAll requests all pages of a list. A server that does not know the method has
// an empty list. The error is a *ServerError.
func (ls *lister) listAll(ctx context.Context, sess *session, key string) (listing, error) {
	l, err := ls.listPages(ctx, sess, key)
	if err == nil {
		return l, nil
	}
	l.reading.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if login, ok := errors.AsType[*wire.LoginError](err); ok {
		return l, ls.opts.loginError(login)
	}
	return l, ls.opts.errorf(listMethod(key), err, sess.failure(err))
}

// relist is list, but starts over in a new session if the server has forgotten this one, as the
// protocol requires. It returns the session used last.
func (ls *lister) relist(ctx context.Context, sess *session, key string) (listing, *session, error) {
	l, err := ls.listAll(ctx, sess, key)
	if _, lost := errors.AsType[*wire.SessionLostError](err); !lost {
		return l, sess, err
	}
	sess.forgotten()
	next, err := ls.pool.get(ctx)
	if err != nil {
		return l, sess, err
	}
	l, err = ls.listAll(ctx, next, key)
	return l, next, err
}

func (ls *lister) listPages(ctx context.Context, sess *session, key string) (listing, error) {
	l := listing{reading: &sync.WaitGroup{}}
	limits := ls.opts.Limits
	seen := map[string]bool{}
	var cursor json.RawMessage // nil means the first page
	for range limits.Pages {
		request := &wire.Request{Method: listMethod(key)}
		if cursor != nil {
			request.Params = json.RawMessage(`{"cursor":` + string(cursor) + `}`) // some servers use numbers
		}
		if sess.kept != nil && ls.fresh.Load() {
			request.Meta = map[string]json.RawMessage{keep.FreshMeta: json.RawMessage("true")}
		}
		raw, err := sess.wire.Do(ctx, request)
		var refused *jsonrpc.Error
		if cursor == nil && errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound {
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
			ls.opts.readDefinitions(&l, items) // while the server makes the next page
		}
		switch {
		case len(l.items) > limits.Tools:
			l.items = l.items[:limits.Tools]
			l.cut = fmt.Sprintf("it lists more than the limit of %d (limits.tools); the rest is left out", limits.Tools)
			return l, nil
		case next == nil, string(next) == `""` && !sess.wire.Modern(): // which is none for many older servers
			return l, nil
		case string(next) == `""` && seen[`""`] && slices.EqualFunc(items, l.items[:len(items)],
			func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }): // as it is for some newer ones
			l.items = l.items[len(items):]
			return l, nil
		case seen[string(next)]:
			l.loop, l.cut = true, "it repeated the cursor "+text.Escape(string(next))+", so the listing was stopped"
			return l, nil
		}
		seen[string(next)] = true
		cursor = next
	}
	l.cut = fmt.Sprintf("it has more than the limit of %d pages (limits.pages); the rest is left out", limits.Pages)
	return l, nil
}

// readPage reads a page of a list. next is the cursor of the next page, nil if there is none.
func readPage(raw json.RawMessage, key string, limit wire.Limit) (items []json.RawMessage, next json.RawMessage, err error) {
	if int64(len(raw)) > limit.Bytes {
		return nil, nil, limit.Exceeded("message")
	}
	var list json.RawMessage
	for name, value := range jsonx.Members(raw) {
		switch name {
		case key:
			list = value
		case "nextCursor":
			next = value
		}
	}
	items, ok := content.List(list)
	if !ok {
		return nil, nil, fmt.Errorf("its answer has no list %q", key)
	}
	if jsonx.IsNull(next) {
		next = nil
	}
	return items, next, nil
}

// Filter returns the filter that applies the includeTools and excludeTools
// settings of a server: exact names as the server lists them, "name(...)" or
// globs. Exclusions take precedence.
func Filter(s settings.Server) registry.Filter {
	setting := s.Origin.String()
	if len(s.IncludeTools.Entries) > 0 {
		setting = s.IncludeTools.Entries[0].Origin.String()
	}
	filter := registry.ServerToolsFilter(s.Name, s.IncludeTools.Set,
		s.IncludeTools.Sourced(), s.ExcludeTools.Sourced(), setting)
	if s.Program == nil {
		return filter
	}
	return func(t *registry.Tool) *registry.Hidden {
		hidden := filter(t)
		if hidden != nil { // the program calls its setting otherwise
			hidden.Reason = "switched off in the settings of " + s.Program.Title
		}
		return hidden
	}
}

// known returns the tools that the server listed earlier in a session that this run continues, for
// runs that call a tool.
func (ls *lister) known(sess *session) (listing, bool) {
	if sess.record == nil || sess.record.Tools == nil || ls.opts.Keep.Lists || ls.fresh.Load() {
		return listing{}, false
	}
	return listing{items: sess.record.Tools, cut: sess.record.Cut}, true
}

// listed stores the tools that the server listed, with the session.
func (r *httpRecord) listed(ctx context.Context, l listing) {
	if r != nil {
		r.Tools, r.Cut = append([]json.RawMessage{}, l.items...), l.cut
		r.save(ctx, true)
	}
}

// Limits on what is stored for completion. The rest is omitted.
const (
	maxOffers           = 500
	maxOfferName        = 1024 // bytes
	maxOfferDescription = 120  // characters
	maxOfferArguments   = 30
)

// storeOffers stores the prompts or the resources that the server has just listed.
func (ls *lister) storeOffers(ctx context.Context, kind string, items []json.RawMessage) {
	if kind == listTemplates {
		return
	}
	offers := []Offer{}
	for _, raw := range items[:min(len(items), maxOffers)] {
		var item struct {
			Offer
			URI   string `json:"uri"`
			Title string `json:"title"`
		}
		if json.Unmarshal(raw, &item) != nil {
			continue
		}
		o := Offer{Name: item.Name, Description: clipOffer(cmp.Or(item.Description, item.Title))}
		if kind == OfferResources {
			o.Name, o.Description = item.URI, cmp.Or(o.Description, clipOffer(item.Name))
		}
		for _, a := range item.Arguments[:min(len(item.Arguments), maxOfferArguments)] {
			if len(a.Name) <= maxOfferName {
				o.Arguments = append(o.Arguments, PromptArgument{Name: a.Name,
					Description: clipOffer(cmp.Or(a.Description, a.Title)), Required: a.Required})
			}
		}
		if o.Name != "" && len(o.Name) <= maxOfferName {
			offers = append(offers, o)
		}
	}
	ls.opts.Memory.Save(ctx, Known{Offers: map[string][]Offer{kind: offers}})
}

func clipOffer(description string) string {
	return text.ClipRunes(text.FirstSentence(description), maxOfferDescription)
}
