// Package markdown formats Markdown text for a terminal. goldmark parses it:
// CommonMark 0.31, with GitHub's tables, check boxes and strikethrough.
//
// What servers declare as Markdown is often a listing, a log or a diff.
// Therefore line breaks and indents are kept, lines that fit the screen are not
// joined, everything that was written is shown (HTML, link definitions and
// references to them are text), and a unified diff is shown as a diff.
//
// The text may be hostile: everything that a terminal would interpret is escaped
// first, so that the only escape sequences in the output are those of styles, and
// the URLs of links are always printed. Time and depth are limited.
package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/toolreg/toolreg/internal/ui"
)

// document is a parsed text: its tree, and additional information for the painter.
type document struct {
	source []byte
	root   ast.Node
	// indents holds the number of blanks before the text of a paragraph's line,
	// by the offset of the line.
	indents map[int]int
	// tasks holds the list items with a check box; true if it is checked.
	tasks map[ast.Node]bool
}

// parse parses text that is safe to show and has no tabs. HTML and link
// definitions are ordinary text. Without emphasis, its marks are text as well.
func parse(source string, emphasis bool) *document {
	d := &document{source: []byte(source), indents: map[int]int{}, tasks: map[ast.Node]bool{}}
	inline := []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
	}
	if emphasis {
		inline = append(inline, util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(strikeParser{}, 500))
	}
	p := parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(diffParser{}, 50),
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(limited{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(limited{parser.NewATXHeadingParser()}, 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(limited{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(util.Prioritized(d, 100)),
	)
	d.root = p.Parse(text.NewReader(d.source))
	return d
}

// maxDepth limits the nesting of quotes and list items; deeper marks are text.
const maxDepth = 12

// limited is a block parser that does not open blocks that are nested too deeply or
// have a line that is too long.
type limited struct{ parser.BlockParser }

func (l limited) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	at, position := reader.Position()
	line, _ := reader.PeekLine()
	node, state := l.BlockParser.Open(parent, reader, pc)
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindBlockquote || n.Kind() == ast.KindListItem {
			depth++
		}
	}
	if node != nil && (depth >= maxDepth || len(line) > maxInline) {
		reader.SetPosition(at, position)
		return nil, parser.NoChildren
	}
	return node, state
}

// Transform is called for each paragraph after its last line: it converts the
// paragraph to a table if it is one, and extracts the check box and indents.
func (d *document) Transform(node *ast.Paragraph, _ text.Reader, _ parser.Context) {
	readTable(d.source, node)
	if node.Parent() == nil {
		return
	}
	all, size := node.Lines(), 0
	first := all.At(0).Start
	column := first - d.lineStart(first)
	for _, line := range all.Sliced(0, all.Len()) {
		size += line.Len()
		value := line.Value(d.source)
		n := len(value) - len(bytes.TrimLeft(value, " "))
		// Otherwise it is a lazy continuation of its quote or item.
		if start := d.lineStart(line.Start); n > 0 && line.Start-start >= column {
			d.indents[start] = n
		}
	}
	if size > maxInline {
		long := &verbatim{}
		long.SetLines(all)
		long.SetPos(node.Pos())
		node.Parent().ReplaceChild(node.Parent(), node, long)
		return
	}
	d.readTask(node)
}

// lineStart returns the offset of the line that contains an offset.
func (d *document) lineStart(at int) int { return bytes.LastIndexByte(d.source[:at], '\n') + 1 }

// readTask removes the check box from the first line of a list item.
func (d *document) readTask(node *ast.Paragraph) {
	item := node.Parent()
	if item.Kind() != ast.KindListItem || item.FirstChild() != ast.Node(node) {
		return
	}
	first := node.Lines().At(0)
	first = first.TrimLeftSpace(d.source)
	t := first.Value(d.source)
	if len(t) > 4 && t[0] == '[' && t[2] == ']' && t[3] == ' ' && strings.IndexByte(" xX", t[1]) >= 0 {
		d.tasks[item] = t[1] != ' '
		node.Lines().Set(0, first.WithStart(first.Start+4))
	}
}

type diffParser struct{}

func (diffParser) Trigger() []byte { return []byte("-d") }

func (diffParser) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	source := reader.Source()
	_, line := reader.PeekLine()
	column := line.Start - (bytes.LastIndexByte(source[:line.Start], '\n') + 1)
	n := ui.DiffLength(func(yield func(string) bool) {
		rest, indent := source[line.Start:], 0
		for l := range bytes.Lines(rest) {
			l = bytes.TrimSuffix(l, []byte("\n"))
			if !yield(string(l[min(indent, len(l)):])) {
				return
			}
			indent = column // of a quote or list item, for every line except the first
		}
	})
	if n == 0 {
		return nil, parser.NoChildren
	}
	node := &diffBlock{left: n - 1}
	node.Lines().Append(line)
	reader.AdvanceToEOL()
	return node, parser.NoChildren
}

func (diffParser) Continue(node ast.Node, reader text.Reader, _ parser.Context) parser.State {
	d := node.(*diffBlock)
	if d.left == 0 {
		return parser.Close
	}
	d.left--
	_, line := reader.PeekLine()
	d.Lines().Append(line)
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

func (diffParser) Close(ast.Node, text.Reader, parser.Context) {}
func (diffParser) CanInterruptParagraph() bool                 { return true }
func (diffParser) CanAcceptIndentedLine() bool                 { return false }

type strikeParser struct{}

func (strikeParser) Trigger() []byte         { return []byte("~") }
func (strikeParser) IsDelimiter(b byte) bool { return b == '~' }
func (strikeParser) OnMatch(int) ast.Node    { return &struck{} }

func (strikeParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (s strikeParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 2, s)
	if node == nil || node.OriginalLength > 2 || before == '~' {
		return nil
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}

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

// maxColumns is the maximum number of columns of a table.
const maxColumns = 64

// readTable converts the lines of a paragraph to a table, if it has a head with
// bars above a line of dashes.
func readTable(source []byte, node *ast.Paragraph) {
	all := node.Lines()
	for i := range all.Len() - 1 {
		head, under := cells(source, all.At(i)), cells(source, all.At(i+1))
		if len(head) != len(under) || len(head) > maxColumns ||
			!hasBar(source, all.At(i)) || !isDelimiter(source, all.At(i+1), under) {
			continue
		}
		for _, line := range all.Sliced(i, all.Len()) {
			if line.Len() > maxInline {
				return
			}
		}
		t := &tableBlock{}
		for _, c := range under {
			t.align = append(t.align, string(c.Value(source)))
		}
		for n, line := range all.Sliced(i, all.Len()) {
			t.Lines().Append(line)
			if n != 1 {
				readRow(source, t, line)
			}
		}
		t.SetPos(all.At(i).Start)
		node.Parent().InsertAfter(node.Parent(), node, t)
		if all.SetSliced(0, i); i == 0 {
			node.Parent().RemoveChild(node.Parent(), node)
		}
		return
	}
}

func hasBar(source []byte, line text.Segment) bool {
	return bytes.Contains(line.Value(source), []byte("|"))
}

// readRow adds the cells of one row. The last cell includes excess cells, so
// that no text is lost.
func readRow(source []byte, t *tableBlock, line text.Segment) {
	row := cells(source, line)
	if n := len(t.align); len(row) > n {
		row[n-1] = row[n-1].WithStop(row[len(row)-1].Stop)
		row = row[:n]
	}
	for i := range t.align {
		cell := ast.NewTextBlock()
		if i < len(row) && row[i].Len() > 0 {
			cell.Lines().Append(row[i])
		}
		t.AppendChild(t, cell)
	}
}

// isDelimiter reports whether a line has the form | --- | :-: |.
func isDelimiter(source []byte, line text.Segment, cells []text.Segment) bool {
	if !hasBar(source, line) {
		return false
	}
	for _, c := range cells {
		dashes := strings.TrimSuffix(strings.TrimPrefix(string(c.Value(source)), ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return false
		}
	}
	return true
}

// cells splits a row at the bars that are not escaped.
func cells(source []byte, line text.Segment) []text.Segment {
	line = line.TrimLeftSpace(source)
	line = line.TrimRightSpace(source)
	value := line.Value(source)
	start, end := 0, len(value)
	if bytes.HasPrefix(value, []byte("|")) {
		start = 1
	}
	if end > start && value[end-1] == '|' && !bytes.HasSuffix(value, []byte(`\|`)) {
		end--
	}
	var out []text.Segment
	for i := start; i <= end; i++ {
		switch {
		case i == end || value[i] == '|':
			cell := text.NewSegment(line.Start+start, line.Start+i)
			cell = cell.TrimLeftSpace(source)
			out = append(out, cell.TrimRightSpace(source))
			start = i + 1
		case value[i] == '\\':
			i++
		}
	}
	return out
}
