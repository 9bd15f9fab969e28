// Package oauth gets, keeps and renews the access tokens of MCP servers (MCP
// revisions 2025-03-26 to 2026-07-28, basic/authorization; OAuth 2.1).
//
// A [Client] stands for one server. While toolreg connects and calls, it hands
// out the stored token, renews it when it ran out, and never asks anybody: a
// server for which a person has to log in is an error that wraps
// registry.ErrNeedsLogin. [Client.Login] is that login.
//
// The flow is put together from the SDK's types and its header parser, not from
// its handler: that knows neither where to send a refresh with its resource nor
// under which issuer a token is to be kept, registers a new client at each login,
// signs no assertions, and refuses every server on a private address.
//
// Everything a server says here is hostile until checked: addresses are https or
// on loopback, other machines of the local network are out of reach unless the
// settings name them, credentials are posted without following redirects, and
// no token or secret is part of an error.
package oauth
