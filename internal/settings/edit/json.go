package edit

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// jsonFile is a JSON file that is being changed: its syntax tree, which holds
// every comment and every blank, and how its author lays it out.
type jsonFile struct {
	text []byte
	root hujson.Value
	unit string // of indentation
	eol  string
}

// json makes the change in JSON with comments.
func (c Change) json(data []byte) ([]byte, error) {
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
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
	f := &jsonFile{text: text, root: root, unit: "  ", eol: "\n"}
	if bytes.Contains(text, []byte("\r\n")) {
		f.eol = "\r\n"
	}
	if indent, ownLine := lineOf(object, 0); ownLine && indent != "" {
		f.unit = indent
	}
	if err := f.change(c); err != nil {
		return nil, err
	}
	return append(bytes.Clone(mark), f.root.Pack()...), nil
}

func (f *jsonFile) change(c Change) error {
	servers := f.root.Find("/" + serversKey)
	switch {
	case servers == nil && c.Entry == nil:
		return errOtherWay
	case servers == nil:
		return f.add(&f.root, serversKey, json.RawMessage(`{`+jsonx.Quote(c.Name)+`:`+string(c.Entry)+`}`))
	case c.Entry != nil:
		if _, ok := servers.Value.(*hujson.Object); !ok { // null
			servers.Value = &hujson.Object{}
		}
		return f.add(servers, c.Name, c.Entry)
	case c.Drop:
		if o, ok := servers.Value.(*hujson.Object); ok && len(o.Members) == 1 && memberOf(servers, c.Name) == 0 {
			return f.remove(&f.root, "", serversKey) // the last one: the setting goes
		}
		return f.remove(servers, "/"+serversKey, c.Name)
	}
	i := memberOf(servers, c.Name)
	if i < 0 {
		return errOtherWay
	}
	return f.turn(&servers.Value.(*hujson.Object).Members[i].Value, *c.Off)
}

// add puts a member behind the last one of an object, and behind the comments
// that are there.
func (f *jsonFile) add(object *hujson.Value, name string, value json.RawMessage) error {
	o := object.Value.(*hujson.Object)
	outer := f.indent(object.StartOffset)
	indent, ownLine := lineOf(o, 0)
	if len(o.Members) == 0 {
		indent, ownLine = outer+f.unit, true
	}
	before := hujson.Extra(" ")
	if ownLine {
		var b bytes.Buffer
		if err := json.Indent(&b, value, indent, f.unit); err != nil {
			return err
		}
		value = []byte(strings.ReplaceAll(b.String(), "\n", f.eol))
		before = append(bytes.TrimRight(o.AfterExtra, " \t\r\n"), f.eol+indent...)
		o.AfterExtra = hujson.Extra(f.eol + outer)
	}
	parsed, err := hujson.Parse(value)
	if err != nil {
		return err
	}
	parsed.BeforeExtra = hujson.Extra(" ")
	if last := len(o.Members) - 1; last >= 0 && o.Members[last].Value.AfterExtra != nil { // a comma behind the last one
		parsed.AfterExtra = hujson.Extra{}
	}
	o.Members = append(o.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String(name)}, Value: parsed})
	return nil
}

// remove takes a member out of the object at a pointer, with the comments that
// are its own.
func (f *jsonFile) remove(object *hujson.Value, at, name string) error {
	o, ok := object.Value.(*hujson.Object)
	i := memberOf(object, name)
	if !ok || i < 0 {
		return errOtherWay
	}
	last := &o.Members[len(o.Members)-1].Value
	comma := last.AfterExtra
	_, ownLine := lineOf(o, i)
	pointer := at + "/" + jsonx.EscapeToken(name)
	if err := f.root.Patch([]byte(`[{"op":"remove","path":` + jsonx.Quote(pointer) + `}]`)); err != nil {
		return err
	}
	if len(o.Members) == 0 {
		return nil
	}
	o.Members[len(o.Members)-1].Value.AfterExtra = comma
	if ownLine && i == len(o.Members) {
		o.AfterExtra = append(bytes.TrimRight(o.AfterExtra, " \t\r\n"), f.eol+f.indent(object.StartOffset)...)
	}
	return nil
}

// turn sets disabled, or adds it as the first member.
func (f *jsonFile) turn(entry *hujson.Value, off bool) error {
	o, ok := entry.Value.(*hujson.Object)
	if !ok || len(o.Members) == 0 {
		return errOtherWay
	}
	if i := memberOf(entry, "disabled"); i >= 0 {
		o.Members[i].Value.Value = hujson.Bool(off)
		return nil
	}
	first := &o.Members[0].Name
	before := first.BeforeExtra
	if indent, ownLine := lineOf(o, 0); ownLine {
		before = hujson.Extra(f.eol + indent)
	} else {
		first.BeforeExtra = hujson.Extra(" ")
	}
	member := hujson.ObjectMember{Name: hujson.Value{BeforeExtra: before, Value: hujson.String("disabled")},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.Bool(off)}}
	o.Members = append([]hujson.ObjectMember{member}, o.Members...)
	return nil
}

// memberOf returns the index of a member, -1 where there is none.
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
// member begins a line.
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
