// Package wire implements the client side of MCP for one server: one [Session]
// over stdio, streamable HTTP or the older HTTP with server-sent events (SSE).
//
// A request runs through the package in this order:
//
//   - session.go: [Session.Do] adds the request to the table of unanswered
//     requests (table.go), sends it, and waits for its answer or its end;
//     request.go defines the request, params.go its params as sent.
//   - stdio.go, http.go and sse.go: the three links, which carry messages.
//   - receive.go: passes incoming answers to their requests, progress and
//     changes to notifications.go, and the server's questions to questions.go.
//
// handshake.go opens a session in any revision of the protocol, and stream.go
// keeps the streams for messages that servers send on their own.
//
// Results are passed on as the server sent them. Everything that comes from
// the server has a limit here: lines, bodies, events, text that is not a
// message, redirects, concurrent questions.
package wire
