package web

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/toolreg/toolreg/internal/memory"
)

// maxSpanned limits the number of cells that colspan and rowspan may add to a
// page, and short rows to a table.
const maxSpanned = 10_000

// errConversion reports that a page could not be converted to Markdown.
var errConversion = errors.New("cannot be converted to Markdown; use format text or raw")

// markdown converts HTML with its tree to Markdown with absolute links. It returns when ctx
// is canceled, but the converter cannot be stopped and keeps running. A page
// that is too large or too deeply nested for the converter, or at which it fails,
// is converted to plain text.
func markdown(ctx context.Context, source string, doc *html.Node, at *url.URL) (string, error) {
	if doc == nil {
		return htmlText(source), nil
	}
	text, canceled := memory.Await(ctx, func() (text string) {
		defer func() {
			if recover() != nil {
				text = htmlText(source)
			}
		}()
		text, err := convert(doc, at)
		if err != nil {
			return htmlText(source)
		}
		return text
	})
	if canceled != nil {
		return "", errConversion
	}
	return text, nil
}

func convert(doc *html.Node, at *url.URL) (string, error) {
	clearPage(doc)
	t := tidier{base: baseOf(doc, at)}
	for n := range doc.Descendants() {
		t.tidy(n)
	}
	sizeOf(doc)
	c := converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(
			// Aligned columns can grow with the square of the page size.
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithHeaderPromotion(true),
			table.WithNewlineBehavior(table.NewlineBehaviorPreserve),
		),
	))
	for _, tag := range hiddenTags() {
		c.Register.TagType(tag.String(), converter.TagTypeRemove, converter.PriorityStandard)
	}
	// In a table that Markdown cannot represent, cells become separate blocks.
	for _, tag := range []string{"summary", "td", "th"} {
		c.Register.TagType(tag, converter.TagTypeBlock, converter.PriorityStandard)
	}
	out, err := c.ConvertNode(doc)
	return strings.TrimSpace(boxed(string(out))), err
}

// sizeOf returns how many rows a part of a page has, how many cells the widest of them has, and how many
// all have. A table whose rows would be filled up with too many empty cells becomes a block of blocks.
func sizeOf(n *html.Node) (rows, widest, cells int) {
	own := 0
	for c := range n.ChildNodes() {
		r, w, k := sizeOf(c)
		rows, widest, cells = rows+r, max(widest, w), cells+k
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			own += spanOf(c, "colspan") * spanOf(c, "rowspan")
		}
	}
	switch n.DataAtom {
	case atom.Tr:
		rows, widest, cells = rows+1, max(widest, own), cells+own
	case atom.Table:
		if rows*widest > cells+maxSpanned {
			n.Data, n.DataAtom = "div", atom.Div
		}
	}
	return rows, widest, cells
}

// spanOf returns an attribute that [tidier.tidy] has checked, 1 if it is absent.
func spanOf(n *html.Node, name string) int {
	span, err := strconv.Atoi(strings.TrimSpace(attribute(n, name)))
	if err != nil {
		return 1
	}
	return span
}

// tidier holds what is needed to prepare a page for the converter.
type tidier struct {
	base    *url.URL
	spanned int
}

// tidy makes links absolute, removes invalid addresses, and limits spanning
// cells. A link without an address or without content becomes plain text.
func (t *tidier) tidy(n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	switch n.DataAtom {
	case atom.Table:
		flattenCells(n)
	case atom.Sup:
		if text := n.FirstChild; text != nil && text == n.LastChild &&
			text.Type == html.TextNode && isExponent(text.Data) {
			text.Data = "^" + strings.TrimSpace(text.Data)
		}
	}
	kept := n.Attr[:0]
	area := 1
	for _, a := range n.Attr {
		switch a.Key {
		case "href", "src":
			a.Val = t.absolute(a.Val)
		case "colspan", "rowspan":
			span, err := strconv.Atoi(strings.TrimSpace(a.Val))
			if err != nil || span < 1 || span > maxSpanned || t.spanned+area*span > maxSpanned {
				continue
			}
			area *= span
		}
		kept = append(kept, a)
	}
	n.Attr = kept
	if n.DataAtom == atom.A && (attribute(n, "href") == "" || n.FirstChild == nil) {
		n.Data, n.DataAtom = "span", atom.Span
	}
	if area > 1 {
		t.spanned += area
	}
}

func (t *tidier) absolute(link string) string {
	link = strings.TrimSpace(link)
	u, err := t.base.Parse(link)
	if err != nil {
		return link
	}
	switch u.Scheme {
	case "data", "javascript", "blob":
		return ""
	}
	if strings.HasPrefix(link, "#") {
		return link
	}
	return u.String()
}

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
