package serve

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// identity says who sends a request.
type identity struct {
	name    string // of its token, stdio or local
	groups  []string
	profile string // of the tools that it is offered; "": all
}

// account is what sessions, and states of requests, belong to: a name and a profile.
func (i identity) account() string { return i.name + "\x00" + i.profile }

type identityKey struct{}

// inbound is a request over HTTP while the SDK handles it.
type inbound struct {
	stream *steady
	from   identity
}

// inboundOf returns the request over HTTP that a message has come with; nil if there is none,
// or it has been answered.
func (s *Server) inboundOf(req mcp.Request) *inbound {
	if extra := req.GetExtra(); extra != nil {
		if in, ok := s.inbound.Load(extra.Header.Get(inboundHeader)); ok {
			return in.(*inbound)
		}
	}
	return nil
}

// identify returns who sends a message: the sender of its request over HTTP or, if that has
// been answered, of the request that began the session, or the client on stdin.
func (s *Server) identify(ctx context.Context, req mcp.Request) identity {
	if in := s.inboundOf(req); in != nil {
		return in.from
	}
	if from, ok := ctx.Value(identityKey{}).(identity); ok {
		return from
	}
	return identity{name: stdioName, profile: s.opts.Profile}
}
