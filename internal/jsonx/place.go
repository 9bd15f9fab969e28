package jsonx

import (
	"iter"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// EscapeToken escapes a key as a token of a JSON pointer (RFC 6901).
func EscapeToken(key string) string {
	if strings.IndexByte(key, '~') >= 0 {
		key = strings.ReplaceAll(key, "~", "~0")
	}
	if strings.IndexByte(key, '/') >= 0 {
		key = strings.ReplaceAll(key, "/", "~1")
	}
	return key
}

// Tokens yields the keys and indexes in a JSON pointer. The pointer "" is the
// whole document and has none.
func Tokens(pointer string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if pointer == "" {
			return
		}
		for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			if strings.IndexByte(token, '~') >= 0 {
				token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
			}
			if !yield(token) {
				return
			}
		}
	}
}

// Index returns the index that a token of a pointer denotes in an array of n
// elements, or -1 if it is invalid.
func Index(token string, n int) int {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= n {
		return -1
	}
	return i
}

// Step returns the value at one token of a pointer; nil if there is none.
func (v *Value) Step(token string) *Value {
	if !v.Is(Array) {
		return v.Get(token)
	}
	if i := Index(token, len(v.Items)); i >= 0 {
		return v.Items[i]
	}
	return nil
}

// Walk calls visit with every value from v downwards and its dotted key, which
// begins with key: a.b for members, a[0] for elements.
func (v *Value) Walk(key string, visit func(key string, v *Value)) {
	visit(key, v)
	for i, item := range v.Items {
		item.Walk(key+"["+strconv.Itoa(i)+"]", visit)
	}
	for _, m := range v.Members {
		name := m.Name
		if key != "" {
			name = key + "." + name
		}
		m.Value.Walk(name, visit)
	}
}

// SetPos sets the position of v and of everything below it.
func (v *Value) SetPos(p Pos) {
	v.Pos = p
	for _, item := range v.Items {
		item.SetPos(p)
	}
	for i := range v.Members {
		v.Members[i].Pos = p
		v.Members[i].Value.SetPos(p)
	}
}

// Locate returns the position of the value that a JSON pointer names, or of the
// nearest enclosing value. A member's position is that of its name.
func (v *Value) Locate(pointer string) Pos {
	at := v.Pos
	for token := range Tokens(pointer) {
		next := v.Step(token)
		if next == nil {
			break
		}
		if at = next.Pos; v.Kind == Object {
			at = v.Members[v.index(token)].Pos
		}
		v = next
	}
	return at
}

// Lines converts offsets in a text to line and column numbers. It is not safe for
// concurrent use.
type Lines struct {
	data   []byte
	starts []int // offset of each line
	offset int   // of the last result, because the next offset is usually a little larger
	column int
}

// NewLines returns the Lines of a text, which must not change.
func NewLines(data []byte) *Lines {
	l := &Lines{data: data, starts: []int{0}, column: 1}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// At returns the line and column of an offset, both starting at 1, with columns
// in characters.
func (l *Lines) At(offset int) (line, column int) {
	offset = min(max(offset, 0), len(l.data))
	line = sort.SearchInts(l.starts, offset+1)
	start := l.starts[line-1]
	if l.offset < start || l.offset > offset {
		l.offset, l.column = start, 1
	}
	l.column += utf8.RuneCount(l.data[l.offset:offset])
	l.offset = offset
	return line, l.column
}
