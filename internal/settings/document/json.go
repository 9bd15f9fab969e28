package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// json reads JSON with comments and trailing commas; nil if it fails.
func (p *parser) json(data []byte) *Node {
	lines := &places{Lines: jsonx.NewLines(data)}
	if offset, deep := tooDeep(data); deep {
		// The library recurses without a limit.
		line, col := lines.At(offset)
		p.room(line, col, maxDepth+1)
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &Node{Kind: Null, Line: 1, Col: 1}
	}
	// A comment on the last line ends with the line, not with the file.
	quoted, added := quoteNames(append(bytes.Clone(data), '\n'))
	v, err := hujson.Parse(quoted)
	if err != nil {
		p.jsonSyntax(err, lines, len(bytes.TrimRight(data, " \t\r\n")))
		return nil
	}
	lines.added = added
	return p.fromJSON(&v, lines, 0)
}

// jsonSyntax extracts the position from "hujson: line 1, column 5: message". A text
// of size bytes that ends too early has its mistake at its end.
func (p *parser) jsonSyntax(err error, lines *places, size int) {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		line, col := lines.At(size)
		p.fail(line, col, "invalid JSON: unexpected end of the file", "")
		return
	}
	line, col := 1, 1
	message := strings.TrimPrefix(err.Error(), "hujson: ")
	if n, _ := fmt.Sscanf(message, "line %d, column %d:", &line, &col); n == 2 {
		_, message, _ = strings.Cut(message, ": ")
	}
	if inner := errors.Unwrap(err); inner != nil {
		message = inner.Error()
	}
	p.fail(max(line, 1), max(col, 1), "invalid JSON: "+message, "")
}

func (p *parser) fromJSON(v *hujson.Value, lines *places, depth int) *Node {
	before := len(p.problems)
	n := p.jsonNode(v, lines, depth)
	n.Problems = p.since(before)
	return n
}

func (p *parser) jsonNode(v *hujson.Value, lines *places, depth int) *Node {
	n := &Node{}
	n.Line, n.Col = lines.At(v.StartOffset)
	if !p.room(n.Line, n.Col, depth) {
		return n
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Object
		n.Fields = p.jsonFields(t, lines, depth)
	case *hujson.Array:
		n.Kind = List
		for i := range t.Elements {
			n.Items = append(n.Items, p.fromJSON(&t.Elements[i], lines, depth+1))
		}
	case hujson.Literal:
		p.literal(n, t)
	}
	return n
}

func (p *parser) jsonFields(o *hujson.Object, lines *places, depth int) []Field {
	fields := make([]Field, 0, len(o.Members))
	for i := range o.Members {
		m := &o.Members[i]
		f := Field{}
		f.Line, f.Col = lines.At(m.Name.StartOffset)
		if name, ok := m.Name.Value.(hujson.Literal); ok {
			f.Name = name.String()
		}
		p.text(f.Line, f.Col, f.Name)
		f.Value = p.fromJSON(&m.Value, lines, depth+1)
		fields = append(fields, f)
	}
	return p.names(fields)
}

func (p *parser) literal(n *Node, l hujson.Literal) {
	switch l.Kind() {
	case 'n':
		n.Kind = Null
	case 't', 'f':
		n.Kind, n.Bool = Bool, l.Bool()
	case '"':
		n.Kind, n.Text = String, l.String()
		p.text(n.Line, n.Col, n.Text)
	default:
		n.Kind, n.Text = Number, string(l)
		p.number(n.Line, n.Col, n.Text)
	}
}

// places maps offsets in text with quotes added around names to positions in
// the original file.
type places struct {
	*jsonx.Lines
	added []int // offsets of the quotes, ascending
}

// At returns line and column of an offset into the quoted text.
func (p *places) At(offset int) (line, col int) {
	before, _ := slices.BinarySearch(p.added, offset)
	return p.Lines.At(offset - before)
}

// quoteNames quotes unquoted names of members, as JSON5 allows them, and
// returns where in the result it did so.
func quoteNames(data []byte) (out []byte, added []int) {
	out = make([]byte, 0, len(data))
	opens := false // a member's name may come here
	for i := 0; i < len(data); i++ {
		c, start := data[i], i
		switch {
		case c == '"':
			i, opens = skipString(data, i), false
		case c == '/':
			i = skipComment(data, i)
		case c == '{' || c == ',':
			opens = true
		case strings.IndexByte(" \t\r\n", c) >= 0:
		case opens && isNameByte(c):
			for i+1 < len(data) && isNameByte(data[i+1]) {
				i++
			}
			if rest := bytes.TrimLeft(data[i+1:], " \t\r\n"); len(rest) > 0 && rest[0] == ':' {
				added = append(added, len(out), len(out)+i-start+2)
				out = append(append(append(out, '"'), data[start:i+1]...), '"')
				opens = false
				continue
			}
			opens = false
		default:
			opens = false
		}
		out = append(out, data[start:min(i+1, len(data))]...)
	}
	return out, added
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// tooDeep reports whether brackets nest deeper than maxDepth, and where.
func tooDeep(data []byte) (int, bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > maxDepth+1 {
				return i, true
			}
		case '}', ']':
			depth--
		case '"':
			i = skipString(data, i)
		case '/':
			i = skipComment(data, i)
		}
	}
	return 0, false
}

// skipString returns the index of the quote that ends the string at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// skipComment returns the index of the last byte of the comment at i, or i if
// none starts there.
func skipComment(data []byte, i int) int {
	if i+1 >= len(data) {
		return i
	}
	end := ""
	switch data[i+1] {
	case '/':
		end = "\n"
	case '*':
		end = "*/"
	default:
		return i
	}
	n := bytes.Index(data[i+2:], []byte(end))
	if n < 0 {
		return len(data)
	}
	return i + 2 + n + len(end) - 1
}
