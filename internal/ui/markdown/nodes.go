package markdown

import "github.com/yuin/goldmark/ast"

// maxInline is the longest text in which emphasis, code and links are parsed,
// in bytes, because some texts take quadratic time.
const maxInline = 16 << 10

// verbatim is a paragraph that is too long for parsing inline marks.
type verbatim struct{ ast.CodeBlock }

// diffBlock is a unified diff in the text without a fence.
type diffBlock struct {
	ast.CodeBlock
	left int // lines still to come
}

// tableBlock is a table. Its children are the cells, row by row with the head
// first; every row has as many cells as the head.
type tableBlock struct {
	ast.CodeBlock
	align []string // the delimiter of each column as written, such as --- or :-:
}

// struck is text between ~~ and ~~.
type struck struct{ ast.Emphasis }
