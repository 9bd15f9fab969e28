// Package oauth gets, stores and renews the access tokens of MCP servers (MCP
// revisions 2025-03-26 to 2026-07-28, basic/authorization; OAuth 2.1).
//
// A [Client] stands for one server. While toolreg connects and calls, it hands
// out the stored token, renews it when it ran out, and never asks anybody: a
// server for which a person has to log in is an error that wraps
// registry.ErrNeedsLogin. [Client.Login] is that login.
//
// Registration, the exchange of identity tokens, the header parser and the types
// are the SDK's. Its handler is not used: it knows neither where to send a refresh
// with its resource nor under which issuer a token is to be stored, registers a
// new client at each login, signs no assertions, and refuses every server on a
// private address. Nor are its readers of metadata: they take a page where a
// document should be for a failure, want PKCE of servers that no browser visits,
// and know neither a resource above the server's address nor settings that stand
// in for what is missing.
//
// Everything a server says here is hostile until checked: addresses are https or
// on loopback, other machines of the local network are out of reach unless the
// settings name them, credentials are posted without following redirects, and
// no token or secret is part of an error.
package oauth
