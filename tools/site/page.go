package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// repository is where links to files that are not pages lead.
const repository = "https://github.com/toolreg/toolreg/blob/main/"

// page is a page of the site.
type page struct {
	source   string // the Markdown file, relative to the repository
	address  string // the HTML file, relative to the site
	title    string
	sections []section
	body     []byte
}

// section is the text below a heading; the first one is below the title.
type section struct {
	id, title, text string
	level           int
}

// readPage reads a page and converts it to HTML. resolve converts the target of a link.
func readPage(root, source, address string, resolve func(target string) (string, error)) (*page, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(source)))
	if err != nil {
		return nil, err
	}
	p := &page{source: source, address: address}
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Footnote),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(data), parser.WithContext(parser.NewContext(parser.WithIDs(&headingIDs{}))))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			p.sections = append(p.sections, section{id: string(id.([]byte)), title: plain(n, data), level: n.Level})
		case *ast.Link:
			var target string
			target, err = resolve(string(n.Destination))
			n.Destination = []byte(target)
		case *ast.Image:
			var target string
			target, err = resolve(string(n.Destination))
			n.Destination = []byte(target)
		case *ast.Paragraph, *ast.TextBlock, *ast.FencedCodeBlock:
			p.addText(n, data)
		default:
			if n.Kind().String() == "TableCell" {
				p.addText(n, data)
			}
		}
		return ast.WalkContinue, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if len(p.sections) == 0 || p.sections[0].level != 1 {
		return nil, fmt.Errorf("%s does not begin with a title", source)
	}
	p.title = p.sections[0].title
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, data, doc); err != nil {
		return nil, err
	}
	p.body = b.Bytes()
	return p, nil
}

// addText adds the text of a block to the last section.
func (p *page) addText(n ast.Node, data []byte) {
	if len(p.sections) == 0 {
		return
	}
	s := &p.sections[len(p.sections)-1]
	s.text = strings.TrimSpace(s.text + " " + strings.Join(strings.Fields(plain(n, data)), " "))
}

// plain returns the text below a node.
func plain(n ast.Node, data []byte) string {
	if block, ok := n.(*ast.FencedCodeBlock); ok {
		return string(block.Lines().Value(data))
	}
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(data))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
			continue
		}
		b.WriteString(plain(c, data))
	}
	return b.String()
}

// headingIDs generates the ids that GitHub generates, so that links between pages work in
// both places.
type headingIDs struct{ used map[string]int }

// Generate implements [parser.IDs].
func (h *headingIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, string(value))
	if h.used == nil {
		h.used = map[string]int{}
	}
	n := h.used[id]
	h.used[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

// Put implements [parser.IDs].
func (h *headingIDs) Put([]byte) {}

// relative returns the address of a file of the site as a link from a page.
func relative(from, to string) string {
	up := strings.Repeat("../", strings.Count(from, "/"))
	return up + to
}

// addressOf returns the address of a page in docs, given relative to docs.
func addressOf(file string) string {
	if file == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(file, path.Ext(file)) + ".html"
}
