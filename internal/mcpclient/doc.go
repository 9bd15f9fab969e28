// Package mcpclient is the source of MCP servers' tools: sessions, transports
// and the conversion of content.
//
// A [Source] stands for one entry of mcpServers. Discover starts or dials the
// server, negotiates a protocol version, lists all pages of its tools and
// returns them as registry tools whose Run calls the server over the same
// session. Close ends the session and, for a stdio server, its whole process
// group. Everything that a server sends is taken as hostile: sizes, times,
// pages and shapes are bounded, and one bad tool is left out, not the server.
package mcpclient
