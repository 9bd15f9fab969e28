package keep

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// of returns the run that made a request; nil if it is unknown.
func of(during *ask.Request) *client {
	if who := during.Caller(); who != nil {
		c, _ := who.ID.(*client)
		return c
	}
	return nil
}

// only returns the attached run if there is just one, otherwise nil. k.mu is held.
func (k *Keeper) only() (only *client) {
	if len(k.attached) == 1 {
		for only = range k.attached {
		}
	}
	return only
}

// Answer answers a question of the server by the run whose request it is about. If that is
// unknown, the question is declined, except that about the roots, which all runs share.
func (k *Keeper) Answer(ctx context.Context, during *ask.Request, method string, params json.RawMessage) (json.RawMessage, error) {
	if c := of(during); c != nil {
		return c.ask(ctx, method, params)
	}
	return k.alone.Handle(ctx, during, method, params)
}

// declined tells the run that a question was declined, if there is just one.
func (k *Keeper) declined(_, what, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.only(); c != nil {
		c.offer(notification(methodDeclined, note{What: what, Reason: reason}))
	}
}

// Notified passes on a notification of the server: a log message to the run whose request
// it is about, others to all.
func (k *Keeper) Notified(during *ask.Request, method string, params json.RawMessage) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := rawNotification(method, params)
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		k.lists.forget(method[len("notifications/") : len(method)-len("list_changed")])
		k.broadcast(line)
	case "notifications/resources/updated", "notifications/elicitation/complete":
		k.broadcast(line)
	default:
		c := of(during)
		if during == nil {
			c = k.only()
		}
		if c != nil && (method != "notifications/message" || c.wants(params)) {
			c.offer(line)
		}
	}
	return true
}

// levels returns the levels of log messages, lowest first.
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// wants reports whether the run has asked for log messages of this level. Runs that have
// asked for none get what the server sends.
func (c *client) wants(params json.RawMessage) bool {
	level, _ := jsonx.Text(jsonx.Get(params, "level"))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level == "" || slices.Index(levels(), level) >= slices.Index(levels(), c.level)
}

// setLevel asks the server for log messages, unless it already sends those that the run
// wants.
func (c *client) setLevel(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	level, _ := jsonx.Text(jsonx.Get(r.Params, "level"))
	c.mu.Lock()
	c.level = level
	c.mu.Unlock()
	k := c.k
	k.mu.Lock()
	enough := k.level != "" && slices.Index(levels(), k.level) <= slices.Index(levels(), level)
	k.mu.Unlock()
	if enough {
		return json.RawMessage("{}"), nil
	}
	result, err := k.session.Do(ctx, r)
	if err == nil {
		k.mu.Lock()
		k.level = level
		k.mu.Unlock()
	}
	return result, err
}

// subscribe begins or ends a subscription to a resource. The server has one for all runs.
func (c *client) subscribe(ctx context.Context, r *wire.Request) (json.RawMessage, error) {
	uri, _ := jsonx.Text(jsonx.Get(r.Params, "uri"))
	on := r.Method == "resources/subscribe"
	c.mu.Lock()
	before := c.uris[uri]
	c.uris[uri] = on
	c.mu.Unlock()
	k := c.k
	k.mu.Lock()
	if on && !before {
		k.subscribed[uri]++
	} else if !on && before {
		k.subscribed[uri]--
	}
	others := k.subscribed[uri] > 0
	if !others {
		delete(k.subscribed, uri)
	}
	k.mu.Unlock()
	if !on && others {
		return json.RawMessage("{}"), nil
	}
	return k.session.Do(ctx, r)
}

// unsubscribe ends the subscriptions of a run that has gone.
func (c *client) unsubscribe(ctx context.Context) {
	c.mu.Lock()
	uris := maps.Clone(c.uris)
	c.mu.Unlock()
	for uri, on := range uris {
		if on && c.k.session.Alive() {
			_, _ = c.subscribe(ctx, &wire.Request{Method: "resources/unsubscribe", Params: json.RawMessage(`{"uri":` + jsonx.Quote(uri) + `}`)})
		}
	}
}
