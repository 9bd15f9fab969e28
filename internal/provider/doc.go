// Package provider implements the formats of model providers in both directions: it
// declares tools to a model, and answers the calls that the model makes. The file
// named after a provider has its declarations; the file that ends in _calls.go has
// its calls.
//
// Declarations: [Lookup] finds a format, [Format.Encode] writes the declarations of
// a list of definitions, and [Names] maps declared names back to names in the
// registry. [RestoreValues], [RestoreEnums] and [RestoreOptional] adapt params to the tool's own
// schema where the declared schema differs, so that calls can be checked against
// it. The package works on bytes: it keeps the key order and numbers of a schema,
// and a schema that needs no change is unchanged except for white space. The same
// definitions always produce the same bytes, on which prompt caches depend.
// Untrusted text is escaped only as JSON requires; callers that show it to a person
// must escape control and invisible characters.
//
// Calls: [LookupCallFormat] finds a format, [Format.Decode] converts a response to
// a [Turn] of calls, and Turn.Reply converts the answers to the messages to append
// to the conversation, with matching ids. The caller runs the calls. Responses are
// untrusted. A response in another format is an error. A call that cannot be run,
// such as one that was cut off, has a Fault, so that it is answered too, as
// providers require.
package provider
