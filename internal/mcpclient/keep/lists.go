package keep

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// lists are the pages of lists that the server has sent, as it sent them.
type lists struct {
	mu      sync.Mutex
	pages   map[string]page // by method and params
	changes int             // how often a list has changed
}

type page struct {
	result  json.RawMessage
	expires time.Time // zero: when the list changes
	old     bool      // it was out of date when it came (ttlMs 0)
}

// get returns a page that is up to date, or the last one if any will do.
func (l *lists) get(key string, any bool) (result json.RawMessage, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.pages[key]
	switch {
	case !ok:
		return nil, false
	case p.old:
		if !any {
			return nil, false
		}
		return p.result, false
	case !p.expires.IsZero() && time.Now().After(p.expires):
		return nil, false
	}
	return p.result, true
}

// put keeps a page, unless a list has changed since it was asked for.
func (l *lists) put(key string, result json.RawMessage, changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if changes != l.changes {
		return
	}
	if l.pages == nil {
		l.pages = map[string]page{}
	}
	if method, params, _ := strings.Cut(key, " "); !strings.Contains(params, `"cursor"`) {
		for other := range l.pages { // the later pages are those of the earlier list
			if strings.HasPrefix(other, method+" ") {
				delete(l.pages, other)
			}
		}
	}
	p := page{result: result}
	if ttl := jsonx.Get(result, "ttlMs"); ttl != nil {
		ms, err := strconv.ParseFloat(string(ttl), 64)
		p.old = err != nil || ms <= 0
		p.expires = time.Now().Add(time.Duration(min(ms, 1e9)) * time.Millisecond)
	}
	l.pages[key] = p
}

// forget drops the pages of lists whose methods begin with a prefix.
func (l *lists) forget(prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
	for key := range l.pages {
		if strings.HasPrefix(key, prefix) {
			delete(l.pages, key)
		}
	}
}

func (l *lists) changed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// list returns a page of a list. If it is out of date as soon as it comes, a run that
// calls a tool gets the last one, and the server is asked beside the call.
func (c *client) list(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	key := r.Method + " " + string(r.Params)
	_, fresh := r.Meta[FreshMeta]
	delete(r.Meta, FreshMeta)
	if !fresh {
		result, current := c.k.lists.get(key, !c.Lists)
		if result != nil && !current {
			c.k.clients.Go(func() { _, _ = c.requestPage(context.WithoutCancel(ctx), key, r) })
		}
		if result != nil {
			return result, nil
		}
	}
	return c.requestPage(ctx, key, r)
}

// requestPage asks the server for a page and keeps it.
func (c *client) requestPage(ctx context.Context, key string, r *wire.Request) (json.RawMessage, error) {
	l := &c.k.lists
	changes := l.changed()
	result, err := c.k.session.Do(ctx, r)
	if err == nil {
		l.put(key, result, changes)
	}
	return result, err
}
