package settings

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
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
			if ok && tellsSecret(name) && !isVariable(value) {
				parts[i] = name + "=" + masked
			}
		}
		path += "?" + strings.Join(parts, "&")
	}
	return scheme + "://" + authority + path
}

// tellsSecret reports whether a name announces a secret.
func tellsSecret(name string) bool {
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

// isVariable reports whether a value is one variable and nothing else.
func isVariable(s string) bool {
	if name, ok := strings.CutPrefix(s, "${"); ok {
		name, ok = strings.CutSuffix(name, "}")
		return ok && isVariableName(name)
	}
	name, ok := strings.CutPrefix(s, "$")
	return ok && isVariableName(name)
}

// maskSecret shows of a secret only where it comes from.
func maskSecret(value string) string {
	switch kind, target := reference(value); kind {
	case "env", "file":
		return value
	case "cmd":
		program, _, _ := strings.Cut(strings.TrimSpace(target), " ")
		return "cmd:" + Mask(program) + " " + masked
	}
	if value == "" || isVariable(value) {
		return value
	}
	return masked
}

// show renders a value, or one entry of a setting that merges by name, with
// its secrets masked.
func show(set *setting, n *node) json.RawMessage {
	var b bytes.Buffer
	writeMasked(&b, set, n)
	return b.Bytes()
}

func writeMasked(b *bytes.Buffer, set *setting, n *node) {
	switch {
	case set.secret:
		n.write(b, func(b *bytes.Buffer, s string) { writeString(b, maskSecret(s)) })
	case n.kind == kindObject:
		b.WriteByte('{')
		for i, f := range n.fields {
			comma(b, i)
			writeString(b, f.name)
			b.WriteByte(':')
			writeMasked(b, set.field(f.name), f.value)
		}
		b.WriteByte('}')
	case n.kind == kindList && len(set.fields) == 0:
		writeWords(b, n)
	case n.kind == kindList:
		b.WriteByte('[')
		for i, item := range n.items {
			comma(b, i)
			writeMasked(b, set, item)
		}
		b.WriteByte(']')
	default:
		n.write(b, func(b *bytes.Buffer, s string) { writeString(b, Mask(s)) })
	}
}

// field returns the setting of a member; below raw values a telling name makes
// a secret.
func (s *setting) field(name string) *setting {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return &setting{name: name, typ: typeRaw, secret: tellsSecret(name) || name == "env" || name == "headers"}
}

// writeWords masks the words of an argv: what stands behind "--token", and
// behind the "=" of "TOKEN=x".
func writeWords(b *bytes.Buffer, n *node) {
	b.WriteByte('[')
	for i, item := range n.items {
		comma(b, i)
		if item.kind != kindString {
			writeMasked(b, &setting{typ: typeRaw}, item)
			continue
		}
		before := ""
		if i > 0 {
			before = n.items[i-1].text
		}
		writeString(b, maskWord(before, item.text))
	}
	b.WriteByte(']')
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
	if strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && tellsSecret(before) && !strings.HasPrefix(word, "-") {
		return maskSecret(word)
	}
	if name, value, ok := strings.Cut(word, "="); ok && tellsSecret(name) && !strings.Contains(name, "/") {
		return name + "=" + maskSecret(value)
	}
	return Mask(word)
}

// TellsSecret reports whether the name of a variable, a header or a param
// announces a secret, as password does.
func TellsSecret(name string) bool { return tellsSecret(name) }
