// Package discover holds the sources of tools outside the binary that are no
// servers: the discovery command of a project (spec section 6.3), plugins
// (section 6.2), and composites, which are made of other tools (section 6.5).
//
// A source runs programs through package process and turns what they print into
// tools, one diagnostic for each thing that could not be used. All that such a
// program prints is hostile: it is bounded, checked piece by piece, and one bad
// declaration never takes its neighbours with it. Schemas are passed on byte
// for byte.
package discover
