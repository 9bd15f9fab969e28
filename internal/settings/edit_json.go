package settings

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonText is the text of a JSON file that is being changed. Changes are made
// from back to front, so that the offsets before them stay true.
type jsonText struct {
	data []byte
	root *hujson.Object
	unit string // of indentation
	eol  string
}

// json makes the change in JSON with comments by cutting and inserting text.
func (e Edit) json(data []byte, _ *node) ([]byte, error) {
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))) == 0 {
		data = []byte("{}\n")
	}
	v, err := hujson.Parse(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errOtherWay
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	t := &jsonText{data: text, root: root, unit: "  ", eol: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		t.eol = "\r\n"
	}
	if len(root.Members) > 0 {
		if indent, own := t.indent(root.Members[0].Name.StartOffset); own && indent != "" {
			t.unit = indent
		}
	}
	if err := t.change(e, &v); err != nil {
		return nil, err
	}
	mark := data[:len(data)-len(text)]
	return append(mark[:len(mark):len(mark)], t.data...), nil
}

func (t *jsonText) change(e Edit, root *hujson.Value) error {
	servers := member(root, serversKey)
	if e.Entry != nil {
		if servers < 0 {
			return t.add(root, serversKey, json.RawMessage(`{`+quoteJSON(e.Name)+`:`+string(e.Entry)+`}`))
		}
		value := &t.root.Members[servers].Value
		if _, ok := value.Value.(*hujson.Object); !ok { // null
			t.cut(value.StartOffset, value.EndOffset, "{}")
			value.Value, value.EndOffset = &hujson.Object{}, value.StartOffset+2
		}
		return t.add(value, e.Name, e.Entry)
	}
	if servers < 0 {
		return errOtherWay
	}
	value := &t.root.Members[servers].Value
	i := member(value, e.Name)
	if i < 0 {
		return errOtherWay
	}
	if e.Drop {
		t.drop(value.Value.(*hujson.Object), i)
		return nil
	}
	return t.turn(&value.Value.(*hujson.Object).Members[i].Value, *e.Off)
}

// member returns the index of a member, -1 where there is none.
func member(v *hujson.Value, name string) int {
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

// add puts a member behind the last one of an object.
func (t *jsonText) add(object *hujson.Value, name string, value json.RawMessage) error {
	o := object.Value.(*hujson.Object)
	end := object.EndOffset - 1 // of the closing brace
	outer, _ := t.indent(object.StartOffset)
	indent, ownLine := outer+t.unit, true
	if len(o.Members) > 0 {
		if own, ok := t.indent(o.Members[0].Name.StartOffset); ok {
			indent = own
		} else {
			ownLine = false
		}
	}
	if !ownLine {
		comma := ", "
		if t.comma(o.Members[len(o.Members)-1].Value.EndOffset, end) >= 0 {
			comma = " "
		}
		last := o.Members[len(o.Members)-1].Value.EndOffset
		t.cut(last, last, comma+quoteJSON(name)+": "+string(value))
		return nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, value, indent, t.unit); err != nil {
		return err
	}
	text := indent + quoteJSON(name) + ": " + strings.ReplaceAll(b.String(), "\n", t.eol)
	trailing := ""
	hasComma := len(o.Members) > 0 && t.comma(o.Members[len(o.Members)-1].Value.EndOffset, end) >= 0
	if hasComma {
		trailing = ","
	}
	line := end
	for line > 0 && (t.data[line-1] == ' ' || t.data[line-1] == '\t') {
		line--
	}
	if line > 0 && t.data[line-1] == '\n' {
		t.cut(line, line, text+trailing+t.eol)
	} else {
		t.cut(end, end, t.eol+text+trailing+t.eol+outer)
	}
	if len(o.Members) > 0 && !hasComma {
		last := o.Members[len(o.Members)-1].Value.EndOffset
		t.cut(last, last, ",")
	}
	return nil
}

// drop takes a member out, with its line where it has one of its own.
func (t *jsonText) drop(o *hujson.Object, i int) {
	start, end := o.Members[i].Name.StartOffset, o.Members[i].Value.EndOffset
	limit := len(t.data)
	comma := t.comma(end, limit)
	if comma >= 0 {
		end = comma + 1
	}
	if _, own := t.indent(start); own {
		for start > 0 && t.data[start-1] != '\n' {
			start--
		}
		rest, _, found := bytes.Cut(t.data[end:], []byte("\n"))
		switch trimmed := bytes.TrimSpace(rest); {
		case found && (len(trimmed) == 0 || bytes.HasPrefix(trimmed, []byte("//"))):
			end += len(rest) + 1
		case len(trimmed) > 0: // something else stands there
			start = o.Members[i].Name.StartOffset
		}
	}
	t.cut(start, end, "")
	if comma < 0 && i > 0 {
		if c := t.comma(o.Members[i-1].Value.EndOffset, start); c >= 0 {
			t.cut(c, c+1, "")
		}
	}
}

// turn sets disabled, or adds it as the first member.
func (t *jsonText) turn(entry *hujson.Value, off bool) error {
	text := strconv.FormatBool(off)
	if i := member(entry, "disabled"); i >= 0 {
		v := entry.Value.(*hujson.Object).Members[i].Value
		t.cut(v.StartOffset, v.EndOffset, text)
		return nil
	}
	o, ok := entry.Value.(*hujson.Object)
	if !ok || len(o.Members) == 0 {
		return errOtherWay
	}
	text = `"disabled": ` + text + ","
	if indent, own := t.indent(o.Members[0].Name.StartOffset); own {
		text = t.eol + indent + text
	} else if t.data[entry.StartOffset+1] != ' ' {
		text += " "
	} else {
		text = " " + text
	}
	t.cut(entry.StartOffset+1, entry.StartOffset+1, text)
	return nil
}

// cut replaces a part of the text.
func (t *jsonText) cut(start, end int, text string) {
	t.data = append(append(append([]byte{}, t.data[:start]...), text...), t.data[end:]...)
}

// indent returns the white space at the beginning of the line of an offset, and
// whether nothing else stands before it.
func (t *jsonText) indent(offset int) (string, bool) {
	start := bytes.LastIndexByte(t.data[:offset], '\n') + 1
	line := string(t.data[start:offset])
	rest := strings.TrimLeft(line, " \t")
	return line[:len(line)-len(rest)], rest == "" && start > 0
}

// comma returns the offset of the comma between two offsets, outside of
// comments; -1 where there is none before anything else.
func (t *jsonText) comma(from, to int) int {
	for i := from; i < to; i++ {
		switch c := t.data[i]; c {
		case ',':
			return i
		case ' ', '\t', '\r', '\n':
		case '/':
			next := skipComment(t.data, i)
			if next == i {
				return -1
			}
			i = next
		default:
			return -1
		}
	}
	return -1
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	writeString(&b, s)
	return b.String()
}
