package web

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// bullet starts a list item in a cell.
const bullet = "• "

// flattenCells converts the paragraphs and lists in the cells of a table to
// lines, because Markdown tables cannot contain blocks. It skips tables that have
// no headings or contain another table, because those are used for page layout.
func flattenCells(table *html.Node) {
	headings := false
	for n := range table.Descendants() {
		if n.DataAtom == atom.Table {
			return
		}
		headings = headings || n.DataAtom == atom.Th
	}
	if !headings {
		return
	}
	for n := range table.Descendants() {
		switch {
		case n.DataAtom == atom.Hr:
			n.Data, n.DataAtom = "br", atom.Br
		case isBlockOfCell(n):
			flatten(n)
		}
	}
}

func isBlockOfCell(n *html.Node) bool {
	switch n.DataAtom {
	case atom.P, atom.Div, atom.Ul, atom.Ol, atom.Li, atom.Blockquote, atom.Dl, atom.Dt, atom.Dd:
		return true
	}
	return false
}

// flatten puts a block on its own line among its siblings.
func flatten(n *html.Node) {
	before, after := n.PrevSibling, n.NextSibling
	for before != nil && isBlankText(before) {
		before = before.PrevSibling
	}
	for after != nil && isBlankText(after) {
		after = after.NextSibling
	}
	if before != nil && before.DataAtom != atom.Br && before.Data != bullet {
		n.Parent.InsertBefore(lineBreak(), n)
	}
	if after != nil && after.DataAtom != atom.Br && !isBlockOfCell(after) {
		n.Parent.InsertBefore(lineBreak(), n.NextSibling)
	}
	if n.DataAtom == atom.Li {
		n.InsertBefore(&html.Node{Type: html.TextNode, Data: bullet}, n.FirstChild)
	}
	n.Data, n.DataAtom = "span", atom.Span
}

func lineBreak() *html.Node {
	return &html.Node{Type: html.ElementNode, Data: "br", DataAtom: atom.Br}
}

func isBlankText(n *html.Node) bool {
	return n.Type == html.CommentNode || n.Type == html.TextNode && strings.TrimFunc(n.Data, isBlank) == ""
}
