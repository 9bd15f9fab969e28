package table

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
)

// Masked renders a value of the setting as JSON with its secrets masked.
func (r *Row) Masked(n *jsonx.Value) json.RawMessage { return r.masked(n).JSON() }

func (r *Row) masked(n *jsonx.Value) *jsonx.Value {
	out := *n
	switch {
	case n.Kind == jsonx.String && r.Secret:
		out.Token = jsonx.Quote(secret.Source(n.Text()))
	case n.Kind == jsonx.String:
		out.Token = jsonx.Quote(secret.MaskKnown(n.Text()))
	}
	out.Items = make([]*jsonx.Value, len(n.Items))
	for i, item := range n.Items {
		out.Items[i] = r.maskedItem(n.Items[:i], item)
	}
	out.Members = slices.Clone(n.Members)
	for i, f := range out.Members {
		out.Members[i].Value = r.Field(f.Name).masked(f.Value)
	}
	return &out
}

// maskedItem masks an element of a list. In an argv it also masks the word
// after "--token" and the text after the "=" of "TOKEN=x".
func (r *Row) maskedItem(before []*jsonx.Value, item *jsonx.Value) *jsonx.Value {
	if r.Secret || len(r.Fields) > 0 {
		return r.masked(item)
	}
	if item.Kind != jsonx.String {
		return (&Row{Type: Raw}).masked(item)
	}
	out := *item
	option := ""
	if len(before) > 0 {
		option = before[len(before)-1].Text()
	}
	out.Token = jsonx.Quote(secret.Word(option, item.Text()))
	return &out
}

// Field returns the row of a member. An unknown member is a raw value; it is a
// secret if its name suggests so, or if it belongs to a secret.
func (r *Row) Field(name string) *Row {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return &r.Fields[i]
		}
	}
	return &Row{Name: name, Type: Raw, Secret: r.Secret || secret.Named(name) || name == "env" || name == "headers"}
}

// Secrets calls add with each text in a value that is a secret, the row that says so, and whether that
// row is one of the table. declared says that about r itself.
func (r *Row) Secrets(n *jsonx.Value, declared bool, add func(row *Row, text string, declared bool)) {
	if n.Kind == jsonx.String && r.Secret {
		add(r, n.Text(), declared)
	}
	for _, item := range n.Items {
		if r.Secret || len(r.Fields) > 0 {
			r.Secrets(item, declared, add)
		}
	}
	for _, f := range n.Members {
		known := slices.ContainsFunc(r.Fields, func(field Row) bool { return field.Name == f.Name })
		r.Field(f.Name).Secrets(f.Value, known, add)
	}
}
