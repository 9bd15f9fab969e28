// Package shellline reads a line for a shell without running it: which commands
// it contains (including those inside wrappers, substitutions and nested
// shells), which files it writes, and whether all of it was understood.
//
// A line is read twice: by a parser, for its commands, and byte by byte in the
// part of the grammar on which all shells agree. If the two differ, the line
// counts as unread. Anything unknown raises a doubt and is never a reason to
// allow. The package makes no decisions; internal/policy does.
package shellline
