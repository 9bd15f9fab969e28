// Package document reads files in YAML or in JSON with comments into a jsonx tree
// that records the position of each value, so that a mistake can be reported with
// its file, line and column.
//
// The rules are those of settings files: at most 1 MiB, no YAML tags, no
// duplicate keys, bounded depth and aliases, numbers as JSON writes them.
// Settings, plugin manifests and the settings of other programs are read with it;
// its callers interpret the values.
package document

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// MaxFile is the maximum size of a settings file, in bytes.
const MaxFile = 1 << 20

// Document is a file that was read.
type Document struct {
	File string       // path, as given
	Sum  string       // sha256 of the bytes that were read, hex; "" if Parse created it
	Root *jsonx.Value // an object

	problems map[*jsonx.Value][]Problem
}

// Read reads a file once and parses it like [Parse]. It never blocks on a named pipe.
func Read(path string) (*Document, []Problem) {
	f, err := trust.Read(path, MaxFile)
	if err != nil {
		return nil, []Problem{Unreadable(path, err)}
	}
	d, problems := Parse(path, f.Data)
	if d != nil {
		d.Sum = f.Sum
	}
	return d, problems
}

// Parse reads the bytes of a file: JSON with comments if its name ends in .json,
// .jsonc or .json5, otherwise YAML. The document contains what could be read despite
// the problems; it is nil if nothing could. Problems are sorted by position.
func Parse(path string, data []byte) (*Document, []Problem) {
	return (&parser{file: path, isJSON: IsJSON(path), limit: maxNodes}).document(data)
}

// ParsePiped is [Parse] for bytes from a pipe, whose name does not determine
// the format: text that begins with a brace is JSON with comments.
func ParsePiped(name string, data []byte) (*Document, []Problem) {
	return (&parser{file: name, isJSON: bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")),
		limit: maxNodes}).document(data)
}

// ParseForeign is [Parse] for a file of another program, which may contain much
// more than settings: it may be larger and have strings that no setting accepts.
// If there is any problem, the document is nil.
func ParseForeign(path string, data []byte) (*Document, []Problem) {
	d, problems := (&parser{file: path, isJSON: IsJSON(path), limit: 10 * maxNodes, foreign: true}).document(data)
	if len(problems) > 0 {
		return nil, problems
	}
	return d, nil
}

// Foreign parses files of other programs, some of which are read several times, and caches each
// document until the file's content changes. The zero value is ready to use. It is not safe for
// concurrent use.
type Foreign struct{ files map[string]foreignFile }

type foreignFile struct {
	data     []byte
	doc      *Document
	problems []Problem
}

// Parse is [ParseForeign]. The document must not be changed.
func (f *Foreign) Parse(path string, data []byte) (*Document, []Problem) {
	file, ok := f.files[path]
	if !ok || !bytes.Equal(file.data, data) {
		file.data = data
		file.doc, file.problems = ParseForeign(path, data)
		if f.files == nil {
			f.files = map[string]foreignFile{}
		}
		f.files[path] = file
	}
	return file.doc, file.problems
}

// ParseYAML reads a YAML file that holds no settings, of at most limit values that are
// nested at most depth levels. It accepts merge keys and the tags of JSON's types. The
// value is an object with positions, and has what could be read despite the problems; it
// is nil if nothing could.
func ParseYAML(path string, data []byte, limit, depth int) (*jsonx.Value, []Problem) {
	d, problems := (&parser{file: path, limit: limit, depth: depth, foreign: true, merges: true}).document(data)
	if d == nil {
		return nil, problems
	}
	return d.Root, problems
}

// Members returns the members of the object that a path of names leads to, in
// file order; none if there is no such object.
func (d *Document) Members(path ...string) []jsonx.Member {
	n := d.Root
	for _, name := range path {
		n = n.Get(name)
	}
	if n == nil {
		return nil
	}
	return n.Members
}

// JSON returns the document: members in file order, numbers as written.
func (d *Document) JSON() json.RawMessage { return d.Root.JSON() }

// Problem returns a problem at the position of the value that a JSON pointer
// names, or of the nearest enclosing value.
func (d *Document) Problem(pointer, message, hint string) Problem {
	line, col := d.Root.Locate(pointer).Place()
	return Problem{File: d.File, Line: line, Col: col, Message: message, Hint: hint}
}

// ProblemsIn returns the problems in a value and in the values below it.
func (d *Document) ProblemsIn(n *jsonx.Value) []Problem { return d.problems[n] }

// document parses a file. Every failure has a position.
func (p *parser) document(data []byte) (*Document, []Problem) {
	root := p.root(text.WithoutMark(data))
	problems := slices.Clone(p.problems) // copy: within shares the slice
	SortByPlace(problems)
	if root == nil {
		return nil, problems
	}
	return &Document{File: p.file, Root: root, problems: p.within}, problems
}

func (p *parser) root(data []byte) *jsonx.Value {
	if line, ok := badUTF8(data); ok {
		p.fail(jsonx.NewPos(line, 1), "the file is not valid UTF-8", "save it as UTF-8")
		return nil
	}
	read := p.yaml
	if p.isJSON {
		read = p.json
	}
	root := read(data)
	switch {
	case root == nil || p.overflow:
		return nil
	case root.Kind == jsonx.Null:
		return &jsonx.Value{Kind: jsonx.Object, Pos: jsonx.NewPos(1, 1)}
	case root.Kind != jsonx.Object:
		p.fail(root.Pos, "expected an object, got "+TypeName(root), "")
		return nil
	}
	return root
}

// Problem is one mistake at one place in a document, or in a variable or flag.
type Problem struct {
	File    string // path, variable or flag
	Line    int    // from 1; 0 if there is no file
	Col     int    // from 1, in characters; 0 if there is no file
	Message string // what is wrong; never contains a value that could be a secret
	Hint    string // what to do next; may be empty
}

// String renders the problem as path:line:col: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col))
	}
	b.WriteString(": " + p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Error holds every mistake that was found in documents, in order of file and line.
// It is a usage error: exit code 2.
type Error struct {
	Problems []Problem // never empty
}

// NewError returns an [*Error] with each of the problems once, or nil if there
// are none. Files keep the order in which they were read.
func NewError(problems []Problem) error {
	var unique []Problem
	for _, p := range problems {
		unique = text.AppendNew(unique, p)
	}
	if len(unique) == 0 {
		return nil
	}
	return &Error{Problems: unique}
}

// Error renders one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// SortProblems is [SortByPlace] with duplicates removed.
func SortProblems(problems []Problem) []Problem {
	SortByPlace(problems)
	return slices.Compact(problems)
}

// SortByPlace sorts problems by position in their file.
func SortByPlace(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// Unreadable returns the problem for a file that could not be read; err is the
// error of [trust.Read] or [trust.ReadOwned].
func Unreadable(path string, err error) Problem {
	p := Problem{File: path}
	var owner *trust.OwnerError
	switch {
	case errors.As(err, &owner):
		p.Message, p.Hint = "is not safe to use: "+owner.Reason, "make yourself its owner and only writer"
	case errors.Is(err, fs.ErrNotExist):
		p.Message = "no such file"
	case errors.Is(err, trust.ErrNotRegular):
		p.Message = trust.ErrNotRegular.Error()
	case errors.Is(err, trust.ErrTooLarge):
		p.Message = "is larger than 1 MiB"
	default:
		p.Message = text.Cause(err).Error()
	}
	return p
}
