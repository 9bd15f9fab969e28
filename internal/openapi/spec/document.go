package spec

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Document is a document that was read.
type Document struct {
	Server     string      // of the first operation that has one
	Operations []Operation // in the order of the document

	inputs, outputs []*bundledSchema // of the operations, as Read found them
}

// compose makes the schemas of all operations.
func (d *Document) compose() {
	for i := range d.Operations {
		d.Operations[i].Input = d.inputs[i].whole()
		if d.outputs[i] != nil {
			d.Operations[i].Output = d.outputs[i].whole()
		}
	}
}

// Listing a thousand operations must not parse their schemas, nor the plans of those that are not
// called, so both are stored as bytes. Definitions are stored once for all schemas that need them.
type (
	encodedDocument struct {
		Inputs, Outputs []encodedDef // definitions shared by the schemas of params, and by those of results
		Operations      []encodedOperation
	}
	encodedDef struct {
		Name string
		JSON []byte
	}
	encodedOperation struct {
		Operation     Operation // without schemas and plan
		Plan          []byte
		Input, Output *encodedSchema
	}
	encodedSchema struct {
		Own  []byte
		Kept int
		Defs []int // numbers of definitions
	}
)

var errDamaged = errors.New("the encoded operations are damaged")

// Encode returns the operations of a document that [Read] returned, for [Decode].
func Encode(d *Document) ([]byte, error) {
	numbers := map[*def]int{}
	add := func(defs *[]encodedDef, w *bundledSchema) *encodedSchema {
		if w == nil {
			return nil
		}
		out := &encodedSchema{Own: w.own, Kept: w.kept, Defs: make([]int, len(w.defs))}
		for i, d := range w.defs {
			n, known := numbers[d]
			if !known {
				n, numbers[d] = len(*defs), len(*defs)
				*defs = append(*defs, encodedDef{d.name, d.json})
			}
			out.Defs[i] = n
		}
		return out
	}
	var all encodedDocument
	for i, o := range d.Operations {
		plan, err := jsonx.Marshal(o.Plan)
		if err != nil {
			return nil, err
		}
		o.Plan, o.Input, o.Output = Plan{}, nil, nil
		all.Operations = append(all.Operations,
			encodedOperation{o, plan, add(&all.Inputs, d.inputs[i]), add(&all.Outputs, d.outputs[i])})
	}
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(&all)
	return out.Bytes(), err
}

// Decode reads what Encode wrote. The plans are read by [Operation.Load] when they are
// needed.
func Decode(data []byte) ([]Operation, error) {
	var all encodedDocument
	if gob.NewDecoder(bytes.NewReader(data)).Decode(&all) != nil {
		return nil, errDamaged
	}
	doc, damaged := &Document{}, false
	shared := func(in []encodedDef) []def {
		out := make([]def, len(in))
		for i, d := range in {
			out[i] = def{name: d.Name, json: d.JSON}
		}
		return out
	}
	inputs, outputs := shared(all.Inputs), shared(all.Outputs)
	schema := func(s *encodedSchema, defs []def) *bundledSchema {
		if s == nil {
			return nil
		}
		out := &bundledSchema{own: s.Own, kept: s.Kept, defs: make([]*def, len(s.Defs))}
		for i, n := range s.Defs {
			if damaged = damaged || n < 0 || n >= len(defs); damaged {
				return nil
			}
			out.defs[i] = &defs[n]
		}
		return out
	}
	for _, o := range all.Operations {
		o.Operation.plan = o.Plan
		doc.Operations = append(doc.Operations, o.Operation)
		doc.inputs, doc.outputs = append(doc.inputs, schema(o.Input, inputs)),
			append(doc.outputs, schema(o.Output, outputs))
		if damaged || o.Input == nil {
			return nil, errDamaged
		}
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
