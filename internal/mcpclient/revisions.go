package mcpclient

import "github.com/toolreg/toolreg/internal/mcpclient/wire"

// Revisions returns the revisions of the protocol that sessions can speak,
// newest first.
func Revisions() []string { return wire.Revisions() }
