// Package caller identifies the client for which a call is made, if one process
// serves several clients. The caller is part of the context of the call.
// Without it, the call is that of the person who started the program.
package caller

import (
	"context"
	"encoding/json"
	"errors"
)

// The names of callers without a token of their own: the client on stdin, and those over HTTP
// that need none or use the one that was generated for them.
const (
	Stdio = "stdio"
	Local = "local"
)

// Caller is one client of a server process.
type Caller struct {
	// ID identifies the client: calls with equal IDs belong to the same client.
	ID any
	// Single says that the client must be told which of its calls a question is about.
	Single bool
	// Name is the name under which its approvals are stored: that of its token,
	// "stdio", or "local". "" means that it acts for the person who started the program.
	Name string
	// Token is the name of the token with which it authenticated; "" if it needs none,
	// as on stdin, because it then acts for the person who started the server.
	Token string
	// Groups are the groups that its token says it belongs to, for rules and limits.
	Groups []string
	// Lacks returns the scope of serve.oauth.scopes that a call of a tool needs and the token
	// lacks, and the place of the setting; "" if there is none. spellings are the names of the
	// tool. nil: tokens have no scopes.
	Lacks func(spellings []string) (scope, origin string)
	// Profile is the name of the view of the registry that it uses; "" if it uses the whole.
	Profile string
	// Client and Version are the client's own name and version, for the audit
	// log.
	Client, Version string
	// Capabilities are the client's capabilities as it sent them, a JSON object
	// of the protocol, for servers that receive them with each request. nil:
	// our own.
	Capabilities json.RawMessage
	// Input answers the questions in a server's result (revision 2026-07-28,
	// input_required), which is passed as the server sent it. It returns the members to
	// add to the params of the request. If it is nil, the questions are asked one by one.
	Input func(ctx context.Context, server string, result json.RawMessage) (json.RawMessage, error)
	// Answered returns the members to add to the params of the first request to a server
	// whose questions were answered in an earlier run of the call, and how often the
	// server had asked. It returns nil and 0 if there was no earlier run. It may be nil.
	Answered func(server string) (members json.RawMessage, rounds int, err error)
	// Task, if it is not nil, is called with nil when a server continues the call as a task,
	// and with the error of the protocol by which the task fails, if it does.
	Task func(failed error)
	// Roots returns the client's roots as the result of roots/list. If it is nil,
	// toolreg's own roots are used.
	Roots func(ctx context.Context) (json.RawMessage, error)
	// Left reports whether the client has left, so that it does not read the result. nil: that is
	// not known.
	Left func() bool
	// Peer is the server process's own data about the client.
	Peer any
	// Owner is the key of resources that belong to one client, such as processes of
	// servers with perClient. Clients of revision 2026-07-28, which have no sessions,
	// share what belongs to their token.
	Owner any
}

// ErrContinued is the cause with which a call is canceled if another run, in this process
// or another, continues it. The call is not logged, because the other run is.
var ErrContinued = errors.New("the client continues the call in another run")

type key struct{}

// With returns a context for calls of c.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the caller of ctx, or nil for the person at the command line.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}

// Known reports whether ctx is that of the request of one client. Otherwise it is that of the
// person, or of something that is prepared for several clients.
func Known(ctx context.Context) bool {
	c := From(ctx)
	return c != nil && c.ID != nil
}

// IsPerson reports whether the call of ctx is made for the person who started the program,
// at the command line or through a program of theirs.
func IsPerson(ctx context.Context) bool { return Name(ctx) == "" }

// Name returns the Name of the caller of ctx, or "" for the person who started the program.
func Name(ctx context.Context) string {
	if c := From(ctx); c != nil {
		return c.Name
	}
	return ""
}

// Groups returns the Groups of the caller of ctx.
func Groups(ctx context.Context) []string {
	if c := From(ctx); c != nil {
		return c.Groups
	}
	return nil
}

// Profile returns the Profile of the caller of ctx.
func Profile(ctx context.Context) string {
	if c := From(ctx); c != nil {
		return c.Profile
	}
	return ""
}

// Token returns the Token of the caller of ctx, or "" for the person at the command line.
// What one token leaves behind, such as running commands, belongs to it alone.
func Token(ctx context.Context) string {
	if c := From(ctx); c != nil {
		return c.Token
	}
	return ""
}
