// Package serve offers the registry as an MCP server. The SDK's server implements the protocol,
// over stdio or streamable HTTP; this package adds what the SDK does not support. Calls go through
// the session like those of the command line, so that the same rules, hooks and audit log apply.
//
// All clients share one session, and therefore each server's process. The caller is part of the
// context of a call (package caller), and determines approvals, questions and entries in the audit
// log.
//
// Its parts are packages; each knows only those named before it. auth determines who sends a
// request, transport carries messages, question asks clients, and task has calls that outlast their
// requests. With replica, other processes serve the same clients; cluster finds them. offer decides
// what a client is offered, and knows none of the others; current keeps the offers in use. This
// package connects them.
package serve
