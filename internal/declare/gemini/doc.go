// Package gemini fits JSON Schemas to the type Schema of the Gemini API, a
// subset of OpenAPI 3.0's (protocol of the API, v1beta, Schema). What that type
// does not know has the API refuse the whole request.
//
// [Sanitize] does what the Gemini CLI does. Where the API would still refuse
// the outcome ([Takes]) or sanitising does not look ([Foreign]), a [Fitter]
// rewrites the schema. [Check] says what the API would refuse and where.
package gemini
