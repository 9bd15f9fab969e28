// Package mcpclient provides the tools of MCP servers: listings, calls and
// what lies around them. Package wire below it has the session of the protocol,
// package content reads the results, and package ask answers what servers ask
// people and models.
//
// A [Source] represents one entry of mcpServers. Discover starts or dials the
// server, negotiates a protocol version, lists all pages of its tools and
// returns them as registry tools whose Run calls the server over the same
// session. Close ends the session and, for a stdio server, its whole process
// group. Everything that a server sends is treated as hostile: sizes, times,
// pages and shapes have limits, and a bad tool is left out without losing the
// server.
package mcpclient
