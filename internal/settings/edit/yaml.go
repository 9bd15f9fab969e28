package edit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// yamlText is the text of a YAML file that is being changed.
type yamlText struct {
	lines []string // with their ends
	eol   string
	root  *yaml.Node // a block mapping, or nil in an empty file
}

// yaml makes the change in a YAML file of block style by inserting and taking
// out lines.
func (c Change) yaml(data []byte) ([]byte, error) {
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
	err := t.change(c)
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

func (t *yamlText) change(c Change) error {
	i := keyOf(t.root, serversKey)
	switch {
	case i < 0 && c.Entry == nil:
		return errOtherWay
	case i < 0:
		return t.addServers(c)
	case c.Entry != nil:
		return t.add(c, t.root.Content[i], t.root.Content[i+1], t.end(t.root, i))
	}
	servers := t.root.Content[i+1]
	j := keyOf(servers, c.Name)
	if j >= 0 && c.Drop && len(servers.Content) == 2 { // the last one: the setting goes
		t.lines = slices.Delete(t.lines, t.root.Content[i].Line-1, t.end(t.root, i))
		return nil
	}
	if j < 0 || c.Drop && !isBlock(servers) {
		return errOtherWay
	}
	if !c.Drop {
		return t.turn(servers.Content[j+1], *c.Off)
	}
	end := t.end(servers, j)
	if j+2 == len(servers.Content) {
		end = t.back(t.end(t.root, i), servers.Content[0].Column)
	}
	t.lines = slices.Delete(t.lines, servers.Content[j].Line-1, end)
	return nil
}

// addServers adds the setting with its first entry at the end of the file.
func (t *yamlText) addServers(c Change) error {
	indent := 0
	if t.root != nil {
		indent = t.root.Content[0].Column - 1
	}
	lines, err := t.render(c, indent+2)
	t.insert(len(t.lines), append([]string{strings.Repeat(" ", indent) + serversKey + ":" + t.eol}, lines...))
	return err
}

func (t *yamlText) add(c Change, key, servers *yaml.Node, end int) error {
	indent, at := key.Column-1+2, key.Line
	switch {
	case isBlock(servers):
		indent, at = servers.Content[0].Column-1, end
	case servers.Kind != yaml.ScalarNode || servers.Value != "":
		return errOtherWay
	}
	lines, err := t.render(c, indent)
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

// render writes the entry of a Change as lines.
func (t *yamlText) render(c Change, indent int) ([]string, error) {
	object := &document.Node{Kind: document.Object, Fields: []document.Field{{Name: c.Name, Value: c.entry()}}}
	data, err := encodeYAML(toYAML(object))
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
func toYAML(n *document.Node) *yaml.Node {
	switch n.Kind {
	case document.Object:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range n.Fields {
			out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.Name}, toYAML(f.Value))
		}
		return out
	case document.List:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range n.Items {
			out.Content = append(out.Content, toYAML(item))
		}
		return out
	case document.String:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.Text}
	case document.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(n.Bool)}
	case document.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: n.Text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// yamlNodes makes the change in any YAML file by writing all of it anew.
// Comments stay, the way things are written may change.
func (c Change) yamlNodes(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errOtherWay
	}
	root := doc.Content[0]
	i := keyOf(root, serversKey)
	if i < 0 && c.Entry != nil {
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
	j := keyOf(servers, c.Name)
	switch {
	case c.Entry != nil:
		servers.Content = append(servers.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: c.Name}, toYAML(c.entry()))
	case j < 0:
		return nil, errOtherWay
	case c.Drop:
		if servers.Content = slices.Delete(servers.Content, j, j+2); len(servers.Content) == 0 {
			root.Content = slices.Delete(root.Content, i, i+2)
		}
	default:
		turnNode(servers.Content[j+1], *c.Off)
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
