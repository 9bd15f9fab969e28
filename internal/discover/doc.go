// Package discover implements the sources of external tools other than MCP servers:
// a project's discovery command, plugins, and composites, which call other tools.
//
// A source runs programs through package process and converts their output to
// tools, with a diagnostic for each part that cannot be used. The output is
// untrusted: it is limited and checked piece by piece, and an invalid
// declaration never affects others. Schemas are passed on byte for byte.
package discover
