package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// maxDepth is the maximum nesting of lists and objects in a value that leaves the script.
const maxDepth = 100

// decoder converts JSON to Starlark values. It reads the text once and builds no intermediate tree,
// because results may have many megabytes.
type decoder struct {
	*json.Decoder
	names map[string]starlark.String // of members, so that equal ones share memory
}

// decodeJSON converts one JSON value that was checked before.
func decodeJSON(text []byte) (starlark.Value, error) {
	d := &decoder{json.NewDecoder(bytes.NewReader(text)), map[string]starlark.String{}}
	d.UseNumber()
	return d.value(0)
}

// maxDecoded is the maximum nesting of JSON: that of encoding/json.
const maxDecoded = 10_000

func (d *decoder) value(depth int) (starlark.Value, error) {
	if depth > maxDecoded {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDecoded)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch x := token.(type) {
	case bool:
		return starlark.Bool(x), nil
	case string:
		return starlark.String(x), nil
	case json.Number:
		return number(string(x))
	case json.Delim:
		if x == '{' {
			return d.object(depth)
		}
		return d.array(depth)
	}
	return starlark.None, nil
}

func (d *decoder) array(depth int) (starlark.Value, error) {
	items := []starlark.Value{}
	for d.More() {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	_, err := d.Token()
	return starlark.NewList(items), err
}

func (d *decoder) object(depth int) (starlark.Value, error) {
	object := new(starlark.Dict)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		s, _ := token.(string) // the decoder accepts no other name
		name, ok := d.names[s]
		if !ok {
			name = starlark.String(s)
			d.names[s] = name
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if err := object.SetKey(name, v); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func number(token string) (starlark.Value, error) {
	if strings.ContainsAny(token, ".eE") {
		f, err := strconv.ParseFloat(token, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", text.Clip(token, 40))
		}
		return starlark.Float(f), nil
	}
	if n, err := strconv.ParseInt(token, 10, 64); err == nil {
		return starlark.MakeInt64(n), nil
	}
	n, _ := new(big.Int).SetString(token, 10) // valid JSON
	return starlark.MakeBigInt(n), nil
}

// encoder converts Starlark values to JSON.
type encoder struct {
	out   []byte
	most  int                       // bytes; 0 means unlimited
	media func(*media) (any, error) // converts media; nil means they are an error
	open  []any                     // the containers around the value
}

// notJSONError reports that a part of a value cannot be JSON.
type notJSONError struct{ Path, Reason string }

func (e *notJSONError) Error() string {
	path := strings.TrimPrefix(e.Path, ".")
	if path == "" {
		return "the value " + e.Reason
	}
	if len(path) > 200 {
		path = text.Clip(path, 40)
	}
	return "the value at " + path + " " + e.Reason
}

func (e *encoder) fail(format string, args ...any) error {
	return &notJSONError{Reason: fmt.Sprintf(format, args...)}
}

// withPlace adds the place of a value in its container to an error. It costs nothing if there is no
// error.
func withPlace(place string, err error) error {
	if wrong, ok := errors.AsType[*notJSONError](err); ok {
		wrong.Path = place + wrong.Path
	}
	return err
}

// encodeJSON converts a value to JSON. Objects keep the order of their keys.
func encodeJSON(v starlark.Value) ([]byte, error) {
	e := encoder{}
	err := e.value(v)
	return e.out, err
}

// errTooLong reports that a value does not fit in the limit of its encoder.
var errTooLong = errors.New("the value is too large")

func (e *encoder) value(v starlark.Value) error {
	if e.most > 0 && len(e.out) > e.most {
		return errTooLong
	}
	switch v := v.(type) {
	case starlark.NoneType:
		e.out = append(e.out, "null"...)
	case starlark.Bool:
		e.out = strconv.AppendBool(e.out, bool(v))
	case starlark.Int:
		e.out = append(e.out, v.String()...)
	case starlark.Float:
		return e.float(float64(v))
	case starlark.String:
		e.out = jsonx.AppendQuote(e.out, validText(string(v)))
	case *media:
		return e.medium(v)
	case starlark.IterableMapping:
		return e.object(v)
	case *outcome:
		return e.object(v.fields())
	case starlark.Bytes:
		return e.fail("has type bytes, which JSON does not have; str(x) is its text")
	case starlark.Iterable:
		return e.array(v)
	default:
		return e.fail("has type %s, which JSON does not have", v.Type())
	}
	return nil
}

func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return e.fail("is %s, which JSON does not have", starlark.Float(f))
	}
	text, err := json.Marshal(f)
	if err == nil && !strings.ContainsAny(string(text), ".eE") {
		text = append(text, ".0"...) // keep it a float for its reader
	}
	e.out = append(e.out, text...)
	return err
}

func (e *encoder) medium(m *media) error {
	if e.media == nil {
		return e.fail("is %s, which only the result of the script can hold", m.kind)
	}
	v, err := e.media(m)
	if err != nil {
		return err
	}
	text, err := json.Marshal(v)
	e.out = append(e.out, text...)
	return err
}

func (e *encoder) enter(v any) error {
	if slices.Contains(e.open, v) {
		return e.fail("contains itself")
	}
	if len(e.open) == maxDepth {
		return e.fail("is nested deeper than %d levels", maxDepth)
	}
	e.open = append(e.open, v)
	return nil
}

func (e *encoder) leave() { e.open = e.open[:len(e.open)-1] }

func (e *encoder) object(m starlark.IterableMapping) error {
	if err := e.enter(identity(m)); err != nil {
		return err
	}
	defer e.leave()
	iter := m.Iterate()
	defer iter.Done()
	e.out = append(e.out, '{')
	var key starlark.Value
	for i := 0; iter.Next(&key); i++ {
		name, ok := key.(starlark.String)
		if !ok {
			return e.fail("has a key of type %s; the keys of objects are strings", key.Type())
		}
		v, found, err := m.Get(key)
		if err != nil || !found {
			return e.fail("changes while it is read")
		}
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.out = jsonx.AppendQuote(e.out, validText(string(name)))
		e.out = append(e.out, ':')
		if err := e.value(v); err != nil {
			return withPlace("."+string(name), err)
		}
	}
	e.out = append(e.out, '}')
	return nil
}

func (e *encoder) array(list starlark.Iterable) error {
	if err := e.enter(identity(list)); err != nil {
		return err
	}
	defer e.leave()
	iter := list.Iterate()
	defer iter.Done()
	e.out = append(e.out, '[')
	var v starlark.Value
	for i := 0; iter.Next(&v); i++ {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(v); err != nil {
			return withPlace("["+strconv.Itoa(i)+"]", err)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// identity returns a value that is equal for the same container. Tuples and ranges cannot
// contain themselves.
func identity(v starlark.Value) any {
	switch v := v.(type) {
	case *starlark.List, *starlark.Dict, *starlark.Set:
		return v
	}
	return new(byte)
}

func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// media is an image, a sound, a resource or a link in the result of a call. Its content stays in
// the process that started the script.
type media struct {
	index    int // of the content in that process
	kind     string
	mimeType string
	uri      string
}

func (m *media) String() string {
	text := "<" + m.kind
	for _, more := range []string{m.mimeType, m.uri} {
		if more != "" {
			text += " " + more
		}
	}
	return text + ">"
}
func (m *media) Type() string          { return "content" }
func (m *media) Freeze()               {}
func (m *media) Truth() starlark.Bool  { return true }
func (m *media) Hash() (uint32, error) { return uint32(m.index), nil }

func (m *media) Attr(name string) (starlark.Value, error) {
	switch name {
	case "type":
		return starlark.String(m.kind), nil
	case "mimeType":
		return starlark.String(m.mimeType), nil
	case "uri":
		return starlark.String(m.uri), nil
	}
	return nil, nil
}

func (m *media) AttrNames() []string { return []string{"mimeType", "type", "uri"} }

// outcome is the value that call() returns.
type outcome struct {
	names  []string
	values map[string]starlark.Value
}

func (o *outcome) String() string { return o.fields().String() }
func (o *outcome) Type() string   { return "result" }
func (o *outcome) Freeze() {
	for _, v := range o.values {
		v.Freeze()
	}
}
func (o *outcome) Truth() starlark.Bool  { return o.values["ok"].Truth() }
func (o *outcome) Hash() (uint32, error) { return 0, errors.New("unhashable type: result") }

func (o *outcome) Attr(name string) (starlark.Value, error) { return o.values[name], nil }

func (o *outcome) AttrNames() []string { return o.names }

func (o *outcome) Get(key starlark.Value) (starlark.Value, bool, error) {
	name, _ := starlark.AsString(key)
	v, ok := o.values[name]
	return v, ok, nil
}

func (o *outcome) fields() *starlark.Dict {
	d := new(starlark.Dict)
	for _, name := range o.names {
		_ = d.SetKey(starlark.String(name), o.values[name]) // strings can be keys
	}
	return d
}
