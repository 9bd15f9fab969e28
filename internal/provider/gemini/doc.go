// Package gemini adapts JSON Schemas to the type Schema of the Gemini API (v1beta),
// a subset of OpenAPI 3.0. If a schema has a part that this type does not support,
// the API rejects the whole request.
//
// [Sanitize] changes a schema as Gemini CLI does. If the API would still reject the
// result ([Takes]), or the schema has parts that sanitizing ignores ([Foreign]), a
// [Fitter] rewrites the schema. [Check] reports the parts that the API would
// reject.
package gemini
