package args

import (
	"cmp"
	"context"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// WithoutInvalidExamples removes the examples from params that the tool would refuse:
// those in its definition or schema may be wrong, and the schema may have conditions that
// a made-up value does not meet. If the schema cannot be used, it removes all.
func WithoutInvalidExamples(ctx context.Context, def *registry.Definition, params []Param) []Param {
	validator, usable := registry.NewValidator(def.InputSchema), true
	types := newTypes(def.InputSchema)
	for i := range params {
		if p := &params[i]; len(p.Example) > 0 && !(usable && types.allows(ctx, validator, def, p, &usable)) {
			p.Example = nil
		}
	}
	return params
}

// allows reports whether the example of a param is valid; what is missing beside it does
// not count.
func (t types) allows(ctx context.Context, v *registry.Validator, def *registry.Definition, p *Param, usable *bool) bool {
	doc, err := Parse(p.Example, Options{Schema: def.InputSchema})
	if err != nil {
		return false
	}
	wrong, err := v.Validate(ctx, doc)
	if *usable = err == nil; err != nil {
		return false
	}
	pointer := ""
	for _, key := range t.path(p.Name) {
		pointer += "/" + jsonx.EscapeToken(key)
	}
	return !slices.ContainsFunc(wrong, func(w registry.Violation) bool {
		return w.Pointer == pointer || strings.HasPrefix(w.Pointer, pointer+"/")
	})
}

// sampler makes up values of one schema.
type sampler struct {
	types
	steps int // schemas seen; untrusted ones may contain themselves many times
}

// maxSteps is the maximum of steps for one value.
const maxSteps = 1000

// sample returns a small value that a schema allows, as far as its common keywords say:
// an object with the required properties, a list with as many elements as it must have,
// but at least one. It returns nil if it finds none.
func (t *sampler) sample(s *jsonx.Value, depth int) *jsonx.Value {
	s, err := t.refs.Resolve(s)
	if t.steps++; err != nil || depth > maxDescribed || t.steps > maxSteps {
		return nil
	}
	s = t.merged(s, depth)
	if v := s.Get("const"); v != nil {
		return v
	}
	if list := s.Get("enum"); list != nil && len(list.Items) > 0 {
		return list.Items[0]
	}
	names := typeNames(s.Get("type"))
	switch {
	case len(names) > 0:
	case s.Get("properties") != nil:
		names = []string{"object"}
	case listItems{s.Get("prefixItems"), s.Get("items")} != listItems{}:
		names = []string{"array"}
	default:
		for _, alternative := range alternatives(s) {
			if v := t.sample(alternative, depth+1); v != nil && !v.Is(jsonx.Null) {
				return v
			}
		}
		names = []string{"string"}
	}
	switch names[0] {
	case "integer", "number":
		return sampleNumber(s, names[0] == "integer")
	case "boolean":
		return jsonx.NewBool(true)
	case "string":
		return sampleText(s)
	case "array":
		return t.sampleList(s, depth)
	case "object":
		return t.sampleObject(s, depth)
	}
	return nil
}

// maxParts is how many schemas of an allOf count.
const maxParts = 20

// merged returns a schema with the keywords of its allOf merged into it.
func (t *sampler) merged(s *jsonx.Value, depth int) *jsonx.Value {
	all := s.Get("allOf")
	if t.steps++; !all.Is(jsonx.Array) || depth > maxDescribed || t.steps > maxSteps {
		return s
	}
	out := jsonx.NewObject(slices.Clone(s.Members)...)
	out.Remove("allOf")
	for _, part := range all.Items[:min(len(all.Items), maxParts)] {
		if part, err := t.refs.Resolve(part); err == nil && part.Is(jsonx.Object) {
			for _, m := range t.merged(part, depth+1).Members {
				if m.Name != "allOf" {
					schema.Add(out, m)
				}
			}
		}
	}
	return out
}

func (t *sampler) sampleObject(s *jsonx.Value, depth int) *jsonx.Value {
	object, needed := jsonx.NewObject(), schema.Required(s)
	if properties := s.Get("properties"); properties != nil {
		for _, m := range properties.Members {
			if needed[m.Name] {
				v := t.sample(m.Value, depth+1)
				if v == nil {
					return nil
				}
				object.Set(m.Name, v)
			}
		}
	}
	return object
}

// maxSampled is the maximum length of a made-up list or text.
const maxSampled = 100

func (t *sampler) sampleList(s *jsonx.Value, depth int) *jsonx.Value {
	items, list := listItems{s.Get("prefixItems"), s.Get("items")}, jsonx.NewArray()
	for i := range max(count(s, "minItems"), 1) {
		of := items.rest
		if items.places != nil && i < len(items.places.Items) {
			of = items.places.Items[i]
		}
		v := jsonx.NewString("TEXT")
		if of.Is(jsonx.Object) {
			v = t.sample(of, depth+1)
		}
		if v != nil && i > 0 && s.Get("uniqueItems").Is(jsonx.True) {
			v = t.element(of, v, i)
		}
		if v == nil || i >= maxSampled {
			return nil
		}
		list.Items = append(list.Items, v)
	}
	return list
}

// element returns a value for the element of a list with index i; v is the value of the first.
func (t *sampler) element(s, v *jsonx.Value, i int) *jsonx.Value {
	s, err := t.refs.Resolve(s)
	if enum := s.Get("enum"); err == nil && enum != nil {
		if i < len(enum.Items) {
			return enum.Items[i]
		}
		return nil
	}
	if v.Is(jsonx.String) {
		return jsonx.NewString(v.Text() + strconv.Itoa(i+1))
	}
	return nil
}

// count returns a keyword that is a small number; 0 without it.
func count(s *jsonx.Value, keyword string) int {
	n, _ := strconv.Atoi(number(s, keyword))
	return min(max(n, 0), maxSampled+1)
}

// sampleNumber tries 1, what is at the bounds or next to them, and their middle.
func sampleNumber(s *jsonx.Value, integer bool) *jsonx.Value {
	bound := func(keyword string) *big.Rat {
		token := number(s, keyword)
		if len(token) > 30 || strings.ContainsAny(token, "eE") {
			return nil
		}
		if r, ok := new(big.Rat).SetString(token); ok {
			return r
		}
		return nil
	}
	least, most, above, below := bound("minimum"), bound("maximum"), bound("exclusiveMinimum"), bound("exclusiveMaximum")
	if s.Get("exclusiveMinimum").Is(jsonx.True) { // draft 4
		least, above = nil, least
	}
	if s.Get("exclusiveMaximum").Is(jsonx.True) {
		most, below = nil, most
	}
	one := big.NewRat(1, 1)
	tries := []*big.Rat{one, least, most}
	if above != nil {
		tries = append(tries, new(big.Rat).Add(above, one))
	}
	if below != nil {
		tries = append(tries, new(big.Rat).Sub(below, one))
	}
	if low, high := cmp.Or(above, least), cmp.Or(below, most); low != nil && high != nil {
		tries = append(tries, new(big.Rat).Quo(new(big.Rat).Add(low, high), big.NewRat(2, 1)))
	}
	step := bound("multipleOf")
	if integer && (step == nil || !step.IsInt()) {
		step = one
	}
	for _, r := range tries {
		if r == nil {
			continue
		}
		if step != nil && step.Sign() > 0 { // the next multiple
			n := new(big.Rat).Quo(r, step)
			up := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(n.Num()), n.Denom()))
			r = new(big.Rat).Mul(new(big.Rat).SetInt(up), step)
		}
		if least != nil && r.Cmp(least) < 0 || most != nil && r.Cmp(most) > 0 || above != nil && r.Cmp(above) <= 0 || below != nil && r.Cmp(below) >= 0 {
			continue
		}
		token := r.RatString()
		if !r.IsInt() {
			token = strings.TrimRight(r.FloatString(10), "0")
		}
		return &jsonx.Value{Kind: jsonx.Number, Token: token}
	}
	return nil
}

// sampleText returns a text of the format, pattern and length of a schema.
func sampleText(s *jsonx.Value) *jsonx.Value {
	least, most := count(s, "minLength"), maxSampled
	if number(s, "maxLength") != "" {
		most = count(s, "maxLength")
	}
	text := cmp.Or(sampleOf(s.Get("format").Text()), "TEXT")
	fits := func(text string) bool {
		n := utf8.RuneCountInString(text)
		return n >= least && n <= most
	}
	if !fits(text) {
		text = strings.Repeat("TEXT", least/4+1)[:min(max(least, 1), most, 4*(least/4+1))]
	}
	if pattern := s.Get("pattern").Text(); pattern != "" {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil
		}
		if !re.MatchString(text) {
			text = matching(pattern, least)
		}
		if !re.MatchString(text) {
			return nil
		}
	}
	if !fits(text) {
		return nil
	}
	return jsonx.NewString(text)
}

// matching returns a short text that probably matches a pattern: of least characters, if
// a repetition in it allows that.
func matching(pattern string, least int) string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var text string
	for more := range maxSampled {
		w := patternWriter{more: more}
		w.write(tree)
		if text = w.b.String(); utf8.RuneCountInString(text) >= least || w.full() {
			break
		}
	}
	return text
}

// patternWriter writes a text that matches a pattern, with more repetitions than needed.
type patternWriter struct {
	b     strings.Builder
	more  int
	steps int
}

// full reports whether to stop: patterns are untrusted, and repetitions may nest.
func (w *patternWriter) full() bool { return w.b.Len() > maxSampled || w.steps > 100*maxSampled }

func (w *patternWriter) write(re *syntax.Regexp) {
	if w.steps++; w.full() {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		w.b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		w.b.WriteRune(oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		w.b.WriteByte('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			w.write(sub)
		}
	case syntax.OpAlternate:
		w.write(re.Sub[0])
	case syntax.OpStar:
		w.repeat(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		w.repeat(re.Sub[0], 1, -1)
	case syntax.OpRepeat:
		w.repeat(re.Sub[0], re.Min, re.Max)
	}
}

func (w *patternWriter) repeat(re *syntax.Regexp, least, most int) {
	n := least + w.more
	if most >= 0 {
		n = min(n, most)
	}
	for range n {
		if w.full() {
			return
		}
		w.write(re)
	}
}

// oneOf returns a character of a class, given as pairs of first and last: a letter or a
// digit, if it has one.
func oneOf(ranges []rune) rune {
	for _, want := range "aA1" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1] > ' ' {
			return max(ranges[i], '!')
		}
	}
	return '?'
}

// sampleOf returns an example of a string format, or "" for unknown formats.
func sampleOf(format string) string {
	switch format {
	case "date":
		return "2026-01-31"
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "time":
		return "12:00:00Z"
	case "duration":
		return "P1D"
	case "uri", "url", "iri", "uri-reference", "iri-reference", "uri-template":
		return "https://example.com/"
	case "hostname", "idn-hostname":
		return "example.com"
	case "email", "idn-email":
		return "ann@example.com"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	case "json-pointer":
		return "/a"
	case "regex":
		return "a.*"
	}
	return ""
}
