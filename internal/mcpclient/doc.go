// Package mcpclient makes tools of MCP servers: sessions, listings, calls and the
// conversion of content. How messages get to a server is a matter of package
// transport below it, what servers ask of people and models one of package ask.
//
// A [Source] stands for one entry of mcpServers. Discover starts or dials the
// server, negotiates a protocol version, lists all pages of its tools and
// returns them as registry tools whose Run calls the server over the same
// session. Close ends the session and, for a stdio server, its whole process
// group. Everything that a server sends is taken as hostile: sizes, times,
// pages and shapes have limits, and one bad tool is left out, not the server.
package mcpclient
