// Package decode sets the fields of structs to settings in effect, or to the members of an entry.
// The tag of a field names the setting or member; its row in the table has the default and says how
// scopes are merged.
package decode

import (
	"reflect"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Command is an argv with its origin; an empty Argv means that none is set.
// The words are unexpanded: see package values.
type Command struct {
	Argv   []string
	Line   string // as written if it is one string, for messages; otherwise ""
	Origin layers.Origin
	Err    error // the mistakes in it, a [*document.Error], with which Argv is empty; nil means none
}

// IsSet reports whether the setting names a command.
func (c Command) IsSet() bool { return len(c.Argv) > 0 }

// Pair is one entry of an env or headers map, in file order. Value is
// unexpanded and may be a secret.
type Pair struct {
	Name, Value string
	Origin      layers.Origin
}

// Tag is the key of the struct tag that names the setting that a field holds, or the
// member of an entry.
const Tag = "setting"

// TagName is the tag of a field that holds the name of an entry in an object of names.
const TagName = "*"

// Decoder is implemented by types that decode their value themselves. The value has been checked
// and may be null. in is its file, or the place of the entry that it belongs to.
type Decoder interface {
	DecodeSetting(n *jsonx.Value, in layers.Origin)
}

// Settings sets the fields of a struct, and of nested structs, to the settings in effect that their
// tags name. to is a pointer to the struct.
func Settings(m *merge.Merged, to any) { settings(m, reflect.ValueOf(to).Elem()) }

// Setting sets *to to a setting: the values of the scopes in effect, merged by the setting's rule,
// or the default of the table.
func Setting(m *merge.Merged, to any, row *table.Row) { setting(m, reflect.ValueOf(to).Elem(), row) }

// Entry sets the fields of a struct to the members of an object that their tags name and the row
// has, or to their defaults. Its field Origin is set to in, the place of the object.
func Entry(to any, row *table.Row, name string, n *jsonx.Value, in layers.Origin) {
	decodeEntry(reflect.ValueOf(to).Elem(), row, name, n, in)
}

// Value sets *to, which has one of the types used for settings, to a checked value; null means the
// zero value. If it is a slice of structs, Value appends one for each object. in is the file of the
// value, or the place of the entry that it belongs to.
func Value(to any, row *table.Row, n *jsonx.Value, in layers.Origin) {
	setField(reflect.ValueOf(to).Elem(), row, n, in)
}

func settings(m *merge.Merged, v reflect.Value) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Tag.Get(Tag), v.Field(i)
		switch {
		case name != "":
			setting(m, field, m.Index.Row(name))
		case field.Kind() == reflect.Struct:
			settings(m, field)
		}
	}
}

func setting(m *merge.Merged, field reflect.Value, row *table.Row) {
	switch to := field.Addr().Interface().(type) {
	case *layers.List:
		*to = m.List(row.Name)
		return
	case *[]Pair:
		*to = nil
		for _, n := range m.Named(row.Name) {
			*to = append(*to, Pair{n.Name, n.Value.Text(), n.Origin})
		}
		return
	}
	switch all := m.Of(row); {
	case row.Merge == table.ByName:
		for _, n := range m.Named(row.Name) {
			appendEntry(field, row, n.Name, n.Value, n.Origin)
		}
	case row.Merge == table.Unite:
		for _, e := range all {
			setField(field, row, e.Value, e.Origin)
		}
	case len(all) > 0:
		last := all[len(all)-1]
		setField(field, row, last.Value, last.Origin)
		if c, ok := field.Addr().Interface().(*Command); ok && m.Faults.Of(last.Value) != nil {
			c.Argv, c.Err = nil, m.Faults.Of(last.Value)
		}
	default:
		setField(field, row, row.DefaultValue(), layers.Origin{})
	}
}

func decodeEntry(v reflect.Value, row *table.Row, name string, n *jsonx.Value, in layers.Origin) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch of := field.Tag.Get(Tag); {
		case of == TagName:
			v.Field(i).SetString(name)
		case of != "":
			value, known := n.Get(of), row.Field(of)
			if value == nil || value.Kind == jsonx.Null || known.Doc == "" { // an API does not have all fields of a server
				value = known.DefaultValue()
			}
			setField(v.Field(i), known, value, in)
		case field.Name == "Origin":
			v.Field(i).Set(reflect.ValueOf(in))
		}
	}
}

func setField(v reflect.Value, row *table.Row, n *jsonx.Value, in layers.Origin) {
	switch to := v.Addr().Interface().(type) {
	case *string:
		*to = n.Text()
	case *bool:
		*to = n.Is(jsonx.True)
	case *int:
		*to, _ = table.ParseInt(n)
	case *int64:
		*to, _ = table.ParseSize(n)
	case *time.Duration:
		*to, _ = table.ParseKeep(n) // also reads durations
	case *Command:
		*to = Command{Line: n.Text(), Origin: in}
		to.Argv, _ = table.ParseCommand(n) // already checked
	case *layers.Entry:
		*to = layers.Entry{Value: n.Text(), Origin: in}
	case *layers.List:
		*to = layers.ToList(n, in)
	case *[]Pair:
		*to = Pairs(n, in)
	case *[]string:
		*to = n.Strings()
	case *map[string]bool:
		*to = toMap(n, func(v *jsonx.Value) bool { return v.Is(jsonx.True) })
	case *map[string][]string:
		*to = toMap(n, (*jsonx.Value).Strings)
	case Decoder:
		to.DecodeSetting(n, in)
	default:
		switch v.Kind() {
		case reflect.Pointer:
			if n.Kind != jsonx.Null && (v.Type().Elem().Kind() != reflect.Struct || n.Is(jsonx.Object)) {
				v.Set(reflect.New(v.Type().Elem()))
				setField(v.Elem(), row, n, in)
			}
		case reflect.Struct:
			decodeEntry(v, row, "", n, in)
		case reflect.Slice:
			items := n.Items
			if n.Is(jsonx.Object) { // table.OneOrMore
				items = []*jsonx.Value{n}
			}
			for _, item := range items {
				in.Line, in.Col = item.Place()
				if row.Type == table.Addresses && item.Is(jsonx.String) {
					item = jsonx.NewObject(jsonx.NewMember("url", item))
				}
				appendEntry(v, row, "", item, in)
			}
		}
	}
}

func appendEntry(slice reflect.Value, row *table.Row, name string, n *jsonx.Value, in layers.Origin) {
	v := reflect.New(slice.Type().Elem()).Elem()
	decodeEntry(v, row, name, n, in)
	slice.Set(reflect.Append(slice, v))
}

func toMap[T any](n *jsonx.Value, value func(*jsonx.Value) T) map[string]T {
	if !n.Is(jsonx.Object) {
		return nil
	}
	out := make(map[string]T, len(n.Members))
	for _, m := range n.Members {
		out[m.Name] = value(m.Value)
	}
	return out
}

// Pairs returns the members of a checked object of texts, in file order. in names the file.
func Pairs(n *jsonx.Value, in layers.Origin) []Pair {
	if !n.Is(jsonx.Object) {
		return nil
	}
	out := make([]Pair, 0, len(n.Members))
	for _, f := range n.Members {
		in.Line, in.Col = f.Place()
		out = append(out, Pair{Name: f.Name, Value: f.Value.Text(), Origin: in})
	}
	return out
}
