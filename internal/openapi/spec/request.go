package spec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// File is a file that a param names.
type File struct {
	Name string // without folders
	Type string // media type
	Data []byte
}

// Request is the request of a call.
type Request struct {
	Method string
	URL    string
	Header http.Header // nil if there is none
	Body   []byte      // nil if there is none
}

// Request returns the request for params, which match the operation's schema. files returns
// the file that a param names, which is at a pointer of the params. Errors are those of files, or a
// *registry.ArgsError without the name of the tool.
func (o *Operation) Request(params json.RawMessage, files func(pointer, value string) (File, error)) (*Request, error) {
	given, err := jsonx.Parse(params, jsonx.Options{})
	if err != nil {
		return nil, registry.Invalid("", "", "%v", err)
	}
	b := &builder{op: o, given: given, files: files, header: http.Header{}}
	address, err := b.address()
	if err != nil {
		return nil, err
	}
	if err := b.headers(); err != nil {
		return nil, err
	}
	r := &Request{Method: o.Method, URL: address, Header: b.header}
	if r.Body, err = b.body(); err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, */*;q=0.5")
	if len(o.Plan.Accept) > 0 {
		r.Header.Set("Accept", strings.Join(o.Plan.Accept, ", ")+", */*;q=0.1")
	}
	return r, nil
}

// builder makes the request of one call.
type builder struct {
	op     *Operation
	given  *jsonx.Value
	files  func(pointer, value string) (File, error)
	header http.Header
}

// value returns the value of a param; nil if it is absent or null.
func (b *builder) value(name string) *jsonx.Value {
	if v := b.given.Get(name); v != nil && v.Kind != jsonx.Null {
		return v
	}
	return nil
}

func invalid(name, format string, args ...any) error {
	pointer := ""
	if name != "" {
		pointer = "/" + jsonx.EscapeToken(name)
	}
	return registry.Invalid("", pointer, format, args...)
}

func (b *builder) address() (string, error) {
	base, query, _ := strings.Cut(b.op.Server, "?")
	route, own, _ := cutRoute(b.op.Path)
	var out strings.Builder
	for {
		literal, rest, found := strings.Cut(route, "{")
		out.WriteString(escapeRoute(literal))
		if !found {
			break
		}
		name, rest, _ := strings.Cut(rest, "}")
		i := slices.IndexFunc(b.op.Plan.Params, func(p Param) bool { return p.In == inPath && p.wire() == name })
		if i < 0 {
			return "", invalid(name, "the path needs it")
		}
		text, err := b.segment(&b.op.Plan.Params[i])
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		route = rest
	}
	if hasDotSegment(out.String()) {
		return "", registry.Invalid("", "", "the path %s would leave the address of the API", out.String())
	}
	var all []string
	for _, fixed := range []string{query, escapeRoute(own)} {
		if fixed != "" {
			all = append(all, fixed)
		}
	}
	for i := range b.op.Plan.Params {
		p := &b.op.Plan.Params[i]
		if v := b.value(p.Name); v != nil && p.In == inQuery {
			all = append(all, queryPairs(p.wire(), v, p.shape(), p.Reserved)...)
		}
	}
	address := base + out.String()
	if len(all) > 0 {
		address += "?" + strings.Join(all, "&")
	}
	return address, nil
}

// escapeRoute encodes the literal part of a path, which may be encoded already.
func escapeRoute(s string) string {
	return encode(s, func(c byte) bool { return c > ' ' && c < 0x7f && strings.IndexByte("\"<>\\^`{|}?#", c) < 0 })
}

// segment returns the value of a param in the path. It refuses a value that a server could take for
// another path.
func (b *builder) segment(p *Param) (string, error) {
	v := b.value(p.Name)
	if v == nil {
		return "", invalid(p.Name, "the path needs it")
	}
	plain := pathText(p, v, noEscape)
	if plain == "" || hasDotSegment(plain) {
		return "", invalid(p.Name, "a part of the path must not be empty, . or ..")
	}
	return pathText(p, v, escape), nil
}

// pathText writes a value in the style of a path (RFC 6570).
func pathText(p *Param, v *jsonx.Value, escape func(string) string) string {
	if p.JSON {
		return escape(string(v.JSON()))
	}
	parts, paired := flatten(v, p.Explode, escape)
	switch p.Style {
	case "label":
		if p.Explode {
			return "." + strings.Join(parts, ".")
		}
		return "." + strings.Join(parts, ",")
	case "matrix":
		name := ";" + escape(p.wire())
		switch {
		case paired:
			return ";" + strings.Join(parts, ";")
		case p.Explode && v.Is(jsonx.Array):
			return name + "=" + strings.Join(parts, name+"=")
		}
		return name + "=" + strings.Join(parts, ",")
	}
	return strings.Join(parts, separator(p.Style, escape))
}

// separator returns what separates the elements of an array in a style. A comma is never
// encoded.
func separator(style string, escape func(string) string) string {
	switch style {
	case "spaceDelimited":
		return escape(" ")
	case "tabDelimited":
		return escape("\t")
	case "pipeDelimited":
		return escape("|")
	}
	return ","
}

// noEscape is used in places where nothing is encoded.
func noEscape(s string) string { return s }

// flatten returns the texts of a value: one for a scalar, one per element of an array, and for an
// object its names and values, as name=value if explode is set (paired). Nulls are left out (RFC
// 6570).
func flatten(v *jsonx.Value, explode bool, escape func(string) string) (parts []string, paired bool) {
	switch v.Kind {
	case jsonx.Array:
		for _, item := range v.Items {
			if !item.Is(jsonx.Null) {
				parts = append(parts, escape(item.Plain()))
			}
		}
		return parts, false
	case jsonx.Object:
		for _, m := range v.Members {
			name, value := escape(m.Name), escape(m.Value.Plain())
			switch {
			case m.Value.Is(jsonx.Null):
			case explode:
				parts = append(parts, name+"="+value)
			default:
				parts = append(parts, name, value)
			}
		}
		return parts, explode
	}
	return []string{escape(v.Plain())}, false
}

type pair struct{ name, value string }

func (p pair) String() string { return p.name + "=" + p.value }

// shape says how to write a value as pairs.
type shape struct {
	style         string // "" means form
	explode, json bool
}

func (p *Param) shape() shape { return shape{p.Style, p.Explode, p.JSON} }

// pairs returns a value of a query, a cookie or a form as pairs of name and value, in the
// document's style. key escapes names, escape values.
func pairs(name string, v *jsonx.Value, s shape, key, escape func(string) string) []pair {
	if s.style == "deepObject" {
		return deepPairs(nil, key(name), v, key, escape)
	}
	if s.json {
		return []pair{{key(name), escape(string(v.JSON()))}}
	}
	if s.explode && v.Is(jsonx.Object) {
		var out []pair
		for _, m := range v.Members {
			if !m.Value.Is(jsonx.Null) {
				out = append(out, pair{key(m.Name), escape(m.Value.Plain())})
			}
		}
		return out
	}
	parts, _ := flatten(v, false, escape)
	switch {
	case s.explode:
		out := make([]pair, len(parts))
		for i, part := range parts {
			out[i] = pair{key(name), part}
		}
		return out
	case len(parts) == 0:
		return nil // an empty list
	}
	return []pair{{key(name), strings.Join(parts, separator(s.style, escape))}}
}

func queryPairs(name string, v *jsonx.Value, s shape, reserved bool) []string {
	esc := escape
	if reserved {
		esc = escapeReserved
	}
	var out []string
	for _, p := range pairs(name, v, s, escape, esc) {
		out = append(out, p.String())
	}
	return out
}

// deepPairs writes nested values as name[key][]=value. Objects in lists are numbered, because
// servers could not tell where one ends.
func deepPairs(out []pair, name string, v *jsonx.Value, key, escape func(string) string) []pair {
	switch v.Kind {
	case jsonx.Object:
		for _, m := range v.Members {
			out = deepPairs(out, name+"["+key(m.Name)+"]", m.Value, key, escape)
		}
		return out
	case jsonx.Array:
		nested := slices.ContainsFunc(v.Items,
			func(item *jsonx.Value) bool { return item.Is(jsonx.Object) || item.Is(jsonx.Array) })
		for i, item := range v.Items {
			index := ""
			if nested {
				index = strconv.Itoa(i)
			}
			out = deepPairs(out, name+"["+index+"]", item, key, escape)
		}
		return out
	case jsonx.Null:
		return out
	}
	return append(out, pair{name, escape(v.Plain())})
}

// escape percent-encodes all but unreserved characters (RFC 3986).
func escape(s string) string { return escapeBut(s, "-._~") }

// escapeReserved also keeps reserved characters, except those that would begin another part of the
// URL.
func escapeReserved(s string) string { return escapeBut(s, "-._~:/?@!$'()*,;[]") }

// escapeBut keeps letters, digits and some other characters.
func escapeBut(s, others string) string {
	return encode(s, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(others, c) >= 0
	})
}

// encode percent-encodes the bytes that are not kept.
func encode(s string, keep func(c byte) bool) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if c := s[i]; keep(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

func (b *builder) headers() error {
	var cookies []string
	for i := range b.op.Plan.Params {
		p := &b.op.Plan.Params[i]
		v := b.value(p.Name)
		if v == nil {
			continue
		}
		switch p.In {
		case inHeader:
			text := string(v.JSON())
			if !p.JSON {
				parts, _ := flatten(v, p.Explode, noEscape)
				text = strings.Join(parts, separator(p.Style, noEscape))
			}
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return invalid(p.Name, "a header must not have line ends or other control characters")
			}
			b.header.Set(p.wire(), strings.Trim(text, " \t"))
		case inCookie:
			cookies = append(cookies, queryPairs(p.wire(), v, p.shape(), false)...)
		}
	}
	if len(cookies) > 0 {
		b.header.Set("Cookie", strings.Join(cookies, "; "))
	}
	return nil
}

// body returns the body; nil if there is none.
func (b *builder) body() ([]byte, error) {
	plan := b.op.Plan.Body
	if plan == nil {
		return nil, nil
	}
	v := b.value(plan.Param)
	if plan.Param == "" {
		v = b.members(plan)
		if len(v.Members) == 0 && !plan.Required {
			return nil, nil
		}
		for _, name := range plan.Needs {
			if v.Get(name) == nil {
				return nil, invalid("", "%s is required with %s", name, v.Members[0].Name)
			}
		}
	} else if given := b.given.Get(plan.Param); plan.Kind == kindJSON {
		v = given // null is a value
	}
	if v == nil {
		return nil, nil
	}
	b.header.Set("Content-Type", plan.Type)
	switch plan.Kind {
	case kindJSON:
		return v.JSON(), nil
	case kindForm:
		return b.form(plan, v)
	case kindMultipart:
		return b.multipart(plan, v)
	case kindText:
		return []byte(v.Plain()), nil
	}
	f, err := b.file("/"+jsonx.EscapeToken(plan.Param), v)
	if err != nil {
		return nil, err
	}
	if strings.Contains(plan.Type, "*") {
		b.header.Set("Content-Type", cmp.Or(f.Type, "application/octet-stream"))
	}
	if plan.Base64 {
		return base64.StdEncoding.AppendEncode([]byte{}, f.Data), nil
	}
	return append([]byte{}, f.Data...), nil
}

// members returns the params that are members of the body, in the order of the call.
func (b *builder) members(plan *Body) *jsonx.Value {
	out := jsonx.NewObject()
	for _, m := range b.given.Members {
		i := slices.IndexFunc(plan.Members, func(member Member) bool { return member.Param == m.Name })
		switch {
		case i >= 0:
			out.Members = append(out.Members, jsonx.NewMember(cmp.Or(plan.Members[i].Name, m.Name), m.Value))
		case plan.Rest && !slices.ContainsFunc(b.op.Plan.Params, func(p Param) bool { return p.Name == m.Name }):
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// file returns the file that the value at a pointer of the params names.
func (b *builder) file(pointer string, v *jsonx.Value) (File, error) {
	if !v.Is(jsonx.String) {
		return File{}, registry.Invalid("", pointer, "must be a file, as text")
	}
	return b.files(pointer, v.Text())
}

// form returns a body of type application/x-www-form-urlencoded.
func (b *builder) form(plan *Body, v *jsonx.Value) ([]byte, error) {
	var all []string
	for _, m := range v.Members {
		f := plan.field(m.Name)
		if m.Value.Is(jsonx.Null) {
			continue
		}
		asJSON := m.Value.Is(jsonx.Object) && f.Style == "" || kindOf(f.Type) == kindJSON && f.Type != ""
		all = append(all, queryPairs(m.Name, m.Value, shape{f.Style, f.Explode, asJSON}, f.Reserved)...)
	}
	return []byte(strings.Join(all, "&")), nil
}

// multipart returns a body of type multipart/form-data. The boundary is derived from the content,
// so that equal calls have equal bodies.
func (b *builder) multipart(plan *Body, v *jsonx.Value) ([]byte, error) {
	var parts []part
	for _, m := range v.Members {
		f := plan.field(m.Name)
		if !f.File && f.Type == "" && (f.Style != "" || !f.Explode && m.Value.Is(jsonx.Array)) {
			for _, p := range pairs(m.Name, m.Value, shape{style: f.Style, explode: f.Explode}, noEscape, noEscape) {
				parts = append(parts, part{name: p.name, data: []byte(p.value)})
			}
			continue
		}
		values := []*jsonx.Value{m.Value}
		if m.Value.Is(jsonx.Array) && (f.Type == "" || kindOf(f.Type) != kindJSON) {
			values = m.Value.Items
		}
		for i, value := range values {
			one := part{name: m.Name, contentType: f.Type}
			switch {
			case value.Is(jsonx.Null):
				continue
			case f.File:
				pointer := plan.pointer(m.Name)
				if m.Value.Is(jsonx.Array) {
					pointer += "/" + strconv.Itoa(i)
				}
				file, err := b.file(pointer, value)
				if err != nil {
					return nil, err
				}
				one.file, one.data = file.Name, file.Data
				if one.contentType == "" || strings.ContainsAny(one.contentType, "*,") {
					one.contentType = file.Type
				}
			case value.Is(jsonx.Object) || value.Is(jsonx.Array) || f.Type != "" && kindOf(f.Type) == kindJSON:
				one.data = value.JSON()
				if one.contentType == "" || strings.ContainsAny(one.contentType, "*,") {
					one.contentType = "application/json"
				}
			default:
				one.data = []byte(value.Plain())
			}
			parts = append(parts, one)
		}
	}
	body, contentType := encodeMultipart(parts)
	b.header.Set("Content-Type", contentType)
	return body, nil
}

// part is one part of a multipart body.
type part struct {
	name, file, contentType string
	data                    []byte
}

// encodeMultipart returns a multipart body and its media type.
func encodeMultipart(parts []part) (body []byte, contentType string) {
	boundary := boundaryFor(parts)
	var out bytes.Buffer
	for _, p := range parts {
		out.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + quoted(p.name) + "\"")
		if p.file != "" {
			out.WriteString("; filename=\"" + quoted(p.file) + "\"")
		}
		out.WriteString("\r\n")
		if p.contentType != "" {
			out.WriteString("Content-Type: " + oneLine(p.contentType) + "\r\n")
		}
		out.WriteString("\r\n")
		out.Write(p.data)
		out.WriteString("\r\n")
	}
	out.WriteString("--" + boundary + "--\r\n")
	return out.Bytes(), "multipart/form-data; boundary=" + boundary
}

// quoted encodes a name in a part's header as browsers do, and all control characters, because
// servers refuse bodies that contain them.
func quoted(s string) string {
	return encode(s, func(c byte) bool { return c != '"' && c >= ' ' && c != 0x7f })
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}

func boundaryFor(parts []part) string {
	sum := sha256.New()
	for _, p := range parts {
		sum.Write([]byte(p.name + "\x00" + p.file + "\x00"))
		sum.Write(p.data)
	}
	for {
		boundary := "toolreg-" + hex.EncodeToString(sum.Sum(nil)[:16])
		if !slices.ContainsFunc(parts, func(p part) bool { return bytes.Contains(p.data, []byte(boundary)) }) {
			return boundary
		}
		sum.Write([]byte("+"))
	}
}
