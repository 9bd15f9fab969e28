// Package local adapts JSON Schemas of tools to what servers of local models accept: llama.cpp,
// which LM Studio runs too, Ollama and vLLM. llama.cpp and vLLM compile all schemas of a request to
// one grammar, so a keyword that the compiler rejects costs the whole request. Ollama reads schemas
// into a type of its own, and what that type lacks never reaches the model. Removed constraints are
// described to the model in words, and are still checked when the tool is called. docs/providers.md
// has the versions and sources of the rules.
package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// The targets.
const (
	LlamaCPP = "llama.cpp"
	Ollama   = "ollama"
	VLLM     = "vllm"
)

// Targets returns the names of all targets.
func Targets() []string { return []string{LlamaCPP, Ollama, VLLM} }

// Limits on the result and on what merging examines, since an untrusted schema can ask for any
// size.
const (
	maxNodes = 20_000
	maxDepth = 64
	maxWork  = 1 << 20
)

// Fit returns root, the schema of a tool's params, rewritten for a target, and descriptions of the
// changes. Root is not changed.
func Fit(root *jsonx.Value, target string) (*jsonx.Value, []string) {
	f := &fitter{target: target, refs: schema.NewRefs(root)}
	out := f.schema(root, place{root: true, budget: maxRepeated})
	slices.Sort(f.changes)
	return out, slices.Compact(f.changes)
}

type fitter struct {
	target  string
	refs    *schema.Refs
	open    []*jsonx.Value // targets of the references that are being inlined
	nodes   int
	work    int // members that merging has examined
	changes []string
}

// place describes where a schema is.
type place struct {
	root   bool
	inside bool // ollama: below items, which it passes on whole
	depth  int
	budget int // llama.cpp: how often the rules of the schema may be repeated
}

func (p place) below() place {
	p.root = false
	p.depth++
	return p
}

func (f *fitter) changed(what string) { f.changes = append(f.changes, what) }

// anyTypes are the types of a schema that accepts anything. llama.cpp reads {} as an object.
func anyTypes() *jsonx.Value {
	return jsonx.NewArray(jsonx.NewString("string"), jsonx.NewString("number"), jsonx.NewString("boolean"),
		jsonx.NewString("object"), jsonx.NewString("array"), jsonx.NewString("null"))
}

func (f *fitter) schema(n *jsonx.Value, at place) *jsonx.Value {
	if f.nodes++; n.Is(jsonx.True) || f.nodes > maxNodes || at.depth > maxDepth {
		n = jsonx.NewObject()
	}
	if n.Get("$ref") != nil {
		return f.reference(n, at)
	}
	n = f.merged(n)
	out := jsonx.NewObject()
	var said []string // what is taken away
	for _, m := range n.Members {
		switch {
		case m.Name == "$defs" || m.Name == "definitions" || m.Name == "allOf": // inlined
		case m.Name == "anyOf" || m.Name == "oneOf":
			if list, ok := f.alternatives(n, m.Value, at); ok {
				name := m.Name
				if f.target == Ollama {
					name = "anyOf"
				}
				out.Set(name, list)
			} else {
				f.changed(m.Name + " removed")
			}
		case f.target == Ollama && !at.inside && m.Name == "const":
			out.Set("enum", jsonx.NewArray(m.Value.Clone()))
		default:
			value, words := f.keyword(n, m, at)
			if value != nil {
				out.Set(m.Name, value)
			}
			switch {
			case words != "":
				said = append(said, words)
				f.changed(m.Name + " moved to the description")
			case value == nil:
				f.changed(m.Name + " removed")
			}
		}
	}
	if f.target == LlamaCPP && !isShaped(out) {
		out.Set("type", anyTypes())
		f.changed("types added")
	}
	describe(out, said)
	return out
}

// reference replaces a reference by its target. Within the target itself, it is replaced by a
// schema with only the target's types.
func (f *fitter) reference(n *jsonx.Value, at place) *jsonx.Value {
	target, err := f.refs.Resolve(n)
	if err != nil {
		f.changed("references that lead nowhere removed")
		target = jsonx.NewObject()
	} else {
		f.changed("references inlined")
	}
	if slices.Contains(f.open, target) {
		short := jsonx.NewObject()
		if t := target.Get("type"); t != nil {
			short.Set("type", t.Clone())
		}
		f.changed("recursion cut")
		describe(short, []string{"of the same form as the value that contains it"})
		return f.schema(short, at)
	}
	f.open = append(f.open, target)
	defer func() { f.open = f.open[:len(f.open)-1] }()
	at.depth++
	return f.schema(target, at)
}

// merged merges the schemas of allOf into a schema, because no target accepts allOf beside other
// keywords. If a keyword has several values, the first is used.
func (f *fitter) merged(n *jsonx.Value) *jsonx.Value {
	if whole, err := f.refs.Resolve(n); err == nil && whole != n {
		f.changed("properties of conditions declared")
		n = whole
	}
	all := n.Get("allOf")
	if !all.Is(jsonx.Array) {
		return n
	}
	f.changed("allOf merged")
	out := jsonx.NewObject(slices.Clone(n.Members)...)
	out.Remove("allOf")
	for _, part := range all.Items {
		if part.Get("$ref") != nil {
			target, err := f.refs.Resolve(part)
			if err != nil || slices.Contains(f.open, target) {
				continue
			}
			part = target
		}
		if f.work++; f.work > maxWork {
			break
		}
		if part.Get("allOf") != nil {
			f.open = append(f.open, part)
			part = f.merged(part)
			f.open = f.open[:len(f.open)-1]
		}
		for _, m := range part.Members {
			f.work += len(out.Members) + len(m.Value.Members) + len(m.Value.Items)
			schema.Add(out, m)
		}
	}
	out.Remove("allOf") // of keywords that cannot be combined
	return out
}

// alternatives rewrites anyOf or oneOf. Targets do not understand them beside properties, values or
// items, nor alternatives that only say what is required.
func (f *fitter) alternatives(n, list *jsonx.Value, at place) (*jsonx.Value, bool) {
	for _, name := range []string{"properties", "enum", "const", "items"} {
		if n.Get(name) != nil {
			return nil, false
		}
	}
	out := jsonx.NewArray()
	for _, alternative := range list.Items {
		if alternative.Is(jsonx.False) {
			continue
		}
		if t := n.Get("type"); t != nil && !isShaped(alternative) {
			if alternative.Is(jsonx.True) {
				alternative = jsonx.NewObject()
			}
			alternative = alternative.Clone()
			alternative.Prepend("type", t.Clone())
		}
		if alternative.Get("$ref") == nil && !isShaped(alternative) && len(alternative.Members) > 0 {
			return nil, false
		}
		out.Items = append(out.Items, f.schema(alternative, at.below()))
	}
	return out, len(out.Items) > 0
}

// isShaped reports whether a schema has a keyword from which a compiler of grammars can make a
// rule.
func isShaped(n *jsonx.Value) bool {
	return slices.ContainsFunc([]string{
		"type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items", "prefixItems", "$ref",
	}, func(name string) bool {
		return n.Get(name) != nil
	})
}

// keyword returns the value of a keyword rewritten, or nil and what the description says instead.
func (f *fitter) keyword(n *jsonx.Value, m jsonx.Member, at place) (value *jsonx.Value, words string) {
	v := m.Value
	switch {
	case m.Name == "properties" && v.Is(jsonx.Object):
		out := jsonx.NewObject()
		for _, p := range v.Members {
			if p.Value.Is(jsonx.False) {
				f.changed("properties that no value fits removed")
				continue
			}
			out.Set(p.Name, f.schema(p.Value, at.below()))
		}
		return out, ""
	case m.Name == "items" && !v.Is(jsonx.Array):
		below := at.below()
		below.inside = true
		if bound := n.Get("maxItems"); bound != nil && f.takes(n, jsonx.NewMember("maxItems", bound), at) {
			times, _ := strconv.Atoi(bound.Token)
			below.budget /= max(1, times)
		}
		return f.schema(v, below), ""
	case (m.Name == "prefixItems" || m.Name == "items") && (at.inside || f.target != Ollama):
		out := jsonx.NewArray()
		below := at.below()
		below.inside = true
		for _, item := range v.Items {
			out.Items = append(out.Items, f.schema(item, below))
		}
		return out, ""
	case m.Name == "additionalProperties" && v.Is(jsonx.Object):
		if len(v.Members) == 0 { // llama.cpp would take only objects
			v = &jsonx.Value{Kind: jsonx.True, Token: "true"}
		} else if f.target != Ollama || at.inside {
			v = f.schema(v, at.below())
		}
	}
	if f.takes(n, m, at) {
		return v, ""
	}
	if m.Name == "pattern" && f.target == LlamaCPP {
		if plain, ok := plainPattern(v.Text()); ok {
			if plain != v.Text() {
				f.changed("patterns respelled")
			}
			return jsonx.NewString(plain), ""
		}
	}
	return nil, wording(m)
}

// maxRepeated limits how often llama.cpp repeats a rule, including the repetitions of surrounding
// lists. The limit of its grammar parser is 2,000.
const maxRepeated = 1000

// maxInteger is the largest bound of an integer that is kept; the rule for a bound grows with its
// digits.
const maxInteger = 1_000_000

// formats are those that vLLM's compiler, xgrammar, has rules for.
var formats = []string{
	"email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid", "uri",
	"uri-reference", "uri-template", "json-pointer", "relative-json-pointer",
}

// takes reports whether the target accepts a keyword unchanged.
func (f *fitter) takes(n *jsonx.Value, m jsonx.Member, at place) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return n.Get(name) != nil })
	}
	switch f.target {
	case LlamaCPP:
		switch m.Name {
		case "pattern":
			return false
		case "minLength", "maxLength", "minItems", "maxItems":
			times, err := strconv.Atoi(m.Value.Token)
			return err == nil && times >= 0 && times <= at.budget
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			bound, err := strconv.Atoi(m.Value.Token)
			return err == nil && max(bound, -bound) <= maxInteger || !schema.HasType(n, "integer")
		}
	case VLLM:
		switch m.Name {
		case "multipleOf", "uniqueItems", "contains", "minContains", "maxContains":
			return false
		case "format":
			return slices.Contains(formats, m.Value.Text())
		case "minLength", "maxLength":
			return !has("pattern", "format")
		case "propertyNames":
			return !has("properties", "patternProperties", "additionalProperties", "unevaluatedProperties")
		case "patternProperties":
			return !has("properties") && len(m.Value.Members) < 2
		case "pattern":
			return !lookaround.Get().MatchString(m.Value.Text())
		}
	case Ollama:
		if at.inside {
			return true
		}
		taken := []string{"type", "description", "enum", "properties", "items", "title"}
		if at.root {
			taken = append(taken, "required", "additionalProperties", "$schema", "$id")
		}
		return slices.Contains(taken, m.Name)
	}
	return true
}

// describe adds the removed constraints to the description of a schema.
func describe(n *jsonx.Value, said []string) {
	if len(said) == 0 {
		return
	}
	text := n.Get("description").Text()
	if text != "" {
		text += " "
	}
	n.Set("description", jsonx.NewString(text+"("+strings.Join(said, "; ")+")"))
}

// maxSaid limits how much of a value a description shows, in bytes.
const maxSaid = 200

// phrases are the words with which a description states a keyword and its value.
var phrases = []struct{ keyword, text string }{
	{"minLength", "at least %s characters"}, {"maxLength", "at most %s characters"},
	{"minItems", "at least %s items"}, {"maxItems", "at most %s items"},
	{"minProperties", "at least %s properties"}, {"maxProperties", "at most %s properties"},
	{"minimum", "at least %s"}, {"maximum", "at most %s"},
	{"exclusiveMinimum", "more than %s"}, {"exclusiveMaximum", "less than %s"},
	{"multipleOf", "a multiple of %s"}, {"pattern", "matching the pattern %s"}, {"format", "in the format %s"},
	{"default", "default %s"}, {"const", "always %s"},
}

// unsaid are keywords that a description does not state, except as in wording.
var unsaid = []string{
	"uniqueItems", "required", "additionalProperties", "title", "examples", "deprecated", "readOnly", "writeOnly",
	"$comment", "$schema", "$id", "$anchor", "minContains", "maxContains",
}

// wording states a keyword in words; "" if there is nothing to say.
func wording(m jsonx.Member) string {
	v := m.Value.Plain()
	if len(v) > maxSaid || v == "9007199254740991" || v == "-9007199254740991" {
		// JavaScript's largest integers say nothing as bounds.
		v = ""
	}
	for _, p := range phrases {
		if p.keyword == m.Name && v != "" {
			return fmt.Sprintf(p.text, v)
		}
	}
	switch {
	case m.Name == "uniqueItems" && m.Value.Is(jsonx.True):
		return "no two items are equal"
	case m.Name == "required" && len(m.Value.Items) > 0:
		return "required: " + strings.Join(m.Value.Strings(), ", ")
	case m.Name == "additionalProperties" && m.Value.Is(jsonx.False):
		return "no other properties"
	case v == `{"type":"string"}` && m.Name == "propertyNames", strings.HasPrefix(m.Name, "x-"):
		return ""
	case v == "" || m.Value.Is(jsonx.False) || slices.Contains(unsaid, m.Name):
		return ""
	}
	return m.Name + " " + v
}
