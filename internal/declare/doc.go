// Package declare encodes tool definitions as each model provider wants them
// (spec section 7), one file per format.
//
// [Lookup] finds a format, [Format.Encode] writes the declarations of a list
// of definitions, [Original] turns a name as declared back into the name in
// the registry. [RestoreEnums] and [RestoreOptional] undo in params what
// declaring did to a schema, so that a call is checked against the schema the
// tool itself gave.
//
// The package works on bytes: key order and numbers of a schema survive, and a
// schema that needs no change goes out as it came but for white space. The same
// definitions give the same bytes on every run; prompt caches depend on it.
// Text from outside passes unescaped but for what JSON demands; whoever prints
// it to a person makes control and invisible characters visible.
package declare
