package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/text"
)

// facts are what a reader of a page's text has to know of the page.
type facts struct {
	title    string
	refresh  string // the address to which the page leads by itself
	isLogin  bool
	isCheck  bool   // it checks whether a browser visits it
	scripted bool   // it has scripts
	wants    bool   // it says that it needs JavaScript
	data     string // content that scripts would show, as JSON
}

const (
	maxTitle     = 300
	nextToNoText = 40      // characters; a page with less, and scripts, shows its content by these
	littleText   = 300     // the same of a page that says so
	maxPageData  = 2 << 20 // bytes
	minArticle   = 40      // bytes of data that may be content
)

// readFacts reads the facts of a page. It returns none for a page with too many tags.
func readFacts(source string, at *url.URL) (f facts) {
	if strings.Count(source, "<") > maxMarkup {
		return f
	}
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return f
	}
	base := baseOf(doc, at)
	password := false
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.DataAtom {
		case atom.Title:
			if f.title == "" && n.FirstChild != nil && !inside(n, atom.Svg) {
				f.title = text.ClipRunes(strings.Join(strings.Fields(n.FirstChild.Data), " "), maxTitle)
			}
		case atom.Meta:
			if strings.EqualFold(attribute(n, "http-equiv"), "refresh") && f.refresh == "" {
				f.refresh = refreshTarget(attribute(n, "content"), base)
			}
		case atom.Input:
			password = password || strings.EqualFold(attribute(n, "type"), "password")
		case atom.Noscript:
			f.wants = f.wants || strings.Contains(strings.ToLower(textOf(n)), "javascript")
		case atom.Script:
			f.script(n)
		}
	}
	f.isCheck = isCheck(f.title, source)
	f.isLogin = password && !f.isCheck
	return f
}

func inside(n *html.Node, tag atom.Atom) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == tag {
			return true
		}
	}
	return false
}

// refreshTarget returns the address in the content of a meta refresh, such as "0; url=/x".
func refreshTarget(content string, base *url.URL) string {
	_, target, found := strings.Cut(content, ";")
	target = strings.TrimSpace(target)
	if !found || len(target) < 4 || !strings.EqualFold(target[:3], "url") {
		return ""
	}
	target = strings.Trim(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(target[3:]), "=")), `"'`)
	u, err := base.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Redacted()
}

// script notes a script, or the data that it holds for others.
func (f *facts) script(n *html.Node) {
	content := ""
	if n.FirstChild != nil {
		content = strings.TrimSpace(n.FirstChild.Data)
	}
	kind := strings.ToLower(attribute(n, "type"))
	switch {
	case attribute(n, "id") == "__NEXT_DATA__" || attribute(n, "id") == "__NUXT_DATA__":
		f.scripted = true
		if content != "" && len(content) <= maxPageData {
			f.data = content
		}
	case kind == "application/ld+json":
		if f.data == "" && len(content) >= minArticle && len(content) <= maxPageData &&
			slices.ContainsFunc([]string{"articleBody", "description", "recipeInstructions", "reviewBody", "text"},
				func(key string) bool { return strings.Contains(content, `"`+key+`"`) }) {
			f.data = content
		}
	case kind == "" || kind == "module" || strings.HasSuffix(kind, "javascript"):
		f.scripted = true
	}
}

// isCheck reports whether a page only finds out whether a browser visits it.
func isCheck(title, source string) bool {
	title = strings.ToLower(title)
	for _, sign := range []string{
		"just a moment", "attention required! | cloudflare", "checking your browser", "are you a robot",
		"access denied | ", "security check", "verify you are human", "robot check",
	} {
		if strings.HasPrefix(title, sign) {
			return true
		}
	}
	return slices.ContainsFunc([]string{
		"_cf_chl_opt", "/cdn-cgi/challenge-platform/h/", "captcha-delivery.com", "px-captcha",
		"Enable JavaScript and cookies to continue", "awsWafCookieDomainList",
	}, func(sign string) bool { return strings.Contains(source, sign) })
}

// isEmpty reports whether the content of a page is missing from its text, because scripts
// show it.
func (f *facts) isEmpty(content string) bool {
	n := utf8.RuneCountInString(content)
	return f.scripted && (n < nextToNoText || n < littleText && f.wants) || f.data != "" && n < nextToNoText
}

// notes returns what to say before the text of a page.
func (f *facts) notes(content string) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, "["+format+"]\n", args...) }
	head := text.Head(content, 2*maxTitle)
	if f.title != "" && !strings.Contains(strings.Join(strings.Fields(head), " "), f.title) {
		say("title: %s", tool.OneLine(f.title))
	}
	switch {
	case f.isCheck:
		say("this page checks for a browser and has none of the content; look for it elsewhere, such as in an API or a copy")
	case f.isLogin:
		say("this page asks to log in; what it may lead to is not shown")
	case f.refresh != "" && utf8.RuneCountInString(content) < littleText:
		say("the page leads on to %s", tool.OneLine(f.refresh))
	case f.isEmpty(content) && f.data != "":
		say("the page shows its content with JavaScript; what follows is the data in it")
	case f.isEmpty(content):
		say("the page needs JavaScript to show its content, which is not run")
	}
	return out.String()
}

// withData returns the text of a page with the data that its scripts would show.
func (f *facts) withData(content string) string {
	if f.data == "" || f.isLogin || f.isCheck || !f.isEmpty(content) {
		return content
	}
	return strings.TrimSpace(content + "\n\n```json\n" + indentJSON(f.data) + "\n```")
}

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

// The brackets of a box, which the converter would escape.
const boxOpen, boxClose = "\ue000", "\ue001"

// cleared parses a page without what is not shown, with code taken out of tables that only hold the
// numbers of its lines beside it, and with the boxes of task lists as text.
func cleared(source string) (*html.Node, error) {
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return nil, err
	}
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
			pre = lines(n, numbered)
		}
		if pre != nil && n.Parent != nil {
			if pre.Parent != nil {
				pre.Parent.RemoveChild(pre)
			}
			n.Parent.InsertBefore(pre, n)
			n.Parent.RemoveChild(n)
		}
	}
	return doc, nil
}

// boxed returns the text of a cleared page with its boxes.
func boxed(text string) string { return strings.NewReplacer(boxOpen, "[", boxClose, "]").Replace(text) }

// lines returns the code of a table each of whose rows is a line with its number; nil for other tables.
func lines(table *html.Node, numbered map[*html.Node]bool) *html.Node {
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
	if b.Len() == 0 || inside(table, atom.Pre) {
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
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" && (pre == nil || !inside(n, atom.Pre)):
			return nil
		}
	}
	return pre
}
