// Package caller says on whose behalf a call is made where one process works for
// several clients. It travels in the context of the call. Without it the call is
// that of the person who started the program.
package caller

import "context"

// Caller is one client of a server process.
type Caller struct {
	// ID tells clients apart: calls whose IDs are equal are of the same client.
	ID any
	// Name is that under which its approvals are kept: of its token, "stdio", or
	// "local". Never empty.
	Name string
	// Client and Version are what the client says of itself, for the audit log.
	Client, Version string
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
