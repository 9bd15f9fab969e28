package web

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isUnseen reports whether an element is not shown: hidden by its attributes, or a button
// that copies a block of code. Rules of style sheets are not read.
func isUnseen(n *html.Node) bool {
	open := false
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			if !strings.EqualFold(a.Val, "until-found") {
				return true
			}
		case "style":
			if hides(a.Val) {
				return true
			}
		case "aria-hidden": // also of a page behind a dialog
			if strings.EqualFold(a.Val, "true") && !hasContent(n) {
				return true
			}
		case "open":
			open = true
		}
	}
	if n.DataAtom == atom.Dialog && !open {
		return true
	}
	class := " " + strings.ToLower(attribute(n, "class")) + " "
	switch n.DataAtom {
	case atom.Button:
		label := strings.ToLower(strings.TrimSpace(attribute(n, "aria-label") + textOf(n)))
		return strings.Contains(class, "copy") || strings.HasPrefix(label, "copy") || strings.HasPrefix(label, "copied")
	}
	return isGutter(n, class)
}

// isGutter reports whether an element only has numbers of lines beside code.
func isGutter(n *html.Node, class string) bool {
	if n.DataAtom != atom.Td && n.DataAtom != atom.Span && n.DataAtom != atom.Div && n.DataAtom != atom.A {
		return false
	}
	named := attribute(n, "data-line-number") != "" ||
		strings.Contains(strings.ReplaceAll(attribute(n, "style"), " ", ""), "user-select:none")
	for _, name := range []string{"gutter", "lineno", "line-no", "line-num",
		"linenum", "lines-num", "blob-num", "ln-num", " ln ", " lnt ", " lntd "} {
		named = named || strings.Contains(class, name)
	}
	return named && strings.Trim(textOf(n), "0123456789 \t\r\n") == ""
}

// hasContent reports whether an element has what is usually the content of a page.
func hasContent(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.DataAtom == atom.Main || d.DataAtom == atom.Article || d.DataAtom == atom.H1 {
			return true
		}
	}
	return n.DataAtom == atom.Main || n.DataAtom == atom.Article || n.DataAtom == atom.H1
}

// hides reports whether the style of an element makes its text invisible, or moves it off the screen.
func hides(style string) bool {
	isZero := func(value string) bool {
		number, err := strconv.ParseFloat(strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz%"), 64)
		return err == nil && number == 0
	}
	flat, clipped := false, false
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		name, value, _ := strings.Cut(declaration, ":")
		value = strings.TrimSpace(strings.TrimSuffix(strings.Join(strings.Fields(value), ""), "!important"))
		switch strings.TrimSpace(name) {
		case "display":
			if value == "none" {
				return true
			}
		case "visibility":
			if value == "hidden" || value == "collapse" {
				return true
			}
		case "color":
			if value == "transparent" {
				return true
			}
		case "opacity", "font-size":
			if isZero(value) {
				return true
			}
		case "clip", "clip-path":
			if strings.HasPrefix(value, "rect(0") || strings.HasPrefix(value, "rect(1px") ||
				strings.HasPrefix(value, "inset(50%") || strings.HasPrefix(value, "inset(100%") {
				return true
			}
		case "left", "top", "right", "text-indent", "margin-left":
			digits := strings.TrimLeft(value, "-")
			if n := len(digits) - len(strings.TrimLeft(digits, "0123456789")); digits != value && n >= len("999") {
				return true
			}
		case "width", "height", "max-width", "max-height":
			flat = flat || isZero(value)
		case "overflow":
			clipped = clipped || value == "hidden" || value == "clip"
		}
	}
	return flat && clipped
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func isInside(n *html.Node, tag atom.Atom) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == tag {
			return true
		}
	}
	return false
}

// The brackets of a box, which the converter would escape.
const boxOpen, boxClose = "\ue000", "\ue001"

// parse returns the tree of a page; nil if it has too many tags.
func parse(source string) *html.Node {
	if strings.Count(source, "<") > maxMarkup {
		return nil
	}
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return nil
	}
	return doc
}

// clearPage removes what is not shown from a page, takes code out of tables that only hold the
// numbers of its lines beside it, and writes the boxes of task lists as text.
func clearPage(doc *html.Node) {
	var unseen, tables []*html.Node
	numbered := map[*html.Node]bool{} // rows with the number of a line
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case isUnseen(n):
			unseen = append(unseen, n)
			if n.DataAtom == atom.Td && n.Parent != nil {
				numbered[n.Parent] = true
			}
		case n.DataAtom == atom.Table:
			tables = append(tables, n)
		case n.DataAtom == atom.Input && strings.EqualFold(attribute(n, "type"), "checkbox"):
			box := boxOpen + " " + boxClose + " "
			for _, a := range n.Attr {
				if a.Key == "checked" {
					box = boxOpen + "x" + boxClose + " "
				}
			}
			if next := n.NextSibling; next != nil && next.Type == html.TextNode {
				next.Data = strings.TrimLeft(next.Data, " ")
			}
			n.Data, n.DataAtom, n.Attr = "span", atom.Span, nil
			n.AppendChild(&html.Node{Type: html.TextNode, Data: box})
		}
	}
	for _, n := range unseen {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	for _, n := range tables {
		pre := onlyCode(n)
		if pre == nil {
			pre = codeOfTable(n, numbered)
		}
		if pre != nil && n.Parent != nil {
			if pre.Parent != nil {
				pre.Parent.RemoveChild(pre)
			}
			n.Parent.InsertBefore(pre, n)
			n.Parent.RemoveChild(n)
		}
	}
}

// boxed returns the text of a cleared page with its boxes.
func boxed(text string) string { return strings.NewReplacer(boxOpen, "[", boxClose, "]").Replace(text) }

// codeOfTable returns the code of a table each of whose rows is a line with its number; nil for other tables.
func codeOfTable(table *html.Node, numbered map[*html.Node]bool) *html.Node {
	var b strings.Builder
	for n := range table.Descendants() {
		switch {
		case n.DataAtom == atom.Table, n.DataAtom == atom.Th, n.DataAtom == atom.Tr && !numbered[n],
			n.DataAtom == atom.Td && n.NextSibling != nil && n.NextSibling.DataAtom == atom.Td:
			return nil
		case n.DataAtom == atom.Td:
			b.WriteString(strings.Trim(textOf(n), "\r\n") + "\n")
		}
	}
	code := &html.Node{Type: html.TextNode, Data: b.String()}
	if b.Len() == 0 || isInside(table, atom.Pre) {
		return code
	}
	pre := &html.Node{Type: html.ElementNode, Data: "pre", DataAtom: atom.Pre}
	pre.AppendChild(code)
	return pre
}

// onlyCode returns the block of code that is all that a table has; nil for other tables.
func onlyCode(table *html.Node) *html.Node {
	var pre *html.Node
	for n := range table.Descendants() {
		switch {
		case n.DataAtom == atom.Pre && pre == nil:
			pre = n
		case n.DataAtom == atom.Pre, n.DataAtom == atom.Table:
			return nil
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" && (pre == nil || !isInside(n, atom.Pre)):
			return nil
		}
	}
	return pre
}

// maxMarkup limits the number of tags in a page that is converted to Markdown.
// The parsed page needs a few hundred bytes for each tag. A page with more tags
// is converted to plain text.
const maxMarkup = 300_000

// baseOf returns the base address for relative links.
func baseOf(doc *html.Node, at *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "base" {
			if u, err := at.Parse(attribute(n, "href")); err == nil {
				return u
			}
		}
	}
	return at
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
