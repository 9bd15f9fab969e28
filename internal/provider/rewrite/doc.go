// Package rewrite changes JSON Schemas in place so that a provider's API
// accepts them: syntax of older drafts and of OpenAPI becomes that of draft
// 2020-12, the root becomes a plain object, references without a target are
// removed, and [Strict] produces the subset to which OpenAI can constrain a
// model.
//
// Each function returns descriptions of its changes, or nil if the schema is
// unchanged. The rewritten schema allows everything that the tool's own schema
// does, except that in strict schemas optional values are null instead of absent.
package rewrite
