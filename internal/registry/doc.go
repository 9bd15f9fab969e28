// Package registry is the vocabulary of toolreg and the registry itself:
// definitions, tools, calls, results, sources, names, conflicts, filters and
// the validation of params.
//
// Sources produce tools, [Load] runs all sources at once and registers what
// they gave in a fixed order, [Registry.Lookup] finds a tool by any of its
// names. The package imports no other package of this module, starts no
// process and prints nothing.
package registry
