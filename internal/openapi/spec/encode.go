package spec

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Encoded form: for each operation its fields in the order of the struct, texts with their
// length before them. A listing of a thousand operations must not parse any of their
// schemas, nor the plans of those that are not called.

var errDamaged = errors.New("the encoded operations are damaged")

// Encode returns operations in a form that [Decode] reads without copying schemas.
func Encode(operations []Operation) ([]byte, error) {
	size := 16
	for i := range operations {
		size += 1024 + len(operations[i].Description) + len(operations[i].Input) + len(operations[i].Output)
	}
	out := binary.AppendUvarint(make([]byte, 0, size), uint64(len(operations)))
	for i := range operations {
		o := &operations[i]
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
		for _, s := range []string{o.Name, o.ID, o.Method, o.Path, o.Summary, o.Description, deprecated, o.OutputStatus, o.Wrap} {
			out = appendText(out, s)
		}
		out = binary.AppendUvarint(out, uint64(len(o.Tags)))
		for _, tag := range o.Tags {
			out = appendText(out, tag)
		}
		for _, data := range [][]byte{problem, o.Input, o.Output, plan} {
			out = appendText(out, data)
		}
	}
	return out, nil
}

func appendText[T string | []byte](out []byte, s T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// Decode reads what Encode wrote. The schemas are parts of data. The plans are read by
// [Operation.Load] when they are needed.
func Decode(data []byte) ([]Operation, error) {
	d := &decoder{rest: data}
	n := d.count()
	out := make([]Operation, 0, n)
	for range n {
		var o Operation
		var deprecated string
		for _, s := range []*string{&o.Name, &o.ID, &o.Method, &o.Path, &o.Summary, &o.Description, &deprecated, &o.OutputStatus, &o.Wrap} {
			*s = string(d.text())
		}
		o.Deprecated = deprecated != ""
		for range d.count() {
			o.Tags = append(o.Tags, string(d.text()))
		}
		problem := d.text()
		o.Input, o.Output, o.plan = d.text(), d.text(), d.text()
		if len(o.Output) == 0 {
			o.Output = nil
		}
		if len(problem) > 0 {
			o.Problem = &document.Problem{}
			if json.Unmarshal(problem, o.Problem) != nil {
				d.damaged = true
			}
		}
		if d.damaged {
			break
		}
		out = append(out, o)
	}
	if d.damaged || len(d.rest) > 0 {
		return nil, errDamaged
	}
	return out, nil
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
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > uint64(len(d.rest)) {
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
