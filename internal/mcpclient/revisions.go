package mcpclient

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Revisions returns the revisions of the protocol that sessions can speak,
// newest first.
func Revisions() []string { return mcp.SupportedProtocolVersions() }
