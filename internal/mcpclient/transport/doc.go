// Package transport carries messages between the SDK's client session and an MCP
// server, over stdio, streamable HTTP or SSE.
//
// A [Conn] stands between the two. It answers the SDK's probe for the protocol's
// generation in time, keeps the raw results that package mcpclient asks for with
// an [Exchange], hands questions of the server to package ask, and deals with
// notifications. Below it are [Stdio], over the pipes of a child process, or the
// SDK's HTTP transports with [HTTP] as their only way out.
//
// Everything that comes from the server has a limit here: lines, bodies, events,
// text that is no message, redirects, questions at once.
package transport
