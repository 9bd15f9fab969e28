package document

import (
	"bytes"
	"errors"
	"io"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// yaml reads one YAML document; nil if it fails.
func (p *parser) yaml(data []byte) *jsonx.Value {
	first, second, err := yamlDocuments(data)
	switch {
	case err != nil:
		p.yamlSyntax(err, data)
		return nil
	case second != nil:
		p.fail(jsonx.NewPos(max(second.Line, 1), 1), "a second YAML document",
			"keep one document; the rest would be ignored")
	}
	if first == nil || len(first.Content) == 0 {
		return nullAt(jsonx.NewPos(1, 1))
	}
	return p.fromYAML(first.Content[0], map[*yaml.Node]bool{}, 0)
}

// yamlDocuments decodes the first two documents in data; nil for missing ones.
func yamlDocuments(data []byte) (first, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for _, node := range []**yaml.Node{&first, &second} {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		*node = &doc
	}
	return first, second, nil
}

// yamlSyntax reports an error. The library gives the line before the list or object with the
// mistake, or none. So the line is the first with which the beginning of the file fails in the same
// way as the whole.
func (p *parser) yamlSyntax(err error, data []byte) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	at := sort.Search(len(lines)-1, func(n int) bool {
		_, _, other := yamlDocuments(bytes.Join(lines[:n+1], nil))
		return other != nil && other.Error() == err.Error()
	})
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		_, message, _ = strings.Cut(rest, ": ")
	}
	has, hint := func(part string) bool { return strings.Contains(message, part) }, ""
	switch {
	case bytes.HasPrefix(bytes.TrimLeft(lines[at], " "), []byte("\t")):
		hint = "indent with spaces; YAML does not allow tabs"
	case has("cannot start any token"):
		hint = "put text that begins with @, % or ` in quotes"
	case has("alphabetic or numeric character"), has("unknown anchor"):
		hint = "put text that begins with * or & in quotes"
	case has("comment or line break"):
		hint = "put text that begins with > or | in quotes"
	case has("end of stream"):
		hint = "close the quotes"
	case has("mapping values are not allowed"):
		hint = `put text that contains ": " in quotes, and begin the keys of one object at the same column`
	case has("expected ',' or"):
		hint = `close every bracket, and put text that contains ": " in quotes`
	case has("'-' indicator"), has("expected key"):
		hint = "begin what belongs together at the same column; inside '…', write '' for '"
	case has("unknown escape character"), has("hexdecimal number"):
		message, hint = "text in double quotes has a backslash that does not begin an escape", "put a path with backslashes in single quotes"
	}
	p.fail(jsonx.NewPos(at+1, 1), "invalid YAML: "+message, hint)
}

// fromYAML converts a node; open holds the anchors that are being expanded.
func (p *parser) fromYAML(y *yaml.Node, open map[*yaml.Node]bool, depth int) *jsonx.Value {
	before := len(p.problems)
	n := p.yamlValue(y, open, depth)
	p.found(before, n)
	return n
}

func (p *parser) yamlValue(y *yaml.Node, open map[*yaml.Node]bool, depth int) *jsonx.Value {
	n := nullAt(jsonx.NewPos(max(y.Line, 1), max(y.Column, 1)))
	if !p.room(n.Pos, depth) {
		return n
	}
	if y.Style&yaml.TaggedStyle != 0 && !(p.merges && strings.HasPrefix(y.Tag, "!!")) {
		p.fail(n.Pos, "YAML tags such as "+y.Tag+" are not supported", "quote text, write numbers and booleans plainly")
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		return p.alias(y, open, depth)
	case yaml.SequenceNode:
		n.Kind = jsonx.Array
		for _, item := range y.Content {
			n.Items = append(n.Items, p.fromYAML(item, open, depth+1))
		}
	case yaml.MappingNode:
		n.Kind = jsonx.Object
		n.Members = p.yamlMembers(y, open, depth)
	default:
		p.scalar(n, y)
	}
	return n
}

func (p *parser) alias(y *yaml.Node, open map[*yaml.Node]bool, depth int) *jsonx.Value {
	if open[y.Alias] {
		n := nullAt(jsonx.NewPos(y.Line, y.Column))
		p.fail(n.Pos, "alias *"+y.Value+" is used inside its own anchor", "")
		return n
	}
	open[y.Alias] = true
	defer delete(open, y.Alias)
	return p.fromYAML(y.Alias, open, depth)
}

func (p *parser) yamlMembers(y *yaml.Node, open map[*yaml.Node]bool, depth int) []jsonx.Member {
	members := make([]jsonx.Member, 0, len(y.Content)/2)
	var merged []*jsonx.Value // of merge keys
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		at := jsonx.NewPos(key.Line, key.Column)
		switch {
		case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0:
			p.fail(at, "a key must be plain text", "")
			continue
		case key.ShortTag() == "!!merge" && p.merges:
			merged = append(merged, p.fromYAML(y.Content[i+1], open, depth+1))
			continue
		case key.ShortTag() == "!!merge":
			p.fail(at, "merge keys (<<) are not supported", "write out the members, or use an alias as the whole value")
			continue
		}
		p.text(at, key.Value)
		value := p.fromYAML(y.Content[i+1], open, depth+1)
		members = append(members, jsonx.Member{Name: key.Value, Pos: at, Value: value})
	}
	members = p.names(members)
	if len(merged) > 0 {
		members = withMerged(members, merged)
	}
	return members
}

// withMerged adds the members of the values of merge keys: objects, or lists of objects. A
// member that is there already takes precedence.
func withMerged(members []jsonx.Member, merged []*jsonx.Value) []jsonx.Member {
	have := make(map[string]bool, len(members))
	for _, m := range members {
		have[m.Name] = true
	}
	for i := 0; i < len(merged); i++ {
		merged = append(merged, merged[i].Items...)
		for _, m := range merged[i].Members {
			if !have[m.Name] {
				have[m.Name] = true
				members = append(members, m)
			}
		}
	}
	return members
}

func (p *parser) scalar(n *jsonx.Value, y *yaml.Node) {
	switch y.ShortTag() {
	case "!!null":
	case "!!bool":
		if n.Kind, n.Token = jsonx.False, "false"; strings.EqualFold(y.Value, "true") {
			n.Kind, n.Token = jsonx.True, "true"
		}
	case "!!int", "!!float":
		p.number(n, y.Value)
	default: // dates and the like are text, as in JSON
		p.string(n, y.Value)
	}
}
