package keep

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// clientOf returns the run that made a request; nil if it is unknown.
func clientOf(during *ask.Request) *client {
	if who := during.Caller(); who != nil {
		c, _ := who.ID.(*client)
		return c
	}
	return nil
}

// onlyClient returns the attached run if there is just one, otherwise nil. k.mu is held.
func (k *Keeper) onlyClient() (only *client) {
	if len(k.attached) == 1 {
		for only = range k.attached {
		}
	}
	return only
}

// Answer lets the run answer whose request a question of the server is about. If that is unknown,
// it declines, unless the question is about roots, which all runs share.
func (k *Keeper) Answer(ctx context.Context, during *ask.Request,
	method string, params json.RawMessage) (json.RawMessage, error) {
	if c := clientOf(during); c != nil {
		return c.ask(ctx, method, params)
	}
	return k.alone.Handle(ctx, during, method, params)
}

// declined tells the run that a question was declined, if there is just one.
func (k *Keeper) declined(_, what, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.onlyClient(); c != nil {
		c.offer(notification(methodDeclined, note{What: what, Reason: reason}))
	}
}

// Notified passes on a notification of the server: log messages to the run whose request they are
// about, others to all runs.
func (k *Keeper) Notified(during *ask.Request, method string, params json.RawMessage) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := rawNotification(method, params)
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed":
		k.lists.forget(method[len("notifications/") : len(method)-len("list_changed")])
		k.broadcast(line)
	case "notifications/resources/updated", "notifications/elicitation/complete":
		k.broadcast(line)
	default:
		c := clientOf(during)
		if during == nil {
			c = k.onlyClient()
		}
		if c != nil && (method != "notifications/message" || c.wants(params)) {
			c.offer(line)
		}
	}
	return true
}

// logLevels returns the levels of log messages, lowest first.
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// wants reports whether the run wants log messages of this level. A run that has requested no level
// gets all that the server sends.
func (c *client) wants(params json.RawMessage) bool {
	level, _ := jsonx.Text(jsonx.Get(params, "level"))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level == "" || slices.Index(logLevels(), level) >= slices.Index(logLevels(), c.level)
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
	enough := k.level != "" && slices.Index(logLevels(), k.level) <= slices.Index(logLevels(), level)
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

// subscribe begins or ends a subscription to a resource. At the server, all runs share one.
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
			_, _ = c.subscribe(ctx, &wire.Request{Method: "resources/unsubscribe",
				Params: json.RawMessage(`{"uri":` + jsonx.Quote(uri) + `}`)})
		}
	}
}

// The methods of messages between a run and its keeper. The first message of a run is attach or
// stop.
const (
	methodAttach = "toolreg/attach"
	methodStop   = "toolreg/stop"

	methodHere     = "toolreg/here"     // the first message of a keeper
	methodOpen     = "toolreg/open"     // the server can be used: an Opened
	methodFailed   = "toolreg/failed"   // it cannot: a Failure
	methodStderr   = "toolreg/stderr"   // what the server printed
	methodDeclined = "toolreg/declined" // a question that came during no request
	methodUnclear  = "toolreg/unclear"  // a question was declined that may have been about a request
	methodDropped  = "toolreg/dropped"  // the answer to a request cannot be used
	methodEnded    = "toolreg/ended"    // the server has exited
)

// FreshMeta is the member of _meta with which a run requests a list that is not cached.
const FreshMeta = "toolreg/fresh"

// Attach says how a run uses a keeper.
type Attach struct {
	Name  string `json:"name"`            // of the socket
	Looks bool   `json:"looks,omitempty"` // it only looks, so the keeper's idle time continues
	Lists bool   `json:"lists,omitempty"` // it needs current lists
}

// Opened describes a kept server to a run that has attached.
type Opened struct {
	Session wire.Opening `json:"session"`
	State
}

// State is the state of a keeper.
type State struct {
	Since time.Time `json:"since"`         // start of the server
	Idle  int64     `json:"idleMs"`        // milliseconds since the last run was attached; 0 if one is
	Runs  int       `json:"runs"`          // number of attached runs
	PID   int       `json:"pid,omitempty"` // of a stdio server
}

// Failure says why a keeper's server cannot be used.
type Failure struct {
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

// note is a message from a keeper to a run during the session. Which fields are set depends on the
// method.
type note struct {
	Text   string `json:"text,omitempty"`   // stderr
	How    string `json:"how,omitempty"`    // ended
	What   string `json:"what,omitempty"`   // declined
	Reason string `json:"reason,omitempty"` // declined, dropped
	ID     int64  `json:"id,omitempty"`     // unclear, dropped: of the request
}

func notification(method string, params any) []byte {
	data, err := jsonx.Marshal(params)
	if err != nil { // plain data
		data = []byte("{}")
	}
	return rawNotification(method, data)
}

func rawNotification(method string, params json.RawMessage) []byte {
	line := append([]byte(`{"jsonrpc":"2.0","method":`), jsonx.Quote(method)...)
	if len(params) > 0 {
		line = append(append(line, `,"params":`...), params...)
	}
	return append(line, "}\n"...)
}

// Spec is what a run passes to a keeper that it starts. Strings are expanded.
type Spec struct {
	Name   string `json:"name"`   // of the socket
	Socket string `json:"socket"` // its path

	Process
	Split          bool          `json:"split,omitempty"` // Command and Args are the words of one command
	Known          string        `json:"known,omitempty"` // how the server was last reached
	ConnectTimeout time.Duration `json:"connectTimeout"`  // 0 means none
	Keep           time.Duration `json:"keep"`            // how long to wait for the next run
	MaxFrame       int64         `json:"maxFrame"`        // bytes of one message of the server before the session
	MaxMessage     int64         `json:"maxMessage"`      // and in it
}

// Process is everything that distinguishes a server's process. Runs that differ in it do not share
// one.
type Process struct {
	Server    string          `json:"server"` // its name
	Command   string          `json:"command"`
	Args      []string        `json:"args"`
	Dir       string          `json:"dir"`               // absolute
	Env       []string        `json:"env"`               // all of it, "K=V"
	URL       string          `json:"url,omitempty"`     // of an HTTP server
	Headers   []string        `json:"headers,omitempty"` // "K: V"
	Protocol  string          `json:"protocol"`
	Plan      json.RawMessage `json:"plan,omitempty"` // of its sandbox; absent if it is not confined
	Root      string          `json:"root"`           // the project root
	Workspace string          `json:"workspace"`      // its only root; "" means none
	Consent   bool            `json:"consent"`        // the project is trusted for this run only
	User      int             `json:"user"`
	Version   string          `json:"version"` // of toolreg
}

// Read reads the Spec that a run writes to the stdin of a keeper.
func Read(in io.Reader) (*Spec, error) {
	spec := &Spec{}
	if err := json.NewDecoder(in).Decode(spec); err != nil || spec.Socket == "" {
		return nil, fmt.Errorf("the description of the server cannot be read")
	}
	return spec, nil
}
