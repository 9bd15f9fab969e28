// Package provider implements the formats of model providers in both directions: it
// declares tools to a model, and answers the calls that the model makes. The file
// named after a provider has its declarations; the file that ends in _calls.go has
// its calls.
//
// Declarations: [Lookup] finds a format, [Format.Encode] writes the declarations of a
// list of definitions, and [Original] converts a declared name back to the name in the
// registry. [RestoreEnums] and [RestoreOptional] undo in params what declaring changed
// in a schema, so that a call is checked against the tool's own schema. The package
// works on bytes: it keeps the key order and numbers of a schema, and a schema that
// needs no change is unchanged except for white space. The same definitions always
// produce the same bytes, on which prompt caches depend. Foreign text is escaped only
// as JSON requires; whoever prints it for a person makes control and invisible
// characters visible.
//
// Calls: [LookupCallFormat] finds a format, [Format.Decode] converts a response to a
// [Turn] of calls, and Turn.Reply converts the answers to the messages to append to the
// conversation, with matching ids. The caller runs the calls. A response is untrusted.
// If it is not in the format, that is an error. A call in it that cannot be run, such
// as one that was cut off, is a call with a Fault, so that every call is answered, as
// providers require.
package provider
