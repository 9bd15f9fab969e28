package edit

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// jsonFile is a JSON file that is being changed: its syntax tree, which
// includes all comments and white space, and its layout.
type jsonFile struct {
	mark []byte // byte order mark, or empty
	text []byte
	root hujson.Value
	unit string // of indentation
	eol  string
}

// json makes the change in JSON with comments.
func (c placed) json(data []byte) ([]byte, error) {
	f, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	if err := f.change(c); err != nil {
		return nil, err
	}
	return append(bytes.Clone(f.mark), f.root.Pack()...), nil
}

func parseJSON(data []byte) (*jsonFile, error) {
	text := text.WithoutMark(data)
	mark := data[:len(data)-len(text)]
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errOtherWay
	}
	f := &jsonFile{mark: mark, text: text, root: root, unit: "  ", eol: "\n"}
	if bytes.Contains(text, []byte("\r\n")) {
		f.eol = "\r\n"
	}
	if indent, ownLine := lineOf(object, 0); ownLine && indent != "" {
		f.unit = indent
	}
	return f, nil
}

func (f *jsonFile) change(c placed) error {
	object := &f.root
	last := len(c.path) - 1
	for depth, name := range c.path[:last] {
		i := memberOf(object, name)
		if i < 0 {
			return f.addMember(object, name, c.nested(depth+1).JSON(), false)
		}
		object = &object.Value.(*hujson.Object).Members[i].Value
		if l, ok := object.Value.(hujson.Literal); ok && l.Kind() == 'n' {
			object.Value = &hujson.Object{}
		}
		if _, ok := object.Value.(*hujson.Object); !ok {
			return errOtherWay
		}
	}
	i := memberOf(object, c.path[last])
	switch {
	case c.value == nil:
		return f.remove(object, c.path)
	case i < 0:
		return f.addMember(object, c.path[last], c.value.JSON(), c.first)
	}
	return f.replace(&object.Value.(*hujson.Object).Members[i].Value, c)
}

// replace replaces a value and keeps the comments around it.
func (f *jsonFile) replace(old *hujson.Value, c placed) error {
	indent := f.indent(old.StartOffset)
	text := c.text
	if text == nil {
		text = c.value.JSON()
		if was, ok := old.Value.(*hujson.Object); ok && bytes.ContainsRune(was.AfterExtra, '\n') ||
			c.value.Kind == jsonx.Object {
			var b bytes.Buffer
			if err := json.Indent(&b, text, "", f.unit); err != nil {
				return err
			}
			text = b.Bytes()
		}
	}
	parsed, err := hujson.Parse([]byte(strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", f.eol+indent)))
	if err != nil {
		return err
	}
	old.Value = parsed.Value
	return nil
}

// addMember adds a member to an object, after the last one and its comments, or
// before the first one.
func (f *jsonFile) addMember(object *hujson.Value, name string, value json.RawMessage, first bool) error {
	o, ok := object.Value.(*hujson.Object)
	if !ok {
		return errOtherWay
	}
	outer := f.indent(object.StartOffset)
	indent, ownLine := lineOf(o, 0)
	if len(o.Members) == 0 {
		indent, ownLine, first = outer+f.unit, true, false
	}
	if ownLine {
		var b bytes.Buffer
		if err := json.Indent(&b, value, indent, f.unit); err != nil {
			return err
		}
		value = []byte(strings.ReplaceAll(b.String(), "\n", f.eol))
	}
	parsed, err := hujson.Parse(value)
	if err != nil {
		return err
	}
	parsed.BeforeExtra = hujson.Extra(" ")
	member := hujson.ObjectMember{
		Name: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.String(name)}, Value: parsed,
	}
	if first {
		f.prepend(o, member, indent, ownLine)
		return nil
	}
	if ownLine {
		member.Name.BeforeExtra = append(bytes.TrimRight(o.AfterExtra, " \t\r\n"), f.eol+indent...)
		o.AfterExtra = hujson.Extra(f.eol + outer)
	}
	if last := len(o.Members) - 1; last >= 0 && o.Members[last].Value.AfterExtra != nil {
		// The last member has a trailing comma.
		member.Value.AfterExtra = hujson.Extra{}
	}
	o.Members = append(o.Members, member)
	return nil
}

// prepend adds a member before the first one of an object.
func (f *jsonFile) prepend(o *hujson.Object, member hujson.ObjectMember, indent string, ownLine bool) {
	next := &o.Members[0].Name
	if ownLine {
		member.Name.BeforeExtra = hujson.Extra(f.eol + indent)
	} else {
		member.Name.BeforeExtra, next.BeforeExtra = next.BeforeExtra, hujson.Extra(" ")
	}
	o.Members = append([]hujson.ObjectMember{member}, o.Members...)
}

// remove removes the member at a path from its object, with its own comments.
func (f *jsonFile) remove(object *hujson.Value, path []string) error {
	o, ok := object.Value.(*hujson.Object)
	i := memberOf(object, path[len(path)-1])
	if !ok || i < 0 {
		return errOtherWay
	}
	last := &o.Members[len(o.Members)-1].Value
	comma := last.AfterExtra
	_, ownLine := lineOf(o, i)
	before := o.Members[i].Name.BeforeExtra
	pointer := ""
	for _, name := range path {
		pointer += "/" + jsonx.EscapeToken(name)
	}
	if err := f.root.Patch([]byte(`[{"op":"remove","path":` + jsonx.Quote(pointer) + `}]`)); err != nil {
		return err
	}
	if len(o.Members) == 0 {
		return nil
	}
	o.Members[len(o.Members)-1].Value.AfterExtra = comma
	if next := &o.Members[0].Name; i == 0 && string(next.BeforeExtra) == " " && len(bytes.TrimSpace(before)) == 0 {
		next.BeforeExtra = before
	}
	if ownLine && i == len(o.Members) {
		o.AfterExtra = append(bytes.TrimRight(o.AfterExtra, " \t\r\n"), f.eol+f.indent(object.StartOffset)...)
	}
	return nil
}

// memberOf returns the index of a member, or -1 if there is none.
func memberOf(v *hujson.Value, name string) int {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return -1
	}
	for i := range o.Members {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return i
		}
	}
	return -1
}

// lineOf returns the white space before a member of an object, and whether the
// member starts a line.
func lineOf(o *hujson.Object, i int) (indent string, ownLine bool) {
	if i >= len(o.Members) {
		return "", false
	}
	before := string(o.Members[i].Name.BeforeExtra)
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return line, len(line) < len(before) && strings.TrimLeft(line, " \t") == ""
}

// indent returns the white space at the beginning of the line of an offset.
func (f *jsonFile) indent(offset int) string {
	line := f.text[bytes.LastIndexByte(f.text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
