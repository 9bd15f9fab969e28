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

// read parses text that is safe to show and has no tabs. HTML and link
// definitions are ordinary text. Without emphasis, its marks are text as well.
func read(source string, emphasis bool) *document {
	d := &document{source: []byte(source), indents: map[int]int{}, tasks: map[ast.Node]bool{}}
	inline := []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
	}
	if emphasis {
		inline = append(inline, util.Prioritized(parser.NewEmphasisParser(), 500), util.Prioritized(strikeParser{}, 500))
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
		if start := d.lineStart(line.Start); n > 0 && line.Start-start >= column { // otherwise it is a lazy continuation of its quote or item
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
