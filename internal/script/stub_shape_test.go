package script_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
)

// Params that follow the signature of a tool are valid, those that do not are not. The tools
// are those of published servers. Lengths, ranges and patterns are not in a signature.
func TestSignaturesAgreeWithValidation(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/servers/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files of servers, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var server struct{ Tools []registry.Definition }
		if err := json.Unmarshal(data, &server); err != nil {
			t.Fatal(err)
		}
		for _, d := range server.Tools {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+d.Name, func(t *testing.T) { checkSignature(t, &d) })
		}
	}
	for _, input := range []string{
		`{"type":"object","properties":{"u":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]},"e":{"enum":["p",2,null,true]},"t":{"type":["number","boolean"]},"c":{"const":true}},"required":["u","c"]}`,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"x":{"type":"array","items":{"type":"integer"}},"y":{}},"required":["x"]},"m":{"type":"object","additionalProperties":{"type":"string"}}},"required":["o","m"]}`,
		`{"type":"object","properties":{"n":{"$ref":"#/$defs/node"}},"required":["n"],"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"a b":{"type":"boolean"}}}}}`,
		`{"type":"object","properties":{"a-b":{"type":"integer"},"class":{"type":["string","null"]}},"required":["a-b"],"additionalProperties":false}`,
		`{"type":"object","properties":{"known":{"type":"integer"}},"required":["known","other","an other"]}`,
		`{"type":"object","properties":{"long":{"enum":["` + strings.Repeat("long", 60) + `",5]}},"required":["long"]}`,
	} {
		t.Run(input, func(t *testing.T) {
			checkSignature(t, &registry.Definition{Name: "f", InputSchema: json.RawMessage(input)})
		})
	}
}

// unsigned are the keywords that a signature does not show.
var unsigned = []string{"format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties"}

// checkSignature compares the signature of a tool with its schema.
func checkSignature(t *testing.T, d *registry.Definition) {
	t.Helper()
	line := script.Stub(d)
	_, after, _ := strings.Cut(line, "(")
	p := &shapes{t: t, rest: after}
	params := p.params()
	v := registry.NewValidator(d.InputSchema)
	faults := func(value map[string]any) []registry.Violation {
		doc, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		violations, err := v.Validate(t.Context(), doc)
		if err != nil {
			t.Fatal(err)
		}
		return violations
	}
	valid := func(value map[string]any) {
		found := faults(value)
		if len(found) > 0 && !slices.ContainsFunc(found, func(f registry.Violation) bool { return slices.Contains(unsigned, f.Keyword) }) {
			t.Errorf("%s%v is not valid: %v", line, value, found)
		}
	}
	required, all := map[string]any{}, map[string]any{}
	for _, one := range params {
		all[one.name] = one.values[0]
		if !one.optional {
			required[one.name] = one.values[0]
		}
	}
	for _, value := range []map[string]any{required, all} {
		valid(value)
	}
	for _, one := range params {
		value := maps.Clone(required)
		for _, other := range one.values {
			value[one.name] = other
			valid(value)
		}
		for _, other := range []any{"other", 1.5, true, nil, []any{}, map[string]any{"other": 1}} {
			if value[one.name] = other; !one.takes(other) && faults(value) == nil {
				t.Errorf("%s%v is valid", line, value)
			}
		}
		if delete(value, one.name); !one.optional && faults(value) == nil {
			t.Errorf("%s%v is valid without %s", line, value, one.name)
		}
	}
}

// shape is what a signature says of a value.
type shape struct {
	name     string
	optional bool
	values   []any  // examples
	kinds    string // the types, one after another
}

// takes reports whether a value may have the type.
func (s *shape) takes(v any) bool {
	kind := map[string]string{"string": "str", "float64": "float", "bool": "bool", "<nil>": "None", "[]interface {}": "list", "map[string]interface {}": "dict"}[fmt.Sprintf("%T", v)]
	isLiteral := slices.ContainsFunc(s.values, func(one any) bool { return reflect.DeepEqual(one, v) })
	return isLiteral || strings.Contains(s.kinds, kind) || strings.Contains(s.kinds, "Any")
}

// shapes reads a signature.
type shapes struct {
	t    *testing.T
	rest string
}

func (p *shapes) next(token string) bool {
	rest, found := strings.CutPrefix(p.rest, token)
	if found {
		p.rest = rest
	}
	return found
}

// params reads the params up to the closing parenthesis.
func (p *shapes) params() (list []shape) {
	for !p.next(")") {
		switch {
		case p.next(", "):
		case p.next("**{"):
			list = append(list, p.members()...)
		default:
			name, rest, _ := strings.Cut(p.rest, ": ")
			p.rest = rest
			s := p.union()
			s.name, s.optional = name, p.next(" = ...")
			list = append(list, s)
		}
	}
	return list
}

// members reads the members of an object up to the closing brace.
func (p *shapes) members() (list []shape) {
	for !p.next("}") {
		p.next(", ")
		name := p.literal().(string)
		p.next(": ")
		optional := p.next("NotRequired[")
		s := p.union()
		s.name, s.optional = name, optional && p.next("]")
		list = append(list, s)
	}
	return list
}

// literal reads a value as JSON writes it.
func (p *shapes) literal() (v any) {
	for python, value := range map[string]any{"None": nil, "True": true, "False": false} {
		if p.next(python) {
			return value
		}
	}
	d := json.NewDecoder(strings.NewReader(p.rest))
	if err := d.Decode(&v); err != nil {
		p.t.Fatalf("%q: %v", p.rest, err)
	}
	p.rest = p.rest[d.InputOffset():]
	return v
}

func (p *shapes) union() (s shape) {
	for {
		p.one(&s)
		if !p.next(" | ") {
			return s
		}
	}
}

func (p *shapes) one(s *shape) {
	for _, simple := range []shape{{kinds: "str", values: []any{"text"}}, {kinds: "int", values: []any{7}}, {kinds: "float", values: []any{7.5, 7}}, {kinds: "bool", values: []any{true}},
		{kinds: "None", values: []any{nil}}, {kinds: "Any", values: []any{"text"}}} {
		if p.next(simple.kinds) {
			s.kinds, s.values = s.kinds+simple.kinds, append(s.values, simple.values...)
			return
		}
	}
	switch {
	case p.next("list["):
		item := p.union()
		s.values = append(s.values, []any{item.values[0]}, []any{})
		s.kinds += "list"
		p.next("]")
	case p.next("list"):
		s.kinds, s.values = s.kinds+"list", append(s.values, []any{})
	case p.next("dict[str, "):
		item := p.union()
		s.kinds, s.values = s.kinds+"dict", append(s.values, map[string]any{"key": item.values[0]})
		p.next("]")
	case p.next("dict"):
		s.kinds, s.values = s.kinds+"dict", append(s.values, map[string]any{})
	case p.next("Literal["):
		for !p.next("]") {
			if p.next(", "); p.next("...") {
				continue
			}
			s.values = append(s.values, p.literal())
		}
	case p.next("{"):
		whole, least := map[string]any{}, map[string]any{}
		for _, m := range p.members() {
			if whole[m.name] = m.values[0]; !m.optional {
				least[m.name] = m.values[0]
			}
		}
		s.kinds, s.values = s.kinds+"dict", append(s.values, whole, least)
	default:
		p.t.Fatalf("no type: %q", p.rest)
	}
}
