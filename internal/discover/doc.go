// Package discover holds the sources of tools outside the binary: the discovery
// command of a project (spec section 6.3).
//
// A source runs programs through package process and turns what they print into
// tools, one diagnostic for each thing that could not be used. All that such a
// program prints is hostile: it is bounded, checked piece by piece, and one bad
// declaration never takes its neighbours with it. Schemas are passed on byte
// for byte.
package discover
