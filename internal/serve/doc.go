// Package serve is the registry as one MCP server (spec section 11). The SDK's
// server speaks the protocol, over stdio or streamable HTTP; what it cannot do is
// done around it. Calls go through the session like those of the command line, so
// that the same rules, hooks and audit log apply.
//
// All clients share one session, and so each server's process. Whose call it is
// travels in the context of the call (package caller): approvals, questions and the
// audit log follow it.
package serve
