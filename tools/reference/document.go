package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// documentPage appends pages of docs to a man page. The title of the first is the title of
// the man page, and the titles of the others become headings.
func documentPage(r *roff, docs string, files []string) (string, error) {
	r.heading("DESCRIPTION")
	for i, file := range files {
		source, err := os.ReadFile(filepath.Join(docs, file))
		if err != nil {
			return "", err
		}
		d := document{r, source}
		root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
		n := root.FirstChild()
		if i == 0 {
			n = n.NextSibling()
		}
		for ; n != nil; n = n.NextSibling() {
			if err := d.block(n); err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return r.String(), nil
}

// document writes a parsed Markdown page.
type document struct {
	*roff
	source []byte
}

func (d *document) block(n ast.Node) error {
	switch n := n.(type) {
	case *ast.Heading:
		switch title := plain(n, d.source); n.Level {
		case 1, 2:
			d.heading(strings.ToUpper(title))
		default:
			d.subheading(title)
		}
	case *ast.Paragraph, *ast.TextBlock:
		d.paragraph(d.inline(n))
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		d.literal(string(n.Lines().Value(d.source)))
	case *ast.List:
		return d.list(n)
	case *extast.Table:
		d.table(n)
	case *ast.HTMLBlock: // a comment
	default:
		return fmt.Errorf("cannot write a %s", n.Kind())
	}
	return nil
}

// list writes the items of a list. Later paragraphs of an item are indented like its first.
func (d *document) list(l *ast.List) error {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "\u2022"
		if l.IsOrdered() {
			mark = fmt.Sprintf("%d.", number)
			number++
		}
		first := item.FirstChild()
		if first == nil {
			continue
		}
		d.bullet(mark, d.inline(first))
		if first.NextSibling() == nil {
			continue
		}
		d.WriteString(".RS 4\n")
		for n := first.NextSibling(); n != nil; n = n.NextSibling() {
			if err := d.block(n); err != nil {
				return err
			}
		}
		d.WriteString(".RE\n")
	}
	return nil
}

// table writes each row as an item: the first cell, then the last one, then the others with
// their headings. Columns would not fit on a terminal.
func (d *document) table(t *extast.Table) {
	var heads []string
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, d.inline(c))
		}
		if _, ok := row.(*extast.TableHeader); ok {
			heads = cells
			continue
		}
		last := len(cells) - 1
		var between []string
		for i := 1; i < last; i++ {
			if cells[i] != "" {
				between = append(between, heads[i]+": "+cells[i])
			}
		}
		meaning := cells[last]
		if len(between) > 0 {
			meaning = strings.TrimSpace(meaning + " (" + strings.Join(between, "; ") + ")")
		}
		d.item(cells[0], meaning)
	}
}

// inline returns the text of a block: code in bold, emphasis in italics.
func (d *document) inline(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.WriteString(escape(string(c.Value(d.source))))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteString(" ")
			}
		case *ast.String:
			b.WriteString(escape(string(c.Value)))
		case *ast.CodeSpan:
			b.WriteString(bold(plain(c, d.source)))
		case *ast.Emphasis:
			b.WriteString(italic(plain(c, d.source)))
		case *ast.AutoLink:
			b.WriteString(escape(string(c.URL(d.source))))
		default: // links
			b.WriteString(d.inline(c))
		}
	}
	return b.String()
}

// plain returns the text below a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(source))
			continue
		}
		b.WriteString(plain(c, source))
	}
	return b.String()
}
