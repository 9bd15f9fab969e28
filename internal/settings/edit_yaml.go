package settings

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlText is the text of a YAML file that is being changed.
type yamlText struct {
	lines []string // with their ends
	eol   string
	root  *yaml.Node // a block mapping, or nil in an empty file
}

// yaml makes the change in a YAML file of block style by inserting and taking
// out lines.
func (e Edit) yaml(data []byte, _ *node) ([]byte, error) {
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
	err := t.change(e)
	return []byte(strings.Join(t.lines, "")), err
}

func isBlock(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0
}

// keyOf returns the index of a member's key in a mapping; -1 = absent.
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

func (t *yamlText) change(e Edit) error {
	i := keyOf(t.root, serversKey)
	if i < 0 && e.Entry == nil {
		return errOtherWay
	}
	if i < 0 {
		indent := 0
		if t.root != nil {
			indent = t.root.Content[0].Column - 1
		}
		lines, err := t.render(e, indent+2)
		if err != nil {
			return err
		}
		t.insert(len(t.lines), append([]string{strings.Repeat(" ", indent) + serversKey + ":" + t.eol}, lines...))
		return nil
	}
	key, servers := t.root.Content[i], t.root.Content[i+1]
	if e.Entry != nil {
		return t.add(e, key, servers, t.end(t.root, i))
	}
	j := keyOf(servers, e.Name)
	if j < 0 {
		return errOtherWay
	}
	if e.Drop {
		if !isBlock(servers) {
			return errOtherWay
		}
		end := t.end(servers, j)
		if j+2 == len(servers.Content) {
			end = t.back(t.end(t.root, i), servers.Content[0].Column)
		}
		t.lines = slices.Delete(t.lines, servers.Content[j].Line-1, end)
		return nil
	}
	return t.turn(servers.Content[j+1], *e.Off)
}

func (t *yamlText) add(e Edit, key, servers *yaml.Node, end int) error {
	indent, at := key.Column-1+2, key.Line
	switch {
	case isBlock(servers):
		indent, at = servers.Content[0].Column-1, end
	case servers.Kind != yaml.ScalarNode || servers.Value != "":
		return errOtherWay
	}
	lines, err := t.render(e, indent)
	if err == nil {
		t.insert(at, lines)
	}
	return err
}

// end returns the index of the line behind the member at i of a block mapping;
// comments and empty lines before the next member are that one's.
func (t *yamlText) end(n *yaml.Node, i int) int {
	line := len(t.lines)
	if i+2 < len(n.Content) {
		line = n.Content[i+2].Line - 1
	}
	return t.back(line, n.Content[0].Column)
}

// back goes up over empty lines and over comments that stand no deeper than
// column.
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

// turn sets disabled, or adds it as the first member.
func (t *yamlText) turn(entry *yaml.Node, off bool) error {
	if entry.Kind != yaml.MappingNode || len(entry.Content) == 0 {
		return errOtherWay
	}
	if i := keyOf(entry, "disabled"); i >= 0 {
		v := entry.Content[i+1]
		return t.replace(v.Line, v.Column, v.Value, strconv.FormatBool(off))
	}
	text := "disabled: " + strconv.FormatBool(off)
	if !isBlock(entry) {
		return t.replace(entry.Line, entry.Column, "{", "{"+text+", ")
	}
	first := entry.Content[0]
	t.insert(first.Line-1, []string{strings.Repeat(" ", first.Column-1) + text + t.eol})
	return nil
}

// replace changes text at a place where it is known to stand.
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

func (t *yamlText) insert(at int, lines []string) {
	t.lines = slices.Insert(t.lines, at, lines...)
}

// render writes the entry of an Edit as lines.
func (t *yamlText) render(e Edit, indent int) ([]string, error) {
	entry := parse("entry.json", e.Entry).root
	if entry == nil {
		return nil, errOtherWay
	}
	object := &node{kind: kindObject, fields: []field{{name: e.Name, value: entry}}}
	data, err := encodeYAML(object.toYAML())
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		out = append(out, strings.Repeat(" ", indent)+strings.TrimSuffix(line, "\n")+t.eol)
	}
	return out, nil
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

// toYAML makes the node of a YAML file; lists are written in one line.
func (n *node) toYAML() *yaml.Node {
	switch n.kind {
	case kindObject:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range n.fields {
			out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.name}, f.value.toYAML())
		}
		return out
	case kindList:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range n.items {
			out.Content = append(out.Content, item.toYAML())
		}
		return out
	case kindString:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.text}
	case kindBool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(n.bool)}
	case kindNumber:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// yamlNodes makes the change in any YAML file by writing all of it anew.
// Comments stay, the way things are written may change.
func (e Edit) yamlNodes(data []byte, _ *node) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errOtherWay
	}
	root := doc.Content[0]
	i := keyOf(root, serversKey)
	if i < 0 && e.Entry != nil {
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: serversKey}, &yaml.Node{Kind: yaml.MappingNode})
		i = len(root.Content) - 2
	}
	if i < 0 || root.Content[i+1].Kind == yaml.AliasNode {
		return nil, errOtherWay
	}
	servers := root.Content[i+1]
	if servers.Kind == yaml.ScalarNode || len(servers.Content) == 0 {
		*servers = yaml.Node{Kind: yaml.MappingNode, HeadComment: servers.HeadComment, LineComment: servers.LineComment, FootComment: servers.FootComment}
	}
	j := keyOf(servers, e.Name)
	switch {
	case e.Entry != nil:
		entry := parse("entry.json", e.Entry).root
		servers.Content = append(servers.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.Name}, entry.toYAML())
	case j < 0:
		return nil, errOtherWay
	case e.Drop:
		servers.Content = slices.Delete(servers.Content, j, j+2)
	default:
		turnNode(servers.Content[j+1], *e.Off)
	}
	return encodeYAML(&doc)
}

func turnNode(entry *yaml.Node, off bool) {
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(off)}
	if i := keyOf(entry, "disabled"); i >= 0 {
		entry.Content[i+1] = value
	} else if entry.Kind == yaml.MappingNode {
		entry.Content = slices.Insert(entry.Content, 0, &yaml.Node{Kind: yaml.ScalarNode, Value: "disabled"}, value)
	}
}
