// Package openapi makes tools of the operations of HTTP APIs that OpenAPI documents
// describe. A [Source] is one entry of the setting openapi: it gets the document, from a
// file or an address, lets package spec read it, and sends the requests of calls.
//
// Credentials come from the settings alone and go to the origin that the settings name and
// to no other.
package openapi
