package markdown

import "github.com/yuin/goldmark/ast"

// maxInline is the longest text in which emphasis, code and links are looked
// for, in bytes: some texts cost time that grows with the square.
const maxInline = 16 << 10

// verbatim is a paragraph that is too long for its inline marks to be read.
type verbatim struct{ ast.CodeBlock }

// diffBlock is a unified diff that stands among the text, without a fence.
type diffBlock struct {
	ast.CodeBlock
	left int // lines that are to come
}

// tableBlock is a table. Its children are the cells, row by row, the head first;
// every row has as many as the head.
type tableBlock struct {
	ast.CodeBlock
	align []string // of each column, as written: --- or :-: and the like
}

// struck is text between ~~ and ~~.
type struck struct{ ast.Emphasis }
