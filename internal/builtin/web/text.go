package web

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlText returns the text of a page as a reader sees it: blocks on separate
// lines, spaces collapsed outside pre. It processes tokens rather than a tree,
// so nesting may be arbitrarily deep; what attributes hide is left out of pages that are not.
func htmlText(source string) string {
	if doc := parse(source); doc != nil {
		var b strings.Builder
		if clearPage(doc); html.Render(&b, doc) == nil {
			source = b.String()
		}
	}
	return boxed(tokenText(source))
}

// tokenText is htmlText for a page with nothing hidden.
func tokenText(source string) string {
	t := &plainText{}
	z := html.NewTokenizer(strings.NewReader(source))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return strings.TrimSpace(t.out.String())
		case html.TextToken:
			text := string(z.Text())
			if t.raised && isExponent(text) {
				text = "^" + strings.TrimSpace(text)
			}
			t.raised = false
			t.text(text)
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, _ := z.TagName()
			t.tag(kind, atom.Lookup(name))
		}
	}
}

// isExponent reports whether the text of a sup element is a number or a single
// letter: without a mark, 10 to the power of 6 would read as 106.
func isExponent(s string) bool {
	s = strings.TrimSpace(s)
	digits := strings.TrimLeft(s, "+-−")
	return digits != "" && strings.Trim(digits, "0123456789") == "" ||
		len(s) == 1 && 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z'
}

type plainText struct {
	out      strings.Builder
	hidden   atom.Atom // the element whose content is skipped, or 0
	depth    int       // number of open elements with that name
	verbatim int       // open pre elements
	breaks   int       // line breaks to write before the next text
	blank    bool      // write a space before the next text
	raised   bool      // the next text is the start of a sup element
}

// tag handles a tag. HTML ignores the slash of one such as <br/>, except that an SVG image can
// end there.
func (t *plainText) tag(kind html.TokenType, tag atom.Atom) {
	opens, closes := kind == html.StartTagToken, kind == html.EndTagToken
	switch {
	case t.hidden != 0:
		if tag == t.hidden && opens {
			t.depth++
		} else if tag == t.hidden && closes {
			if t.depth--; t.depth == 0 {
				t.hidden = 0
			}
		}
		return
	case isHidden(tag) && !closes && (opens || tag != atom.Svg):
		t.hidden, t.depth = tag, 1
		return
	case tag == atom.Pre && opens:
		t.verbatim++
	case tag == atom.Pre && closes:
		t.verbatim = max(t.verbatim-1, 0)
	}
	t.raised = opens && tag == atom.Sup
	t.space(tag)
	if opens && tag == atom.Li {
		t.text("- ")
	}
}

// space records the white space around an element.
func (t *plainText) space(tag atom.Atom) {
	switch tag {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre, atom.Table,
		atom.Ul, atom.Ol, atom.Dl, atom.Article, atom.Section:
		t.breaks = max(t.breaks, 2)
	case atom.Br:
		t.breaks++
		t.breaks = min(t.breaks, 2)
	case atom.Div, atom.Li, atom.Tr, atom.Dt, atom.Dd, atom.Hr, atom.Header, atom.Footer, atom.Nav, atom.Main,
		atom.Aside, atom.Form, atom.Details, atom.Summary, atom.Figcaption, atom.Caption:
		t.breaks = max(t.breaks, 1)
	case atom.Td, atom.Th:
		t.blank = true
	}
}

func isHidden(tag atom.Atom) bool { return slices.Contains(hiddenTags(), tag) }

// hiddenTags returns the elements whose content is not part of the text.
func hiddenTags() []atom.Atom {
	return []atom.Atom{
		atom.Script, atom.Style, atom.Title, atom.Noscript, atom.Template, atom.Iframe, atom.Svg,
		atom.Object, atom.Textarea, atom.Select, atom.Datalist, atom.Canvas,
	}
}

func (t *plainText) text(s string) {
	if t.hidden != 0 {
		return
	}
	if t.verbatim > 0 {
		if s != "" {
			t.writeSpace()
			t.out.WriteString(s)
		}
		return
	}
	for i, word := range strings.FieldsFunc(s, isBlank) {
		if i > 0 || isBlank(rune(s[0])) {
			t.blank = true
		}
		t.writeSpace()
		t.out.WriteString(word)
	}
	if s != "" && isBlank(rune(s[len(s)-1])) {
		t.blank = true
	}
}

// writeSpace writes the white space before a text.
func (t *plainText) writeSpace() {
	switch {
	case t.out.Len() == 0:
	case t.breaks > 0:
		t.out.WriteString("\n\n"[:t.breaks])
	case t.blank:
		t.out.WriteByte(' ')
	}
	t.breaks, t.blank = 0, false
}

// isBlank reports whether HTML collapses the character; a non-breaking space is
// kept.
func isBlank(r rune) bool { return strings.ContainsRune(" \t\r\n\f", r) }
