// Package declare encodes tool definitions for each model provider (spec
// section 7), one file per format.
//
// [Lookup] finds a format, [Format.Encode] writes the declarations of a list of
// definitions, and [Original] converts a declared name back to the name in the
// registry. [RestoreEnums] and [RestoreOptional] undo in params what declaring
// changed in a schema, so that a call is checked against the tool's own schema.
//
// The package works on bytes: it keeps the key order and numbers of a schema,
// and a schema that needs no change is unchanged except for white space. The
// same definitions always produce the same bytes, on which prompt caches
// depend. Foreign text is escaped only as JSON requires; whoever prints it for
// a person makes control and invisible characters visible.
package declare
