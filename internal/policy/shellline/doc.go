// Package shellline reads a line for a shell without running it: which commands
// it holds, with those inside wrappers, substitutions and nested shells, which
// files it writes, and whether all of that was understood.
//
// A line is read twice: by a parser, for its commands, and byte by byte in the
// part of the grammar on which all shells agree. Where the two differ, the line
// counts as unread. What is not known is a doubt, never a guess that allows.
// The package decides nothing; internal/policy does.
package shellline
