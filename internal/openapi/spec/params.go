package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// params holds the params of an operation while it is read.
type params struct {
	params   []Param
	nodes    []node // of params: what describes them
	required []bool
	taken    map[string]bool

	form []node // formData of Swagger 2.0
	raw  node   // the body of Swagger 2.0
}

// params reads the params outside the body.
func (r *reader) params(n, item node, op *Operation) (*params, error) {
	p := &params{taken: map[string]bool{}}
	var all []node
	known := map[[2]string]int{} // by name and place, the index in all
	for _, list := range []node{item.get("parameters"), n.get("parameters")} {
		if list.exists() && !list.Is(jsonx.Array) {
			return nil, list.problem("parameters must be a list")
		}
		for _, one := range list.items() {
			resolved, err := r.resolve(one)
			if err != nil {
				return nil, err
			}
			if err := r.checkParam(resolved); err != nil {
				return nil, err
			}
			key := [2]string{resolved.get("name").Text(), resolved.get("in").Text()}
			if i, ok := known[key]; ok {
				all[i] = resolved // the operation's own replaces that of the path
				continue
			}
			known[key] = len(all)
			all = append(all, resolved)
		}
	}
	for _, in := range []string{inPath, inQuery, inHeader, inCookie} {
		for _, one := range all {
			if one.get("in").Text() == in {
				if err := r.addParam(p, one, in, op); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, one := range all {
		switch one.get("in").Text() {
		case inFormData:
			p.form = append(p.form, one)
		case inBody:
			p.raw = one
		}
	}
	return p, p.checkRoute(n, op.Path)
}

// checkParam returns an error for a parameter whose place or shape is unknown, because it would
// otherwise be missing in requests.
func (r *reader) checkParam(n node) error {
	places := []string{inPath, inQuery, inHeader, inCookie}
	if r.version == 20 {
		places = []string{inPath, inQuery, inHeader, inFormData, inBody}
	}
	required := n.get("required")
	switch {
	case !n.Is(jsonx.Object):
		return n.problem("a parameter must be an object")
	case !slices.Contains(places, n.get("in").Text()):
		return n.problem("the place (in) of the parameter %.200q must be one of %s",
			n.get("name").Text(), strings.Join(places, ", "))
	case required.exists() && !required.Is(jsonx.True) && !required.Is(jsonx.False):
		return required.problem("required must be true or false")
	}
	return nil
}

// checkRoute returns an error if a part of the path in braces is not a param.
func (p *params) checkRoute(n node, route string) error {
	isParam := func(in, name string) bool {
		return slices.ContainsFunc(p.params, func(p Param) bool { return p.In == in && p.wire() == name })
	}
	needs := func(name string) error {
		return n.problem("the path %.200q needs %q, which is not among its parameters", route, name)
	}
	rest, _, named := cutRoute(route)
	for _, param := range slices.Sorted(maps.Keys(named)) {
		if !isParam(inQuery, named[param]) {
			return needs(param)
		}
	}
	for {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return nil
		}
		name, after, found := strings.Cut(after, "}")
		if !found || !isParam(inPath, name) {
			return needs(name)
		}
		rest = after
	}
}

// isReserved reports whether a header belongs to the connection or to the login and therefore never
// becomes a param.
func isReserved(header string) bool {
	switch strings.ToLower(header) {
	case "accept", "accept-encoding", "content-type", "authorization", "proxy-authorization", "host", "cookie", "content-length",
		"transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive", "proxy-connection":
		return true
	}
	return false
}

func (r *reader) addParam(p *params, n node, in string, op *Operation) error {
	own := n.get("name").Text()
	wire := own
	path, _, named := cutRoute(op.Path)
	if named[own] == "" && r.opts.Supplied != nil && r.opts.Supplied(op.Server, in, own) {
		return nil
	}
	required := in == inPath || n.get("required").Is(jsonx.True)
	if name, ok := named[wire]; ok && (in == inPath && !strings.Contains(path, "{"+wire+"}") || in == inQuery) {
		wire, in = name, inQuery
	}
	switch {
	case wire == "":
		return n.problem("a parameter has no name")
	case in == inHeader && isReserved(wire), in == inPath && !strings.Contains(path, "{"+wire+"}"):
		return nil
	case (in == inHeader || in == inCookie) && !isToken(wire):
		return n.problem("the parameter %.200q is not the name of a %s", wire, in)
	}
	param := Param{Name: p.unique(own, in), In: in, Reserved: n.get("allowReserved").Is(jsonx.True)}
	if param.Name != wire {
		param.Wire = wire
	}
	style(&param, n, r.version)
	p.params = append(p.params, param)
	p.nodes = append(p.nodes, n)
	p.required = append(p.required, required)
	return nil
}

// isToken reports whether a text can be the name of a header or a cookie.
func isToken(name string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// maxName is the maximum length of names that every model provider accepts.
const maxName = 64

// unique returns a unique name for a param: its own, limited to the characters that every model
// provider accepts, with its place before it or a hash after it if that name is taken.
func (p *params) unique(wire, in string) string {
	name := plainName(wire)
	if p.taken[name] {
		name = in + "_" + name
	}
	for i := 0; p.taken[name] || len(name) > maxName; i++ {
		sum := sha256.Sum256([]byte(in + " " + wire + strings.Repeat("+", i)))
		name = name[:min(len(name), maxName-7)] + "_" + hex.EncodeToString(sum[:3])
	}
	p.taken[name] = true
	return name
}

// style sets how a param is written.
func style(to *Param, n node, version int) {
	to.Style, to.Explode = n.get("style").Text(), n.get("explode").Is(jsonx.True)
	defaultStyle := "simple"
	if to.In == inQuery || to.In == inCookie {
		defaultStyle = "form"
	}
	if to.Style == "" || to.Style == defaultStyle {
		to.Style = ""
		if n.get("explode").Value == nil {
			to.Explode = defaultStyle == "form"
		}
	}
	if content := n.get("content"); content.Is(jsonx.Object) && len(content.Members) > 0 {
		to.JSON = kindOf(content.Members[0].Name) == kindJSON
	}
	if version == 20 {
		to.Explode = n.get("collectionFormat").Text() == "multi"
		to.Style = swaggerStyle(n.get("collectionFormat").Text())
	}
}

func swaggerStyle(format string) string {
	switch format {
	case "ssv":
		return "spaceDelimited"
	case "tsv":
		return "tabDelimited"
	case "pipes":
		return "pipeDelimited"
	}
	return ""
}

// schemaOf returns the schema of a param, which in Swagger 2.0 is the param itself.
func (r *reader) schemaOf(n node) node {
	if s := n.get("schema"); s.Value != nil {
		return s
	}
	if content := n.get("content"); content.Is(jsonx.Object) && len(content.Members) > 0 {
		return content.member(0).get("schema")
	}
	if r.version == 20 || n.get("type").exists() { // some documents of OpenAPI 3 still write it this way
		return n
	}
	return n.get("schema")
}
