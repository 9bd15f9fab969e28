package spec

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// Limits of documents.
const (
	maxDepth  = 200       // nested objects and arrays
	maxValues = 2_000_000 // of a file, in YAML including those of each use of an alias
	maxFiles  = 5000
	maxChain  = 64 // references that lead to other references
)

// problemError is a problem at a place in a document.
type problemError struct{ document.Problem }

func (e *problemError) Error() string { return e.String() }

type file struct {
	name string // path or address
	data []byte // of a JSON file, whose tree has no positions; nil for YAML
	root *jsonx.Value
	refs *schema.Refs

	// spans holds the places in data that are known, by the pointer of the value whose children
	// they are.
	spans map[string]map[string]jsonx.Child
	ends  []int // offsets of the line ends in data; nil until needed
}

// parse reads a file: JSON if it begins with a brace, otherwise YAML.
func parse(name string, data []byte) (*file, error) {
	data = text.WithoutMark(data)
	f := &file{name: name}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		f.data = data
		root, err := jsonx.Parse(data, jsonx.Options{Depth: maxDepth, Values: maxValues})
		if syntax, ok := errors.AsType[*jsonx.SyntaxError](err); ok {
			line, col := jsonx.NewLines(data).At(syntax.Offset)
			message, _, _ := strings.Cut(syntax.Message, ", at line ")
			return nil, &problemError{document.Problem{File: name, Line: line,
				Col: col, Message: "invalid JSON: " + document.Visible(message)}}
		}
		f.root = root
	} else {
		root, problems := document.ParseYAML(name, data, maxValues, maxDepth)
		if root == nil {
			return nil, &problemError{problems[0]}
		}
		f.root = root
	}
	if !f.root.Is(jsonx.Object) {
		return nil, &problemError{document.Problem{File: name, Line: 1, Col: 1,
			Message: "expected an object, got " + document.TypeName(f.root)}}
	}
	f.refs = schema.NewRefs(f.root)
	return f, nil
}

// offset returns the offset of the value at a pointer, or of the nearest enclosing value. It reads
// each enclosing value once, because there may be thousands of problems.
func (f *file) offset(pointer string) int {
	name, start, prefix := 0, 0, ""
	for token := range jsonx.Tokens(pointer) {
		children, known := f.spans[prefix]
		if !known {
			children = map[string]jsonx.Child{}
			for c := range jsonx.Children(f.data, start) {
				children[c.Key] = c
			}
			if f.spans == nil {
				f.spans = map[string]map[string]jsonx.Child{}
			}
			f.spans[prefix] = children
		}
		child, ok := children[token]
		if !ok {
			break
		}
		name, start, prefix = child.Name, child.Start, prefix+"/"+jsonx.EscapeToken(token)
	}
	return name
}

func (f *file) line(offset int) int {
	if f.ends == nil {
		f.ends = []int{}
		for i, c := range f.data {
			if c == '\n' {
				f.ends = append(f.ends, i)
			}
		}
	}
	before, _ := slices.BinarySearch(f.ends, offset)
	return 1 + before
}

// node is a value in a file; the value is nil if there is none.
type node struct {
	*jsonx.Value
	file *file
	at   string // JSON pointer
}

// get returns a member of an object.
func (n node) get(name string) node {
	v := n.Value.Get(name)
	if v == nil {
		return node{file: n.file}
	}
	return node{v, n.file, n.at + "/" + jsonx.EscapeToken(name)}
}

// member returns the i-th member of an object.
func (n node) member(i int) node {
	return node{n.Members[i].Value, n.file, n.at + "/" + jsonx.EscapeToken(n.Members[i].Name)}
}

// item returns an element of an array.
func (n node) item(i int) node { return node{n.Items[i], n.file, fmt.Sprintf("%s/%d", n.at, i)} }

// Text returns a value as text: a string, or a number or boolean that YAML has without quotes.
func (n node) Text() string {
	if n.Is(jsonx.Number) || n.Is(jsonx.True) || n.Is(jsonx.False) {
		return n.Token
	}
	return n.Value.Text()
}

// exists reports whether there is a value that is not null.
func (n node) exists() bool { return n.Value != nil && n.Kind != jsonx.Null }

func (n node) items() []node {
	if !n.Is(jsonx.Array) {
		return nil
	}
	out := make([]node, len(n.Items))
	for i := range n.Items {
		out[i] = n.item(i)
	}
	return out
}

func (n node) members() []node {
	if !n.Is(jsonx.Object) {
		return nil
	}
	out := make([]node, len(n.Members))
	for i := range n.Members {
		out[i] = n.member(i)
	}
	return out
}

// name returns the last token of the node's pointer: the name of a member.
func (n node) name() string {
	last := ""
	for token := range jsonx.Tokens(n.at) {
		last = token
	}
	return last
}

func (n node) problem(format string, args ...any) error {
	p := document.Problem{File: n.file.name,
		Message: document.Visible(fmt.Sprintf(format, args...)) + " (at #" + document.Visible(n.at) + ")"}
	if n.file.data != nil {
		p.Line, p.Col = n.file.line(n.file.offset(n.at)), 1
	} else {
		p.Line, p.Col = n.file.root.Locate(n.at).Place()
	}
	return &problemError{p}
}

// fileSet holds the files of a document.
type fileSet struct {
	files map[string]*file
	open  func(name string) ([]byte, error) // see [Options.Open]
}

// target is what a reference refers to.
type target struct {
	file    *file
	pointer string
}

// locate returns the target of a reference in n, without checking that it exists.
func (s *fileSet) locate(n node, ref string) (target, error) {
	name, pointer, _ := strings.Cut(ref, "#")
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	if pointer != "" && pointer[0] != '/' {
		return target{}, n.problem("the reference %.200q is not a JSON pointer", ref)
	}
	if name == "" {
		return target{n.file, pointer}, nil
	}
	f, err := s.openFile(n, name)
	return target{f, pointer}, err
}

// openFile returns another file of the document.
func (s *fileSet) openFile(n node, ref string) (*file, error) {
	name := path.Join(path.Dir(n.file.name), ref)
	if base, err := url.Parse(n.file.name); err == nil && base.Host != "" {
		address, err := base.Parse(ref)
		if err != nil {
			return nil, n.problem("the reference %.200q is not an address", ref)
		}
		name = address.String()
	}
	if f := s.files[name]; f != nil {
		return f, nil
	}
	if strings.Contains(ref, "://") && !strings.Contains(n.file.name, "://") {
		return nil, n.problem("the reference %.200q is an address; only files in the document's folder are read", ref)
	}
	if s.open == nil {
		return nil, n.problem("the reference %.200q leads to another file, which is not read", ref)
	}
	if len(s.files) >= maxFiles {
		return nil, n.problem("the document has more than %d files", maxFiles)
	}
	data, err := s.open(name)
	if err != nil {
		return nil, n.problem("the reference %.200q cannot be followed: %v", ref, err)
	}
	f, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	s.files[name] = f
	return f, nil
}

// follow returns the target of a reference in n.
func (s *fileSet) follow(n node, ref string) (node, error) {
	t, err := s.locate(n, ref)
	if err != nil {
		return node{}, err
	}
	v := t.file.refs.Lookup("#" + url.PathEscape(t.pointer))
	if v == nil {
		return node{}, n.problem("the reference %.200q leads to nothing", ref)
	}
	return node{v, t.file, t.pointer}, nil
}

// resolve follows references until it reaches a value that is not a reference.
func (s *fileSet) resolve(n node) (node, error) {
	start := n
	for range maxChain {
		ref := n.Value.Get("$ref")
		if !ref.Is(jsonx.String) {
			return n, nil
		}
		var err error
		if n, err = s.follow(n, ref.Text()); err != nil {
			return n, err
		}
	}
	return n, start.problem("its references form a cycle")
}

// maxApplied limits how many schemas are searched for the properties of one value.
const maxApplied = 50

// appliedBy returns a schema and those that it applies to the same value with the given keywords.
func (s *fileSet) appliedBy(n node, keywords ...string) []node {
	out := []node{n}
	for i := 0; i < len(out); i++ {
		for _, keyword := range keywords {
			parts := out[i].get(keyword)
			if !parts.Is(jsonx.Array) {
				continue
			}
			for j := range min(len(parts.Items), maxApplied) {
				resolved, err := s.resolve(parts.item(j))
				isNew := !slices.ContainsFunc(out, func(other node) bool { return other.Value == resolved.Value })
				if err == nil && resolved.Is(jsonx.Object) && isNew && len(out) < maxApplied {
					out = append(out, resolved)
				}
			}
		}
	}
	return out
}
