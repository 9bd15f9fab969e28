package settings

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/trust"
)

// Document is a file of YAML or of JSON with comments, read by the rules of
// settings files: at most 1 MiB, no tags, no duplicate keys, bounded aliases.
// It knows the place of every value, for messages.
type Document struct {
	File string // path, as given
	Sum  string // sha256 of the bytes that were read, hex
	root *node
}

// ReadDocument reads a file once and parses what it read; its name tells the
// format. It never waits for a pipe. Without problems the document is an
// object; with any it is nil.
func ReadDocument(path string) (*Document, []Problem) {
	f, err := trust.Read(path, maxFile)
	if err != nil {
		return nil, []Problem{unreadable(path, err)}
	}
	d, problems := ParseDocument(path, f.Data)
	if d != nil {
		d.Sum = f.Sum
	}
	return d, problems
}

// ParseDocument is [ReadDocument] for bytes that were read already; Sum is left
// empty.
func ParseDocument(path string, data []byte) (*Document, []Problem) {
	return newDocument(path, parse(path, data))
}

// ParseForeign is [ParseDocument] for a file of another program, which may hold
// much else: it may be larger and hold strings that no setting takes.
func ParseForeign(path string, data []byte) (*Document, []Problem) {
	p := parser{file: path, limit: 10 * maxNodes, foreign: true}
	return newDocument(path, p.document(path, data))
}

func newDocument(path string, doc document) (*Document, []Problem) {
	if doc.root == nil || len(doc.problems) > 0 {
		sortProblems(doc.problems)
		return nil, doc.problems
	}
	return &Document{File: path, root: doc.root}, nil
}

// Members returns the members of the object that a path of names leads to, in
// file order; none where there is no such object. Their origins have no scope.
func (d *Document) Members(path ...string) []Named {
	n := d.root
	for _, name := range path {
		n = n.get(name)
	}
	if n == nil {
		return nil
	}
	out := make([]Named, len(n.fields))
	for i, f := range n.fields {
		out[i] = Named{Name: f.name, JSON: f.value.encode(), Origin: Origin{Name: d.File, Line: f.line, Col: f.col}, node: f.value}
	}
	return out
}

// JSON returns the document: members in file order, numbers as written.
func (d *Document) JSON() json.RawMessage { return d.root.encode() }

// Problem makes a problem at the place of the value that a JSON pointer names,
// or of the nearest value around it.
func (d *Document) Problem(pointer, message, hint string) Problem {
	line, col := d.root.locate(pointer)
	return Problem{File: d.File, Line: line, Col: col, Message: message, Hint: hint}
}

// SortProblems orders problems of one file by place and drops repetitions.
func SortProblems(problems []Problem) []Problem {
	sortProblems(problems)
	return slices.Compact(problems)
}

// At returns where the value that a JSON pointer names was set, or the nearest
// value around it.
func (n Named) At(pointer string) Origin {
	o := n.Origin
	if pointer != "" && n.node != nil && o.Line > 0 {
		o.Line, o.Col = n.node.locate(pointer)
	}
	return o
}

// locate returns the place of what a JSON pointer names. A member's place is
// that of its name.
func (n *node) locate(pointer string) (line, col int) {
	line, col = n.line, n.col
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = unescape.Replace(token)
		next := (*node)(nil)
		for _, f := range n.fields {
			if f.name == token {
				next, line, col = f.value, f.line, f.col
			}
		}
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.items) {
			next = n.items[i]
			line, col = next.line, next.col
		}
		if next == nil {
			break
		}
		n = next
	}
	return line, col
}
