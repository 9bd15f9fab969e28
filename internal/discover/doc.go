// Package discover implements the sources of external tools other than servers:
// the discovery command of a project (spec section 6.3), plugins (section 6.2),
// and composites, which are made of other tools (section 6.5).
//
// A source runs programs through package process and converts their output to
// tools, with a diagnostic for each part that cannot be used. The output is
// untrusted: it is limited and checked piece by piece, and an invalid
// declaration never affects others. Schemas are passed on byte for byte.
package discover
