// Package caller says on whose behalf a call is made where one process works for
// several clients. It travels in the context of the call. Without it the call is
// that of the person who started the program.
package caller

import (
	"context"
	"encoding/json"
)

// Caller is one client of a server process.
type Caller struct {
	// ID tells clients apart: calls whose IDs are equal are of the same client.
	ID any
	// Name is that under which its approvals are kept: of its token, "stdio", or
	// "local". Never empty.
	Name string
	// Client and Version are what the client says of itself, for the audit log.
	Client, Version string
	// Capabilities are what the client may be asked for, as it sent them: a JSON
	// object of the protocol, for servers that are told with each request. nil: ours.
	Capabilities json.RawMessage
	// Input answers what a server asks for in a result (revision 2026-07-28,
	// input_required), which it gets as the server sent it. It returns the members to
	// add to the params of the request. nil: the questions are put one by one.
	Input func(ctx context.Context, server string, result json.RawMessage) (json.RawMessage, error)
	// Peer is what the server process itself keeps of the client.
	Peer any
}

type key struct{}

// With returns a context for calls of c.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns on whose behalf ctx works; nil is the person at the command line.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}

// Name returns the Name of the caller of ctx; "" is the person at the command line.
func Name(ctx context.Context) string {
	if c := From(ctx); c != nil {
		return c.Name
	}
	return ""
}
