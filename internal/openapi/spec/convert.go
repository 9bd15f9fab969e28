package spec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// maxSchemaDepth limits the nesting of schemas, so that with the nesting of their values they stay
// within the registry's limit.
const maxSchemaDepth = 60

// maxInPlace limits a chain of schemas that refer to one another and apply to the same value.
const maxInPlace = 1000

// converter writes schemas of a document as JSON Schema (draft 2020-12). A schema that is
// referenced is written once for all operations. Params and results have separate converters,
// because they treat readOnly and writeOnly differently.
type converter struct {
	*fileSet
	version int  // of the document, as in reader
	output  bool // for results: leave writeOnly properties out, otherwise readOnly ones
	limit   int  // of a schema, in bytes
	total   int  // bytes of all schemas so far
	defs    map[target]*def
	names   map[string]int                   // of defs, with how often each name was requested
	queue   []*def                           // that are not written yet
	left    map[*jsonx.Value]map[string]bool // results of leftOut, by schema
	round   int                              // of the last whole schema
}

// def is a schema that other schemas reference.
type def struct {
	from    node
	name    string
	json    []byte
	refs    []*def // that it references
	inPlace []*def // those that apply to the same value
	err     error  // why it cannot be used
	round   int    // of the last whole schema that has it
	loop    loopState
}

// loopState is what is known about a def that may contain itself.
type loopState uint8

const (
	loopUnknown loopState = iota
	loopOpen              // its in-place references are being followed
	loopNone
)

// newConverter returns a converter for params, or for results.
func newConverter(files *fileSet, version int, output bool, limit int) *converter {
	return &converter{
		fileSet: files,
		version: version,
		output:  output,
		limit:   limit,
		defs:    map[target]*def{},
		left:    map[*jsonx.Value]map[string]bool{},
		names:   map[string]int{},
	}
}

// fragment is a schema that is written for one operation.
type fragment struct {
	json []byte
	refs []*def // that it references
	err  error
}

// schema writes a schema with another description; "" keeps its own.
func (c *converter) schema(n node, description string) *fragment {
	w := &writer{converter: c, from: n}
	w.writeSchema(n.Value, description, 0, true)
	return &fragment{w.buf, w.refs, w.err}
}

func (c *converter) reference(n node, ref string) (*def, error) {
	t, err := c.locate(n, ref)
	if err != nil {
		return nil, err
	}
	d := c.defs[t]
	if d == nil {
		d = &def{}
		if d.from, d.err = c.follow(n, ref); d.err == nil && d.from.Kind != jsonx.Object &&
			d.from.Kind != jsonx.True && d.from.Kind != jsonx.False {
			d.err = d.from.problem("a schema must be an object or a boolean")
		}
		d.name = c.nameOf(t)
		c.defs[t] = d
		c.queue = append(c.queue, d)
	}
	return d, nil
}

// nameOf returns a new name for a def, made of the last token of its pointer or the name of
// its file.
func (c *converter) nameOf(t target) string {
	name := t.pointer[strings.LastIndexByte(t.pointer, '/')+1:]
	if name == "" {
		name = t.file.name[strings.LastIndexByte(t.file.name, '/')+1:]
	}
	plain := plainName(name)
	unique := plain
	for c.names[unique] > 0 {
		c.names[plain]++
		unique = plain + "_" + strconv.Itoa(c.names[plain])
	}
	c.names[unique] = 1
	return unique
}

// plainName replaces the characters that some model providers do not accept in names.
func plainName(name string) string { return text.Plain(name, "_.-") }

// Limits of schemas, in bytes. In some documents each schema refers to all others: a definition
// that would exceed the limit of its schema accepts everything instead. The total size of all
// schemas of a document is limited too, and with it the time needed to follow references; beyond
// maxOutputs, results have no schemas.
const (
	maxInput   = registry.MaxSchemaBytes
	maxOutput  = 16 << 10
	maxInputs  = 160 << 20 // all schemas together
	maxOutputs = 64 << 20
)

// bundledSchema is a schema with the definitions that it needs. It is assembled last, because many
// schemas share definitions.
type bundledSchema struct {
	own  []byte
	defs []*def
	kept int // number of defs that are written in full; the others accept everything
}

// bundle adds to a schema the definitions that it needs, in the order in which they are referenced.
// It returns an error if a definition cannot be used or the schema is too large, which is reported
// for at.
func (c *converter) bundle(of *fragment, at node) (*bundledSchema, error) {
	if of.err != nil {
		return nil, of.err
	}
	c.drain()
	c.round++
	out := &bundledSchema{own: of.json}
	size := len(of.json) + len(`,"$defs":{}`)
	defer func() { c.total += size }()
	add := func(refs []*def) {
		for _, d := range refs {
			if d.round != c.round {
				d.round = c.round
				out.defs = append(out.defs, d)
				size += len(d.name) + len(`"":true,`)
			}
		}
	}
	if add(of.refs); size > c.limit {
		return nil, at.problem("the schema has %d bytes, but the limit is %d", size, c.limit)
	}
	for ; out.kept < len(out.defs); out.kept++ {
		d := out.defs[out.kept]
		if d.err == nil {
			d.checkLoop(0)
		}
		if d.err != nil {
			return nil, d.err
		}
		without := len(out.defs)
		size += len(d.json) - len("true")
		if add(d.refs); size > c.limit {
			out.defs = out.defs[:without]
			break
		}
	}
	return out, nil
}

// whole returns a schema with its definitions.
func (w *bundledSchema) whole() []byte {
	if len(w.defs) == 0 {
		return w.own
	}
	size := len(w.own) + len(`,"$defs":{}`) + len(w.defs)*len(`"":true,`)
	for i, d := range w.defs {
		if size += len(d.name); i < w.kept {
			size += len(d.json)
		}
	}
	out := append(make([]byte, 0, size), w.own[:len(w.own)-1]...)
	if len(w.own) > len("{}") {
		out = append(out, ',')
	}
	out = append(out, `"$defs":{`...)
	for i, d := range w.defs {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), d.name...), `":`...)
		if i < w.kept {
			out = append(out, d.json...)
		} else {
			out = append(out, "true"...)
		}
	}
	return append(out, "}}"...)
}

// drain writes all defs that are referenced.
func (c *converter) drain() {
	for len(c.queue) > 0 {
		d := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if d.err != nil {
			continue
		}
		w := &writer{converter: c, from: d.from}
		w.writeSchema(d.from.Value, "", 0, true)
		d.json, d.refs, d.inPlace, d.err = w.buf, w.refs, w.inPlace, w.err
	}
}

// checkLoop finds schemas that apply themselves to the same value, which validators cannot check.
func (d *def) checkLoop(depth int) {
	switch {
	case d.loop == loopNone:
		return
	case d.loop == loopOpen:
		d.err = d.from.problem("the schema contains itself")
		return
	case depth > maxInPlace:
		d.err = d.from.problem("more than %d schemas refer to one another for the same value", maxInPlace)
		return
	}
	d.loop = loopOpen
	for _, below := range d.inPlace {
		if below.checkLoop(depth + 1); below.err != nil && d.err == nil {
			d.err = below.err
		}
	}
	d.loop = loopNone
}

type writer struct {
	*converter
	from    node // the schema that is written as a whole: problems are reported there
	buf     []byte
	refs    []*def
	inPlace []*def
	err     error

	around []node // schemas that apply to the same value as the one that is written
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// mistake reports a keyword without effect that the document's author meant to have one. In results
// it is ignored, because results are not refused.
func (w *writer) mistake(format string, args ...any) {
	if !w.output {
		w.fail(w.from.problem(format, args...))
	}
}

// isAbsent reports whether a value stands for no value: some programs write null, or an empty
// list for an empty object.
func isAbsent(v *jsonx.Value) bool {
	return v == nil || v.Is(jsonx.Null) || v.Is(jsonx.Array) && len(v.Items) == 0
}

func (w *writer) text(s string) { w.buf = append(w.buf, s...) }

// key begins a member of an object.
func (w *writer) key(name string) {
	if last := w.buf[len(w.buf)-1]; last != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(jsonx.AppendQuote(w.buf, name), ':')
}

// value writes a member unchanged.
func (w *writer) value(name string, v *jsonx.Value) {
	w.key(name)
	w.buf = v.AppendTo(w.buf)
}

// string writes a member that is a string.
func (w *writer) string(name, s string) {
	w.key(name)
	w.buf = jsonx.AppendQuote(w.buf, s)
}

// writeSchema writes a schema. same says whether it applies to the same value as the schema that is
// written as a whole.
func (w *writer) writeSchema(n *jsonx.Value, description string, depth int, same bool) {
	switch {
	case depth > maxSchemaDepth:
		w.fail(w.from.problem("the schema is nested deeper than %d levels", maxSchemaDepth))
		w.text("true")
		return
	case n.Is(jsonx.False):
		w.text("false")
		return
	case !n.Is(jsonx.Object) && !n.Is(jsonx.True) && !isAbsent(n):
		w.mistake("a schema must be an object or a boolean")
		w.text("true")
		return
	case !n.Is(jsonx.Object) && description == "":
		w.text("true")
		return
	case !n.Is(jsonx.Object):
		w.text("{")
		w.string("description", description)
		w.text("}")
		return
	}
	nullable := w.version < 31 && (n.Get("nullable").Is(jsonx.True) || n.Get("x-nullable").Is(jsonx.True))
	wrapped := nullable && n.Get("type") == nil
	if wrapped {
		w.text(`{"anyOf":[`)
	}
	w.text("{")
	if description != "" && !wrapped {
		w.string("description", description)
	}
	if ref := n.Get("$ref"); ref.Is(jsonx.String) {
		w.reference(ref.Text(), same)
		if w.version < 31 { // keywords beside a reference are ignored
			n = jsonx.NewObject()
		}
	}
	w.keywords(n, description, depth, same, nullable)
	w.text("}")
	if wrapped {
		w.text(`,{"type":"null"}]`)
		if description != "" {
			w.string("description", description)
		}
		w.text("}")
	}
}

func (w *writer) reference(ref string, same bool) {
	d, err := w.converter.reference(w.from, ref)
	if err != nil {
		w.fail(err)
		return
	}
	w.refs = append(w.refs, d)
	if same {
		w.inPlace = append(w.inPlace, d)
	}
	w.string("$ref", "#/$defs/"+d.name)
}

// keywords writes the keywords that JSON Schema has, if their values have the right type. It leaves
// out extensions, examples in other forms and mistakes, because one of them would make the whole
// schema invalid.
func (w *writer) keywords(n *jsonx.Value, description string, depth int, same, nullable bool) {
	around := w.around
	defer func() { w.around = around }()
	var together []node
	for i := range n.Members {
		v, name := n.Members[i].Value, n.Members[i].Name
		w.around = nil
		switch name {
		case "required", "allOf", "anyOf", "oneOf":
			if together == nil {
				together = append(slices.Clip(around), w.appliedBy(w.at(n), "allOf")...)
			}
			w.around = together
		}
		switch name {
		case "description":
			if description == "" && v.Is(jsonx.String) {
				w.value(name, v)
			}
		case "title", "format", "pattern", "contentEncoding", "contentMediaType":
			if v.Is(jsonx.String) {
				w.value(name, v)
			}
		case "type":
			w.types(v, nullable)
		case "enum":
			if v.Is(jsonx.Array) && len(v.Items) > 0 {
				w.enum(v, nullable)
			} else if !isAbsent(v) {
				w.mistake("enum must be a list")
			}
		case "const", "default":
			w.value(name, v)
		case "example":
			if !w.output && n.Get("examples") == nil {
				w.key("examples")
				w.text("[")
				w.buf = v.AppendTo(w.buf)
				w.text("]")
			}
		case "examples":
			if !w.output && v.Is(jsonx.Array) && len(v.Items) > 0 {
				w.value(name, v)
			}
		case "uniqueItems", "deprecated", "readOnly", "writeOnly":
			if v.Is(jsonx.True) {
				w.value(name, v)
			}
		case "required":
			w.required(v)
		case "properties", "patternProperties", "dependentSchemas":
			w.named(name, v, w.leftOut(w.at(n)), depth, same && name == "dependentSchemas")
		case "allOf", "prefixItems":
			w.list(name, v, depth, same && name != "prefixItems")
		case "anyOf", "oneOf":
			// Servers accept a value that matches several alternatives; often these only describe
			// one.
			if name == "oneOf" && !w.output && n.Get("anyOf") == nil {
				name = "anyOf"
			}
			w.alternatives(name, n, v, depth, same)
		case "discriminator":
			w.discriminator(n)
		case "items":
			if v.Is(jsonx.Array) { // prefixItems since draft 2020-12
				w.list("prefixItems", v, depth, false)
			} else {
				w.sub(name, v, depth, false)
			}
		case "not", "if", "then", "else":
			w.sub(name, v, depth, same)
		case "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains":
			w.sub(name, v, depth, false)
		default:
			w.bound(n, name, v)
		}
	}
}

// sub writes a keyword whose value is a schema.
func (w *writer) sub(name string, v *jsonx.Value, depth int, same bool) {
	if v.Is(jsonx.Object) || v.Is(jsonx.True) || v.Is(jsonx.False) {
		w.key(name)
		w.writeSchema(v, "", depth+1, same)
	} else if !isAbsent(v) {
		w.mistake("%s must be a schema: an object or a boolean", name)
	}
}

// list writes a keyword whose value is a list of schemas.
func (w *writer) list(name string, v *jsonx.Value, depth int, same bool) {
	if !v.Is(jsonx.Array) || len(v.Items) == 0 {
		if !isAbsent(v) {
			w.mistake("%s must be a list of schemas", name)
		}
		return
	}
	w.key(name)
	for i := range v.Items {
		w.text([]string{"[", ","}[min(i, 1)])
		w.part(name, v.Items[i], depth+1, same)
	}
	w.text("]")
}

// part writes one schema of a list.
func (w *writer) part(name string, v *jsonx.Value, depth int, same bool) {
	if schema.IsUnquotedNull(name, v) {
		w.text(`{"type":"null"}`)
		return
	}
	w.writeSchema(v, "", depth, same)
}

// alternatives writes anyOf or oneOf. In params, the discriminator's value becomes part of each
// alternative.
func (w *writer) alternatives(name string, n, v *jsonx.Value, depth int, same bool) {
	property := n.Get("discriminator").Get("propertyName")
	if w.output || !property.Is(jsonx.String) || !v.Is(jsonx.Array) || len(v.Items) == 0 {
		w.list(name, v, depth, same)
		return
	}
	w.key(name)
	for i, item := range v.Items {
		w.text([]string{"[", ","}[min(i, 1)])
		values := w.discriminated(n, item.Get("$ref"))
		if len(values) == 0 || w.isSettled(item, property.Text()) {
			w.part(name, item, depth+1, same)
			continue
		}
		w.text("{")
		w.reference(item.Get("$ref").Text(), same)
		w.value("properties", jsonx.NewObject(jsonx.NewMember(property.Text(),
			jsonx.NewObject(jsonx.NewMember("enum", jsonx.NewStrings(values))))))
		w.text("}")
	}
	w.text("]")
}

// discriminated returns the discriminator values of n that select a reference: those in its
// mapping, or else the name of the schema.
func (w *writer) discriminated(n, ref *jsonx.Value) []string {
	if !ref.Is(jsonx.String) {
		return nil
	}
	own, err := w.locate(w.from, ref.Text())
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range w.mapping(n) {
		if t, err := w.locate(w.from, m[1]); err == nil && t == own {
			out = append(out, m[0])
		}
	}
	if name := own.pointer[strings.LastIndexByte(own.pointer, '/')+1:]; len(out) == 0 && name != "" {
		out = append(out, name)
	}
	return out
}

// mapping returns the discriminator values of n with the references that they select, which may be
// names of schemas.
func (w *writer) mapping(n *jsonx.Value) (refs [][2]string) {
	mapping := n.Get("discriminator").Get("mapping")
	if !mapping.Is(jsonx.Object) {
		return nil
	}
	for _, m := range mapping.Members {
		ref := m.Value.Text()
		if !strings.ContainsAny(ref, "#/.") {
			ref = "#/components/schemas/" + ref
		}
		refs = append(refs, [2]string{m.Name, ref})
	}
	return refs
}

// isSettled reports whether a schema itself says which values a property has.
func (w *writer) isSettled(item *jsonx.Value, property string) bool {
	resolved, err := w.resolve(w.at(item))
	if err != nil || !resolved.Is(jsonx.Object) {
		return true // the reference is reported elsewhere
	}
	for _, s := range append([]node{resolved}, resolved.get("allOf").items()...) {
		s, err := w.resolve(s)
		if err != nil {
			continue
		}
		if p, err := w.resolve(s.get("properties").get(property)); err == nil && p.Is(jsonx.Object) &&
			(p.Value.Get("enum") != nil || p.Value.Get("const") != nil) {
			return true
		}
	}
	return false
}

// discriminator writes which values of a property stand for which schemas. No validator
// reads it, but models do.
func (w *writer) discriminator(n *jsonx.Value) {
	property := n.Get("discriminator").Get("propertyName")
	if w.output || !property.Is(jsonx.String) {
		return
	}
	out := jsonx.NewObject(jsonx.NewMember("propertyName", property))
	mapping := jsonx.NewObject()
	for _, m := range w.mapping(n) {
		d, err := w.converter.reference(w.from, m[1])
		if err != nil || d.err != nil {
			continue // a mistake in the document that affects no request
		}
		w.refs = append(w.refs, d)
		mapping.Set(m[0], jsonx.NewString("#/$defs/"+d.name))
	}
	if len(mapping.Members) > 0 {
		out.Members = append(out.Members, jsonx.NewMember("mapping", mapping))
	}
	w.value("discriminator", out)
}

// named writes a keyword whose value maps names to schemas.
func (w *writer) named(name string, v *jsonx.Value, left map[string]bool, depth int, same bool) {
	if !v.Is(jsonx.Object) {
		if !isAbsent(v) {
			w.mistake("%s must be an object with a schema for each name", name)
		}
		return
	}
	w.key(name)
	w.text("{")
	for i := range v.Members {
		if name == "properties" && left[v.Members[i].Name] {
			continue
		}
		w.key(v.Members[i].Name)
		w.writeSchema(v.Members[i].Value, "", depth+1, same)
	}
	w.text("}")
}

// at returns a schema that is part of the one that is written as a whole.
func (w *writer) at(n *jsonx.Value) node { return node{n, w.from.file, w.from.at} }

// leftOut returns the properties of a schema that this direction leaves out.
func (c *converter) leftOut(n node) map[string]bool {
	out, known := c.left[n.Value]
	if known {
		return out
	}
	for _, property := range n.get("properties").members() {
		if c.isLeftOut(property) {
			if out == nil {
				out = map[string]bool{}
			}
			out[property.name()] = true
		}
	}
	c.left[n.Value] = out
	return out
}

// isLeftOut reports whether this direction leaves a property out.
func (c *converter) isLeftOut(p node) bool {
	keyword := "readOnly"
	if c.output {
		keyword = "writeOnly"
	}
	if p.Value.Get(keyword).Is(jsonx.True) {
		return true
	}
	if p.Value.Get("$ref") == nil {
		return false
	}
	resolved, err := c.resolve(p)
	return err == nil && resolved.Value.Get(keyword).Is(jsonx.True)
}

// required writes the names of required properties, except those that this direction leaves out in
// any of the enclosing schemas.
func (w *writer) required(v *jsonx.Value) {
	if !isRequired(v) {
		w.mistake("required must be a list of names")
	}
	if !v.Is(jsonx.Array) {
		return
	}
	var names []string
	seen := map[string]bool{}
	for _, name := range v.Strings() {
		isLeft := slices.ContainsFunc(w.around, func(n node) bool { return w.leftOut(n)[name] })
		if !isLeft && !seen[name] {
			names = append(names, name)
			seen[name] = true
		}
	}
	if len(names) > 0 {
		w.value("required", jsonx.NewStrings(names))
	}
}

// isRequired reports whether a value can be that of required: a list of names, or a boolean, as
// in draft 3.
func isRequired(v *jsonx.Value) bool {
	if v.Is(jsonx.Array) {
		return !slices.ContainsFunc(v.Items, func(name *jsonx.Value) bool { return !name.Is(jsonx.String) })
	}
	return isAbsent(v) || v.Is(jsonx.True) || v.Is(jsonx.False)
}

// types writes the type, without words that are not types.
func (w *writer) types(v *jsonx.Value, nullable bool) {
	var names []string
	anything := false
	add := func(word string) {
		name, ok := schema.TypeOfWord(word)
		if word == "file" { // Swagger 2.0
			name, ok = "string", true
		}
		switch {
		case !ok:
			w.mistake("%q is not a type; the types are null, boolean, object, array, number, string and integer", word)
		case name == "":
			anything = true
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	switch {
	case v.Is(jsonx.String):
		add(v.Text())
	case !v.Is(jsonx.Array) && !isAbsent(v):
		w.mistake("type must be a word or a list of words")
	}
	for _, name := range v.Items {
		switch {
		case name.Is(jsonx.String):
			add(name.Text())
		case name.Is(jsonx.Null): // without quotes in YAML
			add("null")
		}
	}
	if len(names) == 0 || anything {
		return
	}
	if nullable {
		add("null")
	}
	if len(names) == 1 {
		w.string("type", names[0])
		return
	}
	w.value("type", jsonx.NewStrings(names))
}

func (w *writer) enum(v *jsonx.Value, nullable bool) {
	values := v.Items
	if nullable && !slices.ContainsFunc(values, func(v *jsonx.Value) bool { return v.Is(jsonx.Null) }) {
		values = append(slices.Clone(values), jsonx.NewNull())
	}
	w.value("enum", jsonx.NewArray(values...))
}

// bound writes the keywords whose values are numbers. In OpenAPI 3.0 and Swagger 2.0 an
// exclusive bound is a boolean beside the bound.
func (w *writer) bound(n *jsonx.Value, name string, v *jsonx.Value) {
	isNumber := v.Is(jsonx.Number)
	switch name {
	case "minLength", "maxLength", "minItems", "maxItems",
		"minProperties", "maxProperties", "minContains", "maxContains":
		if isNumber && strings.Trim(v.Token, "0123456789") == "" {
			w.value(name, v)
		}
	case "multipleOf":
		if f, err := strconv.ParseFloat(v.Token, 64); isNumber && err == nil && f > 0 {
			w.value(name, v)
		}
	case "minimum", "maximum":
		exclusive := "exclusive" + strings.ToUpper(name[:1]) + name[1:]
		switch {
		case !isNumber:
		case n.Get(exclusive).Is(jsonx.True):
			w.value(exclusive, v)
		default:
			w.value(name, v)
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		if isNumber {
			w.value(name, v)
		}
	}
}

// property is one property of a tool's params.
type property struct {
	name     string
	schema   *fragment
	required bool
}

// object returns the schema of an object with the given properties and the schema of additional
// ones; nil allows any.
func object(properties []property, rest *fragment) *fragment {
	out := &fragment{json: []byte(`{"type":"object","properties":{`)}
	add := func(f *fragment) {
		out.json, out.refs = append(out.json, f.json...), append(out.refs, f.refs...)
		if out.err == nil {
			out.err = f.err
		}
	}
	var required []string
	for i, p := range properties {
		if i > 0 {
			out.json = append(out.json, ',')
		}
		out.json = append(jsonx.AppendQuote(out.json, p.name), ':')
		add(p.schema)
		if p.required {
			required = append(required, p.name)
		}
	}
	out.json = append(out.json, '}')
	if len(required) > 0 {
		out.json = append(out.json, `,"required":`...)
		out.json = jsonx.NewStrings(required).AppendTo(out.json)
	}
	if rest != nil {
		out.json = append(out.json, `,"additionalProperties":`...)
		add(rest)
	}
	out.json = append(out.json, '}')
	return out
}
