package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// amount says how many of the optional properties a generated value has.
type amount int

const (
	required amount = iota // those that the schema requires
	all
	some // a random half
)

var errNoValue = errors.New("found no valid value")

// generator makes values that a JSON Schema allows. The same seed gives the same values.
type generator struct {
	root     any // the schema that "#" refers to
	compiled *jsonschema.Schema
	random   *rand.Rand
	optional amount
}

func newGenerator(schema []byte, seed uint64) (*generator, error) {
	g := &generator{random: rand.New(rand.NewPCG(seed, 1))}
	if err := json.Unmarshal(schema, &g.root); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	if err := c.AddResource("tool.json", strings.NewReader(string(schema))); err != nil {
		return nil, err
	}
	var err error
	g.compiled, err = c.Compile("tool.json")
	return g, err
}

// need makes params required.
func (g *generator) need(names []string) {
	root, ok := g.root.(map[string]any)
	if !ok {
		return
	}
	for _, name := range names {
		list, _ := root["required"].([]any)
		root["required"] = append(list, name)
	}
}

// params returns the params of a call. It tries again while the schema does not allow what
// it made, as happens with "not" or contradicting branches.
func (g *generator) params(optional amount) (map[string]any, error) {
	var last error
	for range 40 {
		g.optional = optional
		v, err := g.value(g.root, 0)
		if err == nil {
			err = g.compiled.Validate(v)
		}
		if err == nil {
			return v.(map[string]any), nil
		}
		last = err
	}
	return nil, errors.Join(errNoValue, last)
}

// resolve follows references and merges what applies at the same place.
func (g *generator) resolve(schema any, depth int) (map[string]any, error) {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return nil, errNoValue
		}
		return map[string]any{}, nil
	}
	if depth > 40 {
		return nil, errNoValue
	}
	out := maps.Clone(s)
	add := func(part any) error {
		resolved, err := g.resolve(part, depth+1)
		if err == nil {
			merge(out, resolved)
		}
		return err
	}
	if ref, ok := s["$ref"].(string); ok {
		delete(out, "$ref")
		target, err := g.lookup(ref)
		if err != nil {
			return nil, err
		}
		if err := add(target); err != nil {
			return nil, err
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		parts, ok := s[key].([]any)
		if !ok || len(parts) == 0 {
			continue
		}
		delete(out, key)
		if key != "allOf" {
			// Deep inside, a branch that ends is more likely to be short.
			parts = parts[g.random.IntN(len(parts)):][:1]
		}
		for _, part := range parts {
			if err := add(part); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (g *generator) lookup(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, fmt.Errorf("reference %q leaves the schema", ref)
	}
	at := g.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("reference %q has no target", ref)
		}
		if at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return nil, fmt.Errorf("reference %q has no target", ref)
		}
	}
	return at, nil
}

// merge adds to s what more says. Where both limit the same, the narrower holds if it is
// obvious; otherwise the validation of the whole value fails and another is made.
func merge(s, more map[string]any) {
	for key, value := range more {
		old, both := s[key]
		if !both {
			s[key] = value
			continue
		}
		switch key {
		case "properties":
			properties := maps.Clone(old.(map[string]any))
			for name, schema := range value.(map[string]any) {
				if was, ok := properties[name]; ok {
					schema = map[string]any{"allOf": []any{was, schema}}
				}
				properties[name] = schema
			}
			s[key] = properties
		case "required":
			s[key] = append(slices.Clone(old.([]any)), value.([]any)...)
		case "enum":
			s[key] = slices.DeleteFunc(slices.Clone(old.([]any)), func(v any) bool {
				return !slices.ContainsFunc(value.([]any), func(w any) bool { return equal(v, w) })
			})
		case "type":
			if types := slices.DeleteFunc(typesOf(old),
				func(t string) bool { return !slices.Contains(typesOf(value), t) }); len(types) > 0 {
				list := make([]any, len(types))
				for i := range types {
					list[i] = types[i]
				}
				s[key] = list
			}
		case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
			s[key] = max(number(old), number(value))
		case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
			s[key] = min(number(old), number(value))
		case "items":
			s[key] = map[string]any{"allOf": []any{old, value}}
		}
	}
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

func typesOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, t := range v {
			if t, ok := t.(string); ok {
				out = append(out, t)
			}
		}
		return out
	}
	return nil
}

func (g *generator) value(schema any, depth int) (any, error) {
	s, err := g.resolve(schema, 0)
	if err != nil {
		return nil, err
	}
	if v, ok := s["const"]; ok {
		return v, nil
	}
	if list, ok := s["enum"].([]any); ok {
		if len(list) == 0 {
			return nil, errNoValue
		}
		if some := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == nil }); len(some) > 0 {
			list = some
		}
		return list[g.random.IntN(len(list))], nil
	}
	types := slices.DeleteFunc(typesOf(s["type"]), func(t string) bool { return t == "null" })
	kind := ""
	switch {
	case len(types) > 0:
		kind = types[g.random.IntN(len(types))]
	case len(typesOf(s["type"])) > 0:
		return nil, nil
	case s["properties"] != nil || s["required"] != nil || depth == 0:
		kind = "object"
	case s["items"] != nil:
		kind = "array"
	default:
		kind = "string"
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "boolean":
		return g.random.IntN(2) == 1, nil
	case "integer", "number":
		return g.number(s, kind == "integer")
	}
	return g.text(s)
}

func (g *generator) object(s map[string]any, depth int) (any, error) {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	needed, _ := s["required"].([]any)
	for _, name := range needed {
		if name, ok := name.(string); ok && properties[name] == nil {
			schema := s["additionalProperties"]
			v, err := g.value(schema, depth+1)
			if err != nil {
				return nil, err
			}
			out[name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		isRequired := slices.Contains(needed, any(name))
		wanted := g.optional == all && depth < 4 || g.optional == some && depth < 4 && g.random.IntN(2) == 1
		if !isRequired && !wanted {
			continue
		}
		v, err := g.value(properties[name], depth+1)
		switch {
		case err == nil:
			out[name] = v
		case isRequired:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name := range missing(int(number(s["minProperties"]))-len(out), g.random) {
		v, err := g.value(s["additionalProperties"], depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// missing yields n new names.
func missing(n int, random *rand.Rand) func(func(string) bool) {
	return func(yield func(string) bool) {
		for range n {
			if !yield(fmt.Sprintf("key%d", random.IntN(1e6))) {
				return
			}
		}
	}
}

func (g *generator) array(s map[string]any, depth int) (any, error) {
	least := int(number(s["minItems"]))
	length := max(least, 2) // a form with one value is no list for Prism
	if depth > 6 {
		length = least
	}
	if most, ok := s["maxItems"].(float64); ok {
		length = min(length, int(most))
	}
	out := []any{}
	for tries := 0; len(out) < length && tries < 20*(length+1); tries++ {
		v, err := g.value(s["items"], depth+1)
		switch {
		case err != nil && len(out) >= least:
			return out, nil
		case err != nil:
			return nil, err
		case s["uniqueItems"] == true && slices.ContainsFunc(out, func(w any) bool { return equal(v, w) }):
		default:
			out = append(out, v)
		}
	}
	return out, nil
}

func (g *generator) number(s map[string]any, whole bool) (any, error) {
	low, high := math.Inf(-1), math.Inf(1)
	if v, ok := s["minimum"].(float64); ok {
		low = v
	}
	if v, ok := s["exclusiveMinimum"].(float64); ok {
		low = max(low, math.Nextafter(v, math.Inf(1)))
	}
	if v, ok := s["maximum"].(float64); ok {
		high = v
	}
	if v, ok := s["exclusiveMaximum"].(float64); ok {
		high = min(high, math.Nextafter(v, math.Inf(-1)))
	}
	switch {
	case math.IsInf(low, 0) && math.IsInf(high, 0):
		low, high = 1, 100
	case math.IsInf(low, 0):
		low = min(1, high-100)
	case math.IsInf(high, 0):
		high = max(100, low+100)
	}
	if step, ok := s["multipleOf"].(float64); ok && step > 0 && (!whole || step >= 1) {
		return math.Ceil(low/step) * step, nil
	}
	if whole {
		low, high = math.Ceil(low), math.Floor(high)
		if low > high {
			return nil, errNoValue
		}
		return low + math.Floor(g.random.Float64()*min(high-low, 1000)), nil
	}
	return low + math.Round(g.random.Float64()*min(high-low, 1000)*4)/4, nil
}

// formats has an example of every format that the documents use and a validator knows.
var formats = map[string]string{
	"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "time": "03:04:05Z",
	"duration": "P1D", "email": "ada@example.com", "idn-email": "ada@example.com",
	"hostname": "example.com", "idn-hostname": "example.com", "ipv4": "192.0.2.1",
	"ipv6": "2001:db8::1", "uri": "https://example.com/a", "url": "https://example.com/a",
	"uri-reference": "/a", "iri": "https://example.com/a", "iri-reference": "/a",
	"uri-template": "https://example.com/{a}", "uuid": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
	"json-pointer": "/a", "relative-json-pointer": "0", "regex": "a+", "byte": "aGVsbG8=",
	"binary": "data:text/plain;base64,aGVsbG8=", "int32": "7", "int64": "7",
}

func (g *generator) text(s map[string]any) (any, error) {
	if format, ok := s["format"].(string); ok && formats[format] != "" {
		return formats[format], nil
	}
	least, most := int(number(s["minLength"])), -1
	if v, ok := s["maxLength"].(float64); ok {
		most = int(v)
	}
	if pattern, ok := s["pattern"].(string); ok {
		return g.matching(pattern, least, most)
	}
	text := fmt.Sprintf("text%d", g.random.IntN(1000))
	for len(text) < least {
		text += "x"
	}
	if most >= 0 && len(text) > most {
		text = text[:most]
	}
	return text, nil
}

// matching returns a text that the pattern matches.
func (g *generator) matching(pattern string, least, most int) (any, error) {
	expression, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: pattern %q: %w", errNoValue, pattern, err)
	}
	for range 50 {
		var b strings.Builder
		g.write(&b, expression.Simplify(), least)
		if n := len([]rune(b.String())); n >= least && (most < 0 || n <= most) {
			return b.String(), nil
		}
	}
	return nil, fmt.Errorf("%w: pattern %q", errNoValue, pattern)
}

func (g *generator) write(b *strings.Builder, e *syntax.Regexp, least int) {
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
	case syntax.OpCharClass:
		b.WriteRune(g.character(e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, part := range e.Sub {
			g.write(b, part, least)
		}
	case syntax.OpAlternate:
		g.write(b, e.Sub[g.random.IntN(len(e.Sub))], least)
	case syntax.OpQuest:
		if g.random.IntN(2) == 1 {
			g.write(b, e.Sub[0], least)
		}
	case syntax.OpStar, syntax.OpPlus:
		g.write(b, e.Sub[0], least)
		for b.Len() < least {
			before := b.Len()
			if g.write(b, e.Sub[0], least); b.Len() == before {
				return
			}
		}
	}
}

// character prefers a printable character of the class.
func (g *generator) character(ranges []rune) rune {
	var plain []rune
	for i := 0; i < len(ranges); i += 2 {
		for r := max(ranges[i], ' '+1); r <= min(ranges[i+1], '~'); r++ {
			plain = append(plain, r)
		}
	}
	if letters := slices.DeleteFunc(slices.Clone(plain), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", r)
	}); len(letters) > 0 {
		plain = letters
	}
	if len(plain) > 0 {
		return plain[g.random.IntN(len(plain))]
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'x'
}
