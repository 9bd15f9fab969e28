package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// json reads JSON with comments and trailing commas; nil if it fails.
func (p *parser) json(data []byte) *jsonx.Value {
	lines := &places{Lines: jsonx.NewLines(data)}
	if offset, deep := tooDeep(data); deep {
		// hujson recurses without a limit.
		p.room(lines.pos(offset), maxDepth+1)
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nullAt(jsonx.NewPos(1, 1))
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

// jsonSyntax extracts the position from "hujson: line 1, column 5: message". If
// the text, of size bytes, ends too early, the position is its end.
func (p *parser) jsonSyntax(err error, lines *places, size int) {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		p.fail(lines.pos(size), "invalid JSON: unexpected end of the file", "")
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
	hint := ""
	literal, isText := strings.CutPrefix(message, `invalid literal: "`)
	switch {
	case strings.HasSuffix(message, " after top-level value"):
		message, hint = "text after the JSON value", "a file has one object; remove what follows it"
	case isText && hasBadEscape(literal):
		message, hint = `a string has a backslash that does not begin an escape`, `write \\ or / for a backslash in a path`
	}
	p.fail(jsonx.NewPos(max(line, 1), max(col, 1)), "invalid JSON: "+message, hint)
}

// hasBadEscape reports whether a text has a backslash that begins no escape, as in C:\Users.
func hasBadEscape(literal string) bool {
	for {
		_, rest, found := strings.Cut(literal, `\`)
		switch {
		case !found || rest == "":
			return false
		case rest[0] == 'u':
			if _, err := strconv.ParseUint(rest[1:min(5, len(rest))], 16, 16); err != nil {
				return true
			}
		case !strings.Contains(`"\/bfnrt`, rest[:1]):
			return true
		}
		literal = rest[1:]
	}
}

func (p *parser) fromJSON(v *hujson.Value, lines *places, depth int) *jsonx.Value {
	before := len(p.problems)
	n := p.jsonValue(v, lines, depth)
	p.found(before, n)
	return n
}

func (p *parser) jsonValue(v *hujson.Value, lines *places, depth int) *jsonx.Value {
	n := nullAt(lines.pos(v.StartOffset))
	if !p.room(n.Pos, depth) {
		return n
	}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.Kind = jsonx.Object
		n.Members = p.jsonMembers(t, lines, depth)
	case *hujson.Array:
		n.Kind = jsonx.Array
		for i := range t.Elements {
			n.Items = append(n.Items, p.fromJSON(&t.Elements[i], lines, depth+1))
		}
	case hujson.Literal:
		p.literal(n, t)
	}
	return n
}

func (p *parser) jsonMembers(o *hujson.Object, lines *places, depth int) []jsonx.Member {
	members := make([]jsonx.Member, 0, len(o.Members))
	for i := range o.Members {
		from := &o.Members[i]
		m := jsonx.Member{Pos: lines.pos(from.Name.StartOffset)}
		if name, ok := from.Name.Value.(hujson.Literal); ok {
			m.Name = name.String()
		}
		p.text(m.Pos, m.Name)
		m.Value = p.fromJSON(&from.Value, lines, depth+1)
		members = append(members, m)
	}
	return p.names(members)
}

func (p *parser) literal(n *jsonx.Value, l hujson.Literal) {
	switch l.Kind() {
	case 'n':
	case 't':
		n.Kind, n.Token = jsonx.True, "true"
	case 'f':
		n.Kind, n.Token = jsonx.False, "false"
	case '"':
		p.string(n, l.String())
	default:
		p.number(n, string(l))
	}
}

// places maps offsets in text with quotes added around names to positions in
// the original file.
type places struct {
	*jsonx.Lines
	added []int // offsets of the quotes, ascending
}

// pos returns the position of an offset into the quoted text.
func (p *places) pos(offset int) jsonx.Pos {
	before, _ := slices.BinarySearch(p.added, offset)
	return jsonx.NewPos(p.At(offset - before))
}

// quoteNames quotes unquoted names of members, and writes strings in single quotes
// with double ones, as JSON5 allows both. It returns where in the result it added a
// byte.
func quoteNames(data []byte) (out []byte, added []int) {
	out = make([]byte, 0, len(data))
	opens := false // a member's name may follow
	for i := 0; i < len(data); i++ {
		c, start := data[i], i
		switch {
		case c == '"':
			i, opens = skipString(data, i), false
		case c == '\'':
			opens = false
			if i = skipString(data, i); i >= len(data) {
				break
			}
			out = append(out, '"')
			for at := start + 1; at < i; at++ {
				switch {
				case data[at] == '"':
					added = append(added, len(out))
					out = append(out, '\\', '"')
				case data[at] == '\\' && data[at+1] == '\'': // JSON has no such escape
					at++
					added = append(added, len(out), len(out)+1, len(out)+2, len(out)+3)
					out = append(out, `\u0027`...)
				case data[at] == '\\':
					out = append(out, data[at], data[at+1])
					at++
				default:
					out = append(out, data[at])
				}
			}
			out = append(out, '"')
			continue
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
		case '"', '\'':
			i = skipString(data, i)
		case '/':
			i = skipComment(data, i)
		}
	}
	return 0, false
}

// skipString returns the index of the quote that ends the string at i.
func skipString(data []byte, i int) int {
	quote := data[i]
	for i++; i < len(data) && data[i] != quote; i++ {
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
