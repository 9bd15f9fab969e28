package spec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Encoded form: the definitions that schemas of params share, those of results, and for each
// operation its fields in the order of the struct, with the numbers of the definitions that
// its schemas need; texts have their length before them. A listing of a thousand operations
// must not parse any of their schemas, nor the plans of those that are not called.

var errDamaged = errors.New("the encoded operations are damaged")

// Encode returns the operations of a document that [Read] returned, for [Decode].
func Encode(d *Document) ([]byte, error) {
	e := &encoder{numbers: map[*def]int{}}
	inputs, outputs := e.shared(d.inputs), e.shared(d.outputs)
	size := 0
	for _, defs := range [][]*def{inputs, outputs} {
		for _, d := range defs {
			size += 16 + len(d.name) + len(d.json)
		}
	}
	for i := range d.Operations {
		size += 1024 + len(d.Operations[i].Description) + len(d.inputs[i].own) + 4*len(d.inputs[i].defs)
		if output := d.outputs[i]; output != nil {
			size += len(output.own) + 4*len(output.defs)
		}
	}
	e.out = make([]byte, 0, size) // what is written into a slice that grows is copied again and again
	e.definitions(inputs)
	e.definitions(outputs)
	e.count(len(d.Operations))
	for i := range d.Operations {
		o := &d.Operations[i]
		plan, err := jsonx.Marshal(o.Plan)
		if err != nil {
			return nil, err
		}
		problem := []byte{}
		if o.Problem != nil {
			if problem, err = jsonx.Marshal(o.Problem); err != nil {
				return nil, err
			}
		}
		deprecated := ""
		if o.Deprecated {
			deprecated = "x"
		}
		for _, s := range []string{o.Name, o.ID, o.Method, o.Path, o.Server, o.Summary, o.Description, deprecated} {
			e.out = appendText(e.out, s)
		}
		e.count(len(o.Tags))
		for _, tag := range o.Tags {
			e.out = appendText(e.out, tag)
		}
		e.out = appendText(e.out, problem)
		e.schema(d.inputs[i])
		e.schema(d.outputs[i])
		e.out = appendText(e.out, plan)
	}
	return e.out, nil
}

// encoder writes encoded operations.
type encoder struct {
	out     []byte
	numbers map[*def]int // of definitions, in the order in which they are written
}

func (e *encoder) count(n int) { e.out = binary.AppendUvarint(e.out, uint64(n)) }

// shared numbers the definitions of schemas.
func (e *encoder) shared(schemas []*whole) []*def {
	var out []*def
	for _, schema := range schemas {
		if schema == nil {
			continue
		}
		for _, d := range schema.defs {
			if _, known := e.numbers[d]; !known {
				e.numbers[d] = len(out)
				out = append(out, d)
			}
		}
	}
	return out
}

func (e *encoder) definitions(defs []*def) {
	e.count(len(defs))
	for _, d := range defs {
		e.out = appendText(appendText(e.out, d.name), d.json)
	}
}

// schema writes a schema; an empty one stands for none.
func (e *encoder) schema(schema *whole) {
	if schema == nil {
		schema = &whole{}
	}
	e.out = appendText(e.out, schema.own)
	e.count(schema.kept)
	e.count(len(schema.defs))
	for _, d := range schema.defs {
		e.count(e.numbers[d])
	}
}

func appendText[T string | []byte](out []byte, s T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// Decode reads what Encode wrote. The plans are read by [Operation.Load] when they are
// needed.
func Decode(data []byte) ([]Operation, error) {
	d := &decoder{rest: data}
	inputs, outputs := d.definitions(), d.definitions()
	doc := &Document{}
	for range d.count() {
		var o Operation
		var deprecated string
		for _, s := range []*string{&o.Name, &o.ID, &o.Method, &o.Path, &o.Server, &o.Summary, &o.Description, &deprecated} {
			*s = string(d.text())
		}
		o.Deprecated = deprecated != ""
		for range d.count() {
			o.Tags = append(o.Tags, string(d.text()))
		}
		problem := d.text()
		input, output := d.schema(inputs), d.schema(outputs)
		o.plan = d.text()
		if len(problem) > 0 {
			o.Problem = &document.Problem{}
			if json.Unmarshal(problem, o.Problem) != nil {
				d.damaged = true
			}
		}
		if d.damaged || input == nil {
			return nil, errDamaged
		}
		doc.Operations = append(doc.Operations, o)
		doc.inputs, doc.outputs = append(doc.inputs, input), append(doc.outputs, output)
	}
	if d.damaged || len(d.rest) > 0 {
		return nil, errDamaged
	}
	doc.compose()
	return doc.Operations, nil
}

// Load reads the plan of an operation that Decode returned.
func (o *Operation) Load() error {
	if o.plan == nil {
		return nil
	}
	if err := json.Unmarshal(o.plan, &o.Plan); err != nil {
		return errDamaged
	}
	o.plan = nil
	return nil
}

// decoder reads encoded operations.
type decoder struct {
	rest    []byte
	damaged bool
}

// count returns the number of things that follow; each has at least a byte.
func (d *decoder) count() int {
	n := d.number()
	if n > len(d.rest) {
		d.damaged = true
		return 0
	}
	return n
}

func (d *decoder) number() int {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > math.MaxInt32 {
		d.damaged = true
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *decoder) text() []byte {
	n := d.count()
	if d.damaged || n > len(d.rest) {
		d.damaged = true
		return nil
	}
	out := d.rest[:n:n]
	d.rest = d.rest[n:]
	return out
}

func (d *decoder) definitions() []def {
	var out []def
	for range d.count() {
		out = append(out, def{name: string(d.text()), json: d.text()})
		if d.damaged {
			return nil
		}
	}
	return out
}

// schema reads a schema; nil if there is none.
func (d *decoder) schema(defs []def) *whole {
	out := &whole{own: d.text(), kept: d.count()}
	out.defs = make([]*def, d.count())
	for i := range out.defs {
		n := d.number()
		if n >= len(defs) {
			d.damaged = true
			return nil
		}
		out.defs[i] = &defs[n]
	}
	if len(out.own) == 0 {
		return nil
	}
	return out
}
