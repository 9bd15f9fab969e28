// Package spec reads OpenAPI 3.0, OpenAPI 3.1 and Swagger 2.0 documents and turns each
// operation into what a tool needs: a name, the schemas of params and result, and the HTTP
// request that a call makes. It does no input or output: the other files of a document and
// the files in params come from functions of the caller, and package openapi sends the
// requests.
//
// Documents are not trusted. Size, depth and references are bounded, and an operation that
// cannot be used is returned with its problem, so that it costs no other.
package spec
