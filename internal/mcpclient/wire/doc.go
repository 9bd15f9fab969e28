// Package wire speaks MCP with one server, as its client: one [Session] over
// stdio, streamable HTTP or the older HTTP with server-sent events (SSE).
//
// A request runs through the package in this order:
//
//   - session.go: [Session.Do] enters the request into the table of those that
//     are unanswered, sends it, and waits for its answer or its end; request.go
//     has the request itself and what is sent.
//   - stdio.go, http.go and sse.go: the three links, which carry messages.
//   - receive.go: what comes back, to the request that it answers; to
//     notifications.go, progress and changes; to questions.go, what the server
//     asks.
//
// handshake.go opens a session in any revision of the protocol, and stream.go
// keeps the streams for what servers send unasked.
//
// Results are passed on as the server sent them. Everything that comes from
// the server has a limit here: lines, bodies, events, text that is not a
// message, redirects, concurrent questions.
package wire
