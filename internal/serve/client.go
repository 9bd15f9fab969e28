package serve

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
)

// firstModern is the first revision without sessions.
const firstModern = "2026-07-28"

// client is who sent a request.
type client struct {
	name    string // of its token
	session *mcp.ServerSession
	can     mcp.ClientCapabilities
	modern  bool // it is asked in results, not by requests
	call    *waitingCall
}

type clientKey struct{}

func clientFrom(ctx context.Context) *client {
	c, _ := ctx.Value(clientKey{}).(*client)
	return c
}

// withClient returns a context for what a client requests.
func (s *Server) withClient(ctx context.Context, name string, req *mcp.CallToolRequest) context.Context {
	c := &client{name: name, session: req.Session, modern: req.ProtocolVersion() >= firstModern}
	if caps := req.ClientCapabilities(); caps != nil {
		c.can = *caps
	}
	who := &caller.Caller{ID: req.Session, Name: name} // a modern request has a session of its own
	if info := req.ClientInfo(); info != nil {
		who.Client, who.Version = info.Name, info.Version
	}
	return caller.With(context.WithValue(ctx, clientKey{}, c), who)
}

// countedAs is what calls of the client are counted under: of a modern one, which
// has no session, all with its token.
func (c *client) countedAs() any {
	if c.modern {
		return c.name
	}
	return c.session
}

// canFill reports whether the client puts forms to its user. One that declares no
// mode has forms (revision 2025-06-18).
func (c *client) canFill() bool {
	e := c.can.Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// canOpen reports whether the client sends its user to addresses.
func (c *client) canOpen() bool {
	e := c.can.Elicitation
	return e != nil && e.URL != nil
}

// elicit puts a question to the client's user.
func (c *client) elicit(ctx context.Context, q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if c.modern {
		return c.call.ask(ctx, q)
	}
	return c.session.Elicit(ctx, q)
}

// newSessionID returns the id of a session, which begins with the mark of the name
// that it belongs to.
func (s *Server) newSessionID(name string) string { return s.sessionMark(name) + rand.Text() }

// sessionMark is how ids of the sessions of a name begin. Nobody outside can make
// one up.
func (s *Server) sessionMark(name string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(name))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
