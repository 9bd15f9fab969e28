// Package gemini adapts JSON Schemas to the type Schema of the Gemini API, a
// subset of OpenAPI 3.0's (protocol of the API, v1beta, Schema). If a schema
// has anything that this type does not support, the API refuses the whole
// request.
//
// [Sanitize] does what the Gemini CLI does. If the API would still refuse the
// result ([Takes]), or it has parts that sanitizing ignores ([Foreign]), a
// [Fitter] rewrites the schema. [Check] reports what the API would refuse and
// where.
package gemini
