// Package transport carries messages between the SDK's client session and an
// MCP server, over stdio, streamable HTTP or SSE.
//
// A [Conn] is between the two. It answers the SDK's probe for the protocol's
// generation in time, keeps the raw results that package mcpclient requests
// with an [Exchange], passes the server's questions to package ask, and handles
// notifications. Below it are [Stdio], over the pipes of a child process, or
// the SDK's HTTP transports with [HTTP] as their only way out.
//
// Everything that comes from the server has a limit here: lines, bodies,
// events, text that is not a message, redirects, concurrent questions.
package transport
