// Package uri gives URIs of resources one form, so that what is compared with a rule, an owner or a
// subscription is what a server understands, however a client spells it. It knows the
// differences that URL parsers ignore: the case of schemes, percent-encoding, dot segments, repeated
// slashes, backslashes, control characters, and the names of the local host. A pure function of
// text, used by packages policy, engine and serve.
package uri

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// Canonical returns the form of a URI that all its spellings have in common. Text without a scheme is
// read as a path.
func Canonical(uri string) string {
	return form{uri: true}.split(plainForm(uri)).text(true)
}

// Readings returns what servers may take a URI for, each once: with no, some or all of its escapes
// replaced, with and without dot segments and repeated slashes resolved, with backslashes as
// they are and as slashes. The last is the canonical one.
func Readings(uri string) []string {
	var out []string
	add := func(s string) {
		for _, f := range []form{{uri: true}, {uri: true, backslash: true}} {
			parts := f.split(s)
			out = text.AppendNew(out, parts.text(false), parts.withAuthority(),
				parts.beforeQuery().text(false), parts.text(true))
			if !strings.Contains(s, `\`) {
				return
			}
		}
	}
	eachDecoding(trim(uri), add)
	if trim(uri) != uri {
		eachDecoding(uri, add)
	}
	last := Canonical(uri)
	return append(slices.DeleteFunc(out, func(s string) bool { return s == last }), last)
}

// Loose returns what careless servers may take a URI for besides its readings: without the query,
// without the authority or with it as the beginning of the path, with any number of slashes. A rule
// that denies is also compared with these, by [LoosePattern].
func Loose(uri string) []string {
	var out []string
	eachDecoding(trim(uri), func(s string) {
		parts := form{uri: true}.split(s)
		bare, _, _ := strings.Cut(parts.rest(), "?")
		bare, _, _ = strings.Cut(bare, "#")
		for _, rest := range []string{parts.rest(), bare} {
			out = text.AppendNew(out, parts.scheme+":"+flat(rest))
		}
		if parts.authority != "" {
			host := parts.authority[strings.LastIndexByte(parts.authority, '@')+1:]
			out = text.AppendNew(out, parts.scheme+":"+flat(host+bare[len(parts.authority):]))
		}
		if parts.scheme == "file" && parts.authority != "" {
			out = text.AppendNew(out, parts.scheme+":"+flat(bare[len(parts.authority):]))
		}
	})
	return out
}

// Patterns returns the forms of a glob over URIs: as it is written, and as the readings of the
// URIs that it is about.
func Patterns(glob string) []string {
	parts, decoded := form{}.split(glob), form{}.split(decode(glob, true))
	return text.AppendNew(nil, glob, parts.text(false), parts.text(true), decoded.text(true))
}

// LoosePattern is the form of a glob over URIs that is compared with [Loose].
func LoosePattern(glob string) string {
	parts := form{}.split(decode(glob, true))
	if parts.scheme == "" {
		return glob
	}
	return parts.scheme + ":" + flat(parts.rest())
}

// form says how text is read: as a URI or as a glob over URIs.
type form struct {
	uri       bool
	backslash bool // is an ordinary character in a URI
}

// parts is a URI or a glob.
type parts struct {
	scheme    string // in lower case; "" if there is none, and then path has all
	slashes   string // between the scheme and the rest
	authority string
	path      string // the rest, with the query
}

func (f form) split(s string) parts {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !f.isScheme(scheme) {
		return parts{path: s}
	}
	if f.uri && !f.backslash {
		rest = strings.ReplaceAll(rest, `\`, "/")
	}
	p := parts{scheme: strings.ToLower(scheme)}
	p.path = strings.TrimLeft(rest, "/")
	p.slashes = rest[:len(rest)-len(p.path)]
	switch {
	case p.scheme == "file":
		p.readFile(f)
	case slices.Contains([]string{"http", "https", "ws", "wss", "ftp"}, p.scheme) &&
		(p.path == "" || f.uri || !strings.ContainsRune(globs, rune(p.path[0]))):
		p.slashes = "//"
		p.cutAuthority()
		p.authority = canonicalHost(p.scheme, p.authority)
	case p.slashes == "//":
		p.cutAuthority()
	case len(p.slashes) > 3: // an empty authority, and a path with repeated slashes
		p.slashes = "///"
	}
	return p
}

// globs are the characters with a meaning in globs.
const globs = `*?[]{}\`

// isScheme reports whether text is a scheme, or a glob over schemes.
func (f form) isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || strings.IndexByte("+-.", c) >= 0):
		case !f.uri && strings.IndexByte(globs+",!^", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// readFile reads the URI of a file. The host of a local one is left out.
func (p *parts) readFile(f form) {
	if !f.uri && (p.slashes == "" || p.slashes == "//") &&
		p.path != "" && strings.ContainsRune(globs, rune(p.path[0])) {
		return // the glob may be about hosts, or paths
	}
	if p.slashes == "//" {
		p.cutAuthority()
		host := strings.ToLower(p.authority)
		if isDrive(host) {
			p.path, p.authority = "/"+p.authority+p.path, ""
		} else if p.authority = host; host == "localhost" {
			p.authority = ""
		}
	} else {
		p.path = "/" + p.path
	}
	p.slashes = "//"
	if p.authority == "" && !strings.HasPrefix(p.path, "/") {
		p.path = "/" + p.path
	}
	if p.authority == "" {
		p.path = "/" + strings.TrimLeft(p.path, "/")
	}
	if len(p.path) >= 3 && isDrive(p.path[1:3]) { // file:///C|/x
		p.path = p.path[:2] + ":" + p.path[3:]
	}
}

// isDrive reports whether text is a drive of Windows.
func isDrive(s string) bool {
	return len(s) == 2 && (s[1] == ':' || s[1] == '|') && ('a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z')
}

// canonicalHost returns an authority in lower case, without a port that the scheme implies.
func canonicalHost(scheme, authority string) string {
	at := strings.LastIndexByte(authority, '@') + 1
	host := strings.ToLower(authority[at:])
	ports := map[string]string{"http": ":80", "ws": ":80", "https": ":443", "wss": ":443", "ftp": ":21"}
	host = strings.TrimSuffix(strings.TrimSuffix(host, ports[scheme]), ":")
	return authority[:at] + strings.TrimSuffix(host, ".")
}

func (p *parts) cutAuthority() {
	end := strings.IndexAny(p.path, "/?#")
	if end < 0 {
		end = len(p.path)
	}
	p.authority, p.path = p.path[:end], p.path[end:]
}

// rest is everything behind the scheme and the slashes.
func (p parts) rest() string { return p.authority + p.path }

// text puts the parts together again, with the path cleaned if clean is set.
func (p parts) text(clean bool) string {
	rest := p.path
	if clean {
		rest = cleaned(p.path)
	}
	if p.scheme == "" {
		return rest
	}
	return p.scheme + ":" + p.slashes + p.authority + rest
}

// withAuthority puts the parts together as by a reader for whom the authority is part of the path.
func (p parts) withAuthority() string {
	if p.scheme == "" {
		return p.path
	}
	return p.scheme + ":" + p.slashes + cleaned(p.rest())
}

// beforeQuery returns the parts with a clean path and without the query.
func (p parts) beforeQuery() parts {
	if end := strings.IndexAny(p.path, "?#"); end >= 0 {
		p.path = cleaned(p.path[:end]) + p.path[end:]
	}
	return p
}

// cleaned resolves dot segments and repeated slashes. It keeps a slash at the beginning and at the
// end.
func cleaned(s string) string {
	if s == "" {
		return ""
	}
	rooted, folder := strings.HasPrefix(s, "/"), strings.HasSuffix(s, "/")
	s = strings.TrimPrefix(path.Clean("/"+s), "/")
	if rooted {
		s = "/" + s
	}
	if folder && !strings.HasSuffix(s, "/") && s != "" {
		s += "/"
	}
	return s
}

// flat resolves dot segments and repeated slashes, and removes slashes at both ends.
func flat(s string) string { return strings.Trim(path.Clean("/"+s), "/") }

// trim removes what URL parsers drop: tabs and ends of lines, and control characters and spaces at
// both ends.
func trim(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	if !strings.ContainsAny(s, "\t\r\n") {
		return s
	}
	return strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(s)
}

// eachDecoding calls f with text, with its escapes replaced, with the escapes of that replaced, until
// there are none. The first few are of interest to a server, and the last.
func eachDecoding(s string, f func(string)) {
	for range 3 {
		f(s)
		once := decodeOnce(s)
		if once == s {
			return
		}
		s = once
	}
	f(plainForm(s))
}

// plainForm returns a URI without escapes and without what URL parsers drop.
func plainForm(s string) string { return trim(decode(trim(s), false)) }

// decode replaces all escapes, including those that appear by replacing others. In a glob it quotes
// characters that have a meaning there.
func decode(s string, glob bool) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		out = append(out, s[i])
		for n := len(out); n >= 3; n = len(out) {
			c, ok := unescaped(out[n-3:])
			if !ok {
				break
			}
			if out = out[:n-3]; glob && strings.IndexByte(globs+",", c) >= 0 {
				out = append(out, '\\')
			}
			if glob || c != '\t' && c != '\r' && c != '\n' { // else an escape around it would appear in trim
				out = append(out, c)
			}
		}
	}
	return string(out)
}

// unescaped returns the byte that an escape stands for, such as %2f; false if it is none.
func unescaped[T string | []byte](escape T) (byte, bool) {
	if escape[0] != '%' {
		return 0, false
	}
	c, err := strconv.ParseUint(string(escape[1:]), 16, 8)
	return byte(c), err == nil
}

// decodeOnce replaces the escapes in a text. Invalid escapes are kept, so that one mistake does not
// hide the others.
func decodeOnce(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if i+2 < len(s) {
			if escaped, ok := unescaped(s[i : i+3]); ok {
				c, i = escaped, i+2
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
