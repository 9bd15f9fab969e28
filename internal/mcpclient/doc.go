// Package mcpclient provides the tools, prompts and resources of MCP servers.
// Below it, package wire implements sessions of the protocol, package content
// reads results, and package ask answers the requests that servers make to
// users and models.
//
// A [Source] represents one entry of mcpServers. Discover starts or dials the
// server, negotiates a protocol version, lists all pages of its tools and
// returns them as registry tools whose Run calls the server over the same
// session. Close ends the session and, for a stdio server, its whole process
// group. Everything that a server sends is treated as hostile: sizes, times,
// pages and shapes have limits, and a bad tool is left out without losing the
// server.
package mcpclient
