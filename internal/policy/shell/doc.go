// Package shell reads a line for a shell without running it: which commands
// it contains (including those inside wrappers, substitutions and nested
// shells), which files it writes, and whether all of it was understood.
//
// A line is read twice: by a parser, which finds its commands, and byte by byte in the
// part of the grammar on which all shells agree. If the two readings differ, the line
// is marked as unread. Anything unknown is a doubt, and a command with a doubt is
// never allowed by a rule. internal/policy makes the decisions.
package shell
