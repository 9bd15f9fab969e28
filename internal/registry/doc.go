// Package registry defines the central types of toolreg and the registry
// itself: definitions, tools, calls, results, sources, names, conflicts,
// filters and the validation of params.
//
// Sources provide tools. A [Loader] runs all sources concurrently and registers
// their tools in a fixed order. [Registry.Lookup] finds a tool by any of its
// names. The package starts no process and prints nothing.
package registry
