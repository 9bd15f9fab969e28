package table

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Masked renders a value of the setting as JSON with its secrets masked.
func (r *Row) Masked(n *document.Node) json.RawMessage { return r.masked(n).Encode() }

func (r *Row) masked(n *document.Node) *document.Node {
	out := *n
	switch {
	case n.Kind == document.String && r.Secret:
		out.Text = secret.Source(n.Text)
	case n.Kind == document.String:
		out.Text = secret.MaskKnown(n.Text)
	}
	out.Items = make([]*document.Node, len(n.Items))
	for i, item := range n.Items {
		out.Items[i] = r.maskedItem(n.Items[:i], item)
	}
	out.Fields = slices.Clone(n.Fields)
	for i, f := range out.Fields {
		out.Fields[i].Value = r.Field(f.Name).masked(f.Value)
	}
	return &out
}

// maskedItem masks an element of a list. In an argv it also masks the word
// after "--token" and the text after the "=" of "TOKEN=x".
func (r *Row) maskedItem(before []*document.Node, item *document.Node) *document.Node {
	if r.Secret || len(r.Fields) > 0 {
		return r.masked(item)
	}
	if item.Kind != document.String {
		return (&Row{Type: Raw}).masked(item)
	}
	out := *item
	option := ""
	if len(before) > 0 {
		option = before[len(before)-1].Text
	}
	out.Text = secret.Word(option, item.Text)
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
