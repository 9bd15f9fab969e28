// Package rewrite changes JSON Schemas in place so that the API of a provider
// takes them: words of older drafts and of OpenAPI become those of draft
// 2020-12, the root becomes a plain object, references that lead nowhere go,
// and [Strict] makes the subset that OpenAI holds a model to.
//
// Each function returns in words what it changed, nothing where the schema
// stays as it was. The rewritten schema allows no less than the tool's own
// does, but for optional values in strict schemas, which are null.
package rewrite
