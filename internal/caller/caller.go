// Package caller identifies the client for which a call is made, if one process
// serves several clients. The caller is part of the context of the call.
// Without it, the call is that of the person who started the program.
package caller

import (
	"context"
	"encoding/json"
	"errors"
)

// The names of callers without a token of their own: the client on stdin, and HTTP clients that
// need no token or use the generated one.
const (
	Stdio = "stdio"
	Local = "local"
)

// Caller identifies one client of a server process, and says what can be asked of it.
type Caller struct {
	// ID identifies the client: calls with equal IDs belong to the same client.
	ID any
	// Single says that the client must be told which of its calls a question is about.
	Single bool
	// Name is the name under which its approvals are stored: that of its token,
	// "stdio", or "local". "" means that it acts for the person who started the program.
	Name string
	// Token is the name of the token with which it authenticated. It is "" if the client needs
	// none, as on stdin, because it then acts for the person who started the server.
	Token string
	// Groups are the groups that its token says it belongs to, for rules and limits.
	Groups []string
	// Scopes are those of its access token (serve.oauth). nil means that it has another kind of
	// token or none, so its calls require no scope. An access token without scopes has an empty list.
	Scopes []string
	// Profile is the name of the profile whose tools it sees; "" means all tools.
	Profile string
	// Client and Version are the client's own name and version, for the audit
	// log.
	Client, Version string
	// Owner is the key of resources that belong to one client, such as processes of
	// servers with perClient. Clients of revision 2026-07-28, which have no sessions,
	// share what belongs to their token.
	Owner any
	// Peer is what can be asked of the client during its call; nil means nothing.
	Peer Peer
}

// Peer is what can be asked of a client during its call. Its methods are safe for concurrent use.
type Peer interface {
	// Capabilities returns the client's capabilities as it sent them, a JSON object of the
	// protocol, for servers that receive them with each request; nil means toolreg's own.
	Capabilities() json.RawMessage
	// TakesInput reports whether Input answers the questions in a server's result. Otherwise they
	// are asked one by one.
	TakesInput() bool
	// Input answers the questions in a server's result (revision 2026-07-28, input_required),
	// which is passed as the server sent it. It returns the members to add to the params of the
	// request.
	Input(ctx context.Context, server string, result json.RawMessage) (json.RawMessage, error)
	// Answered returns the members to add to the params of the first request to a server whose
	// questions were answered in an earlier run of the call, and how often the server had asked. It
	// returns nil and 0 if there was no earlier run.
	Answered(server string) (members json.RawMessage, rounds int, err error)
	// Continues is called with nil when a server continues the call as a task, and with the error
	// of the protocol by which the task fails, if it does.
	Continues(failed error)
	// Roots returns the client's roots as the result of roots/list; nil means it has none, so that
	// toolreg's own are used.
	Roots(ctx context.Context) (json.RawMessage, error)
	// Left reports whether the client is known to have left, so that it does not read the result.
	Left() bool
}

// Silent is a [Peer] that answers nothing, to be embedded in others.
type Silent struct{}

// Capabilities implements [Peer].
func (Silent) Capabilities() json.RawMessage { return nil }

// TakesInput implements [Peer].
func (Silent) TakesInput() bool { return false }

// Input implements [Peer].
func (Silent) Input(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, nil
}

// Answered implements [Peer].
func (Silent) Answered(string) (json.RawMessage, int, error) { return nil, 0, nil }

// Continues implements [Peer].
func (Silent) Continues(error) {}

// Roots implements [Peer].
func (Silent) Roots(context.Context) (json.RawMessage, error) { return nil, nil }

// Left implements [Peer].
func (Silent) Left() bool { return false }

// ErrContinued is the cause with which a call is canceled if another run, in this or another
// process, continues it. Only that run is logged.
var ErrContinued = errors.New("the client continues the call in another run")

// ErrTaken is an ErrContinued: another process has, or may have, taken the client's answer to the
// question of the call.
var ErrTaken error = taken{}

// taken is a type because an error made with fmt.Errorf would cost time at each start of the
// program.
type taken struct{}

func (taken) Error() string { return ErrContinued.Error() + ": it has answered another process" }
func (taken) Unwrap() error { return ErrContinued }

type key struct{}

// With returns a context for calls of c.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller of ctx, or nil for the person at the command line.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}

// Known reports whether ctx belongs to the request of one client, rather than to the person or to
// something that is prepared for several clients.
func Known(ctx context.Context) bool { return of(ctx).ID != nil }

// IsPerson reports whether the call of ctx is made for the person who started the program,
// at the command line or through a program of theirs.
func IsPerson(ctx context.Context) bool { return Name(ctx) == "" }

// of returns the caller of ctx; the zero value is the person at the command line.
func of(ctx context.Context) *Caller {
	if c := From(ctx); c != nil {
		return c
	}
	return &Caller{}
}

// Name returns the Name of the caller of ctx, or "" for the person who started the program.
func Name(ctx context.Context) string { return of(ctx).Name }

// Groups returns the Groups of the caller of ctx.
func Groups(ctx context.Context) []string { return of(ctx).Groups }

// Profile returns the Profile of the caller of ctx.
func Profile(ctx context.Context) string { return of(ctx).Profile }

// Token returns the Token of the caller of ctx, or "" for the person at the command line. What a
// call leaves behind, such as running commands, belongs to its token alone.
func Token(ctx context.Context) string { return of(ctx).Token }
