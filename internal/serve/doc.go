// Package serve offers the registry as an MCP server. The SDK's server implements the
// protocol, over stdio or streamable HTTP; this package adds what the SDK does not
// support. Calls go through the session like those of the command line, so that the same
// rules, hooks and audit log apply.
//
// All clients share one session, and therefore each server's process. The
// caller is part of the context of a call (package caller), and determines
// approvals, questions and entries in the audit log.
//
// Its parts are packages, each of which knows those before it: auth says who sends a request,
// transport carries messages, question asks clients, task has calls that go on after their
// requests. Package replica lets other processes serve the same clients, which cluster finds.
// Package offer answers what a client is offered, and knows none of them; package current keeps the
// offers that are in use. Here is what puts the parts together.
package serve
