// Package shell analyzes a shell line without running it: which commands it
// contains, including those inside wrappers, substitutions and nested shells,
// which files it writes, and whether all of it was understood.
//
// A line is read twice: by a parser, which finds its commands, and byte by byte
// according to the part of the grammar on which all shells agree. If the two
// readings differ, the line is marked as unread. Anything unknown is a doubt, and
// no rule allows a command with a doubt. The arguments of programs are read with
// the tables in tables.txt; a command whose arguments are not known to be harmless
// is allowed only by a rule with all of its words. The package internal/policy
// makes the decisions.
package shell
