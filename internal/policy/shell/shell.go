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

// The supported grammars. A line in another grammar is Unread, and the first word
// of each of its pieces is treated as a command.
const (
	Bash  = "bash"
	POSIX = "sh"
)

const (
	// maxCommandLine is the length of the longest argument that Linux accepts, so
	// that no longer line can run.
	maxCommandLine = 128 << 10
	// maxNesting limits how deep shells may be nested.
	maxNesting = 16
	// maxParens limits runs of "(", which the parser reads in quadratic time.
	maxParens = 64
	// maxInner limits the number of commands found inside wrappers, which
	// ambiguous options can multiply, and maxInnerWords the number of their words
	// and of the bytes read to find those in values of options.
	maxInner      = 2000
	maxInnerWords = 1 << 20
)

// plainChars are the characters that have no special meaning in shells.
const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%"

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
