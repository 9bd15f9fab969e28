// Package oauth gets, stores and renews the access tokens of MCP servers (MCP
// revisions 2025-03-26 to 2026-07-28, basic/authorization; OAuth 2.1).
//
// A [Client] belongs to one server. While toolreg connects and calls tools, the
// Client provides the stored token and renews it after it has expired. It never
// asks the user: if a login is needed, the error wraps registry.ErrNeedsLogin.
// [Client.Login] performs the login.
//
// The exchange of identity tokens and the header parser come from the SDK. Its OAuth
// handler is not used, because it cannot send a refresh token together with its
// resource or store a token under its issuer, registers a new client at each login,
// does not sign assertions, and refuses every server on a private address. Its
// readers of metadata and registrations are not used either: they fail on a web page
// in place of a document and on a member of another type, require PKCE of servers that
// no browser visits, and support neither a resource above the server's URL nor settings
// that replace missing metadata.
//
// All data from servers is untrusted: URLs must be https or on loopback, other
// machines on the local network are refused unless the settings name them,
// credentials are posted without following redirects, and errors never contain
// tokens or secrets.
package oauth
