// Package accesstoken verifies access tokens for a resource server of OAuth 2.1: JSON Web Tokens
// (RFC 7519) that an authorization server has signed, in the manner of RFC 9068. It asks the
// authorization server only for its keys.
//
// internal/serve uses it for serve.oauth; internal/oauth is the client's side.
package accesstoken
