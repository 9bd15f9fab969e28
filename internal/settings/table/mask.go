package table

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/secret"
)

// Secret is a secret in a value, or a variable or a reference that stands for one.
type Secret struct {
	Key  string       // where it is below the value, such as env.API_KEY or args
	At   *jsonx.Value // what contains it
	Text string       // the secret alone
	// Telling means that the secret is masked wherever it appears. Otherwise it is masked only in
	// its place, because that may hold any value, such as LOG_LEVEL=debug in env.
	Telling bool
}

// Masked renders a value of the setting as JSON with its secrets masked.
func (r *Row) Masked(n *jsonx.Value) json.RawMessage {
	return r.masked("", n, func(Secret) {}).JSON()
}

// Secrets calls found with each secret that Masked masks.
func (r *Row) Secrets(n *jsonx.Value, found func(Secret)) { r.masked("", n, found) }

// masked decides which parts of a value are secret; everything that is shown, logged or copied uses
// it. It returns the value with its secrets masked, and reports them.
func (r *Row) masked(key string, n *jsonx.Value, found func(Secret)) *jsonx.Value {
	out, text := *n, n.Text()
	telling := func(text string) { found(Secret{key, n, text, true}) }
	switch {
	case n.Kind == jsonx.String && r.Secret:
		// A value of any type, such as that of a variable, need not be a secret.
		found(Secret{key, n, text, r.Type != Raw || secret.Telling(r.Name, text)})
		secret.Text(text, telling)
		for part := range strings.SplitSeq(text, ";") { // of a cookie or a connection string
			if _, value, ok := strings.Cut(part, "="); ok && secret.Telling("", value) {
				telling(value)
			}
		}
		out.Token = jsonx.Quote(secret.Source(text))
	case n.Kind == jsonx.Number && r.Secret && secret.Named(r.Name):
		found(Secret{key, n, n.Token, true})
		out.Kind, out.Token = jsonx.String, jsonx.Quote(secret.Masked)
	case n.Kind == jsonx.String && (r.Type == Command || r.Name == "command"):
		out.Token = jsonx.Quote(secret.Line(text, telling))
	case n.Kind == jsonx.String:
		out.Token = jsonx.Quote(secret.Text(text, telling))
	}
	out.Items = make([]*jsonx.Value, len(n.Items))
	before := ""
	for i, item := range n.Items {
		switch {
		case r.Secret || len(r.Fields) > 0:
			out.Items[i] = r.masked(key, item, found)
		case item.Kind == jsonx.String: // it may be a word of a command
			word := *item
			word.Token = jsonx.Quote(secret.Word(before, item.Text(),
				func(text string) { found(Secret{key, n, text, true}) }))
			out.Items[i] = &word
		default:
			out.Items[i] = (&Row{Type: Raw}).masked(key, item, found)
		}
		before = item.Text()
	}
	out.Members = slices.Clone(n.Members)
	for i, f := range out.Members {
		below := f.Name
		if key != "" {
			below = key + "." + f.Name
		}
		out.Members[i].Value = r.Field(f.Name).masked(below, f.Value, found)
	}
	return &out
}

// Field returns the row of a member. An unknown member is a raw value, or text if it is a header that may
// be a credential. It is a secret if its name suggests so, or if it belongs to a secret.
func (r *Row) Field(name string) *Row {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return &r.Fields[i]
		}
	}
	row := &Row{Name: name, Type: Raw, Secret: r.Secret || secret.Named(name) || name == "env" || name == "headers"}
	headers := r.Name == "headers" || strings.HasSuffix(r.Name, ".headers")
	switch {
	case r.Secret && slices.Contains([]string{"const", "default", "enum"}, name): // of a param
		row.Name = r.Name
	case headers && strings.Contains(name, "://"): // those of an origin
		row.Name = "headers"
	case headers && !isAboutContent(name):
		row.Type = String
	}
	return row
}

// isAboutContent reports whether a header describes a body, the accepted bodies, or the sender.
// Values of all other headers may be credentials.
func isAboutContent(header string) bool {
	header = strings.ToLower(header)
	return strings.HasPrefix(header, "accept") || strings.HasPrefix(header, "content-") ||
		slices.Contains([]string{"cache-control", "user-agent", "origin", "referer"}, header)
}

// OfEntry describes one entry of a setting that merges by name.
func (r *Row) OfEntry(name string) *Row {
	if len(r.Fields) > 0 {
		return r
	}
	return r.Field(name)
}
