package table

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// masked stands in place of a secret.
const masked = "***"

// Mask hides what looks like a secret in text that is shown: tokens of known
// make, the user part of URLs and the values of query parameters with telling
// names. Variables ($NAME) stay as written.
func Mask(s string) string {
	if strings.Contains(s, "://") {
		s = maskURL(s)
	}
	words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',;=&?|()[]{}<>", r) })
	for _, word := range words {
		if looksSecret(word) {
			s = strings.ReplaceAll(s, word, masked)
		}
	}
	return s
}

// looksSecret knows the prefixes that services give their tokens.
func looksSecret(word string) bool {
	for _, p := range []string{"ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_live_", "sk_test_", "rk_live_",
		"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-", "hf_", "dop_v1_", "SG.", "eyJ"} {
		if strings.HasPrefix(word, p) && len(word) >= len(p)+12 {
			return true
		}
	}
	return false
}

// maskURL hides user part and telling query parameters of a URL. Variables
// keep the URL parser from being asked.
func maskURL(s string) string {
	scheme, rest, _ := strings.Cut(s, "://")
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		authority = masked + authority[at:]
	}
	path, query, found := strings.Cut(path, "?")
	if found {
		parts := strings.Split(query, "&")
		for i, part := range parts {
			name, value, ok := strings.Cut(part, "=")
			if ok && TellsSecret(name) && !expand.IsVariable(value) {
				parts[i] = name + "=" + masked
			}
		}
		path += "?" + strings.Join(parts, "&")
	}
	return scheme + "://" + authority + path
}

// TellsSecret reports whether the name of a variable, a header or a param
// announces a secret, as password does.
func TellsSecret(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.TrimLeft(name, "-")))
	for _, word := range []string{"token", "secret", "password", "passwd", "apikey", "accesskey", "privatekey", "credential", "authorization", "signature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return name == "key" || name == "auth" || name == "sig" || name == "pw" || name == "pat"
}

// maskSecret shows of a secret only where it comes from.
func maskSecret(value string) string {
	switch kind, target := Reference(value); kind {
	case "env", "file":
		return value
	case "cmd":
		program, _, _ := strings.Cut(strings.TrimSpace(target), " ")
		return "cmd:" + Mask(program) + " " + masked
	}
	if value == "" || expand.IsVariable(value) {
		return value
	}
	return masked
}

// Masked renders a value of the setting as JSON with its secrets masked.
func (r *Row) Masked(n *document.Node) json.RawMessage { return r.masked(n).Encode() }

func (r *Row) masked(n *document.Node) *document.Node {
	out := *n
	switch {
	case n.Kind == document.String && r.Secret:
		out.Text = maskSecret(n.Text)
	case n.Kind == document.String:
		out.Text = Mask(n.Text)
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

// maskedItem masks an element of a list. Of an argv that is what stands behind
// "--token" too, and behind the "=" of "TOKEN=x".
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
	out.Text = maskWord(option, item.Text)
	return &out
}

// Field returns the row of a member. One that the table does not know is a raw
// value; a telling name makes it a secret, and so do a secret's own members.
func (r *Row) Field(name string) *Row {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return &r.Fields[i]
		}
	}
	return &Row{Name: name, Type: Raw, Secret: r.Secret || TellsSecret(name) || name == "env" || name == "headers"}
}

// MaskArgs hides what looks like a secret in a command's arguments, where also
// the name of an option tells of one.
func MaskArgs(args []string) []string {
	out := make([]string, len(args))
	before := ""
	for i, arg := range args {
		out[i], before = maskWord(before, arg), arg
	}
	return out
}

func maskWord(before, word string) string {
	if strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && TellsSecret(before) && !strings.HasPrefix(word, "-") {
		return maskSecret(word)
	}
	if name, value, ok := strings.Cut(word, "="); ok && TellsSecret(name) && !strings.Contains(name, "/") {
		return name + "=" + maskSecret(value)
	}
	return Mask(word)
}
