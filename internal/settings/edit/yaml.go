package edit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// yamlText is the text of a YAML file that is being changed.
type yamlText struct {
	lines []string // including line ends
	eol   string
	root  *yaml.Node // a block mapping, or nil in an empty file
}

// yaml makes the change in a block-style YAML file by inserting and removing
// lines.
func (c placed) yaml(data []byte) ([]byte, error) {
	t, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	err = t.change(c)
	return []byte(strings.Join(t.lines, "")), err
}

func parseYAML(data []byte) (*yamlText, error) {
	t := &yamlText{eol: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		t.eol = "\r\n"
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) > 0 && doc.Content[0].ShortTag() != "!!null" {
		t.root = doc.Content[0]
		if !isBlock(t.root) {
			return nil, errOtherWay
		}
	}
	t.lines = strings.SplitAfter(string(data), "\n")
	if last := len(t.lines) - 1; t.lines[last] == "" {
		t.lines = t.lines[:last]
	} else {
		t.lines[last] += t.eol
	}
	return t, nil
}

func isBlock(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// keyOf returns the index of a member's key in a mapping, or -1 if it is absent.
func keyOf(n *yaml.Node, name string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func (t *yamlText) change(c placed) error {
	if t.root == nil {
		return t.insertNested(c, 0, len(t.lines), 0)
	}
	n, limit := t.root, len(t.lines) // the mapping, and the line after it
	for depth, name := range c.path {
		i := keyOf(n, name)
		last := depth == len(c.path)-1
		switch {
		case i < 0 && isBlock(n):
			at := limit
			if c.first {
				at = n.Content[0].Line - 1
			}
			return t.insertNested(c, depth, at, n.Content[0].Column-1)
		case i < 0 && last && c.first && len(n.Content) > 0:
			return t.addFirstInFlow(c, n)
		case i < 0:
			return errOtherWay
		}
		key, value := n.Content[i], n.Content[i+1]
		switch block := isBlock(n); {
		case block:
			limit = t.end(n, i, limit)
		case last:
			return t.replaceScalar(c, value)
		}
		switch {
		case last:
			return t.replaceMember(c, key, value, limit)
		case isBlock(n) && value.Kind == yaml.ScalarNode && value.Value == "":
			return t.insertNested(c, depth+1, key.Line, key.Column-1+2)
		}
		n = value
	}
	return errOtherWay
}

// insertNested inserts lines with the value and the names from depth on.
func (t *yamlText) insertNested(c placed, depth, at, indent int) error {
	lines, err := t.render(c.nested(depth), indent)
	if err == nil {
		t.lines = slices.Insert(t.lines, at, lines...)
	}
	return err
}

// addFirstInFlow inserts a scalar before the other members of {…}.
func (t *yamlText) addFirstInFlow(c placed, n *yaml.Node) error {
	lines, err := t.render(c.nested(len(c.path)-1), 0)
	if err != nil || len(lines) != 1 {
		return errOtherWay
	}
	return t.replace(n.Line, n.Column, "{", "{"+strings.TrimSpace(lines[0])+", ")
}

func (t *yamlText) replaceScalar(c placed, old *yaml.Node) error {
	if c.value == nil || c.text != nil || old.Kind != yaml.ScalarNode || old.Style != 0 ||
		c.value.Kind == jsonx.Object || c.value.Kind == jsonx.Array {
		return errOtherWay
	}
	text, err := encodeYAML(toYAML(c.value))
	if err != nil {
		return err
	}
	return t.replace(old.Line, old.Column, old.Value, strings.TrimSpace(string(text)))
}

// replaceMember replaces or removes a member in block style. end is the line
// after it.
func (t *yamlText) replaceMember(c placed, key, old *yaml.Node, end int) error {
	at, indent := key.Line-1, key.Column-1
	switch {
	case c.value == nil:
		t.lines = slices.Delete(t.lines, at, end)
		return nil
	case c.text != nil && isBlock(old) && old.Line > key.Line:
		t.lines = slices.Replace(t.lines, key.Line, end, t.indented(c.text, old.Column-1)...)
		return nil
	case t.replaceScalar(c, old) == nil:
		return nil
	}
	lines, err := t.render(c.nested(len(c.path)-1), indent)
	if err != nil {
		return err
	}
	if comment := cmp.Or(old.LineComment, key.LineComment); comment != "" {
		lines[0] = strings.TrimRight(lines[0], "\r\n") + " " + comment + t.eol
	}
	t.lines = slices.Replace(t.lines, at, end, lines...)
	return nil
}

// end returns the index of the line after the member at i of a block mapping,
// which itself ends before limit. Comments and empty lines before the next
// member belong to the next member.
func (t *yamlText) end(n *yaml.Node, i, limit int) int {
	if i+2 < len(n.Content) {
		limit = n.Content[i+2].Line - 1
	}
	return t.back(limit, n.Content[0].Column)
}

// back moves up over empty lines and over comments that are not indented deeper
// than column, which starts at 1.
func (t *yamlText) back(line, column int) int {
	for line > 0 {
		text := strings.TrimLeft(t.lines[line-1], " ")
		depth := len(t.lines[line-1]) - len(text)
		if strings.TrimSpace(text) != "" && (text[0] != '#' || depth >= column) {
			break
		}
		line--
	}
	return line
}

// replace changes text at a known position.
func (t *yamlText) replace(line, column int, old, text string) error {
	runes := []rune(t.lines[line-1])
	if column-1 > len(runes) {
		return errOtherWay
	}
	before, rest := string(runes[:column-1]), string(runes[column-1:])
	if !strings.HasPrefix(rest, old) || old == "" {
		return errOtherWay
	}
	t.lines[line-1] = before + text + rest[len(old):]
	return nil
}

// render writes an object as lines.
func (t *yamlText) render(object *jsonx.Value, indent int) ([]string, error) {
	data, err := encodeYAML(toYAML(object))
	if err != nil {
		return nil, err
	}
	return t.indented(data, indent), nil
}

func (t *yamlText) indented(text []byte, indent int) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			line = strings.Repeat(" ", indent) + line
		}
		out = append(out, line+t.eol)
	}
	return out
}

func encodeYAML(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	err := enc.Close()
	return b.Bytes(), err
}

// toYAML converts a node for a YAML file; lists are written on one line.
func toYAML(n *jsonx.Value) *yaml.Node {
	switch n.Kind {
	case jsonx.Object:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range n.Members {
			out.Content = append(out.Content,
				&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.Name}, toYAML(f.Value))
		}
		return out
	case jsonx.Array:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range n.Items {
			out.Content = append(out.Content, toYAML(item))
		}
		return out
	case jsonx.String:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.Text()}
	case jsonx.True, jsonx.False:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: n.Token}
	case jsonx.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: n.Token}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// yamlNodes makes the change in any YAML file by rewriting all of it. Comments
// are kept, but the notation may change.
func (c placed) yamlNodes(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil ||
		len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errOtherWay
	}
	n := doc.Content[0]
	last := len(c.path) - 1
	for _, name := range c.path[:last] {
		i := keyOf(n, name)
		if i < 0 {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name},
				&yaml.Node{Kind: yaml.MappingNode})
			i = len(n.Content) - 2
		}
		if n = n.Content[i+1]; n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" ||
			n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			*n = yaml.Node{Kind: yaml.MappingNode, HeadComment: n.HeadComment,
				LineComment: n.LineComment, FootComment: n.FootComment}
		}
		if n.Kind != yaml.MappingNode {
			return nil, errOtherWay
		}
	}
	i := keyOf(n, c.path[last])
	switch {
	case c.value == nil && i < 0:
		return nil, errOtherWay
	case c.value == nil:
		n.Content = slices.Delete(n.Content, i, i+2)
	case i >= 0:
		value := toYAML(c.value)
		value.LineComment = n.Content[i+1].LineComment
		n.Content[i+1] = value
	default:
		at := len(n.Content)
		if c.first {
			at = 0
		}
		n.Content = slices.Insert(n.Content, at,
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: c.path[last]}, toYAML(c.value))
	}
	return encodeYAML(&doc)
}
