// Package rpc is the connection between toolreg rpc and its host: JSON-RPC 2.0, one message
// a line, in both directions. A [Server] reads the host's requests, runs the [Method] of
// each, and answers them; it asks the host what needs a person or a model ([Asker]) and
// tells it what happens meanwhile. It knows neither flags nor what the methods do:
// internal/cli/rpccmd has them. Every type of a message is a Go type, from which
// [Schema] and [TypeScript] are made.
package rpc
