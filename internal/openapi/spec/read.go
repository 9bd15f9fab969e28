// Package spec reads OpenAPI 3.0, OpenAPI 3.1 and Swagger 2.0 documents and turns each operation
// into what a tool needs: a name, the schemas of params and result, and the HTTP request of a call.
// It does no input or output: functions of the caller supply the other files of a document and the
// files in params, and package openapi sends the requests.
//
// Documents are not trusted. Their size, depth and references are limited. An operation that cannot
// be used is returned with its problem, and the others remain usable.
package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Options are the options of [Read].
type Options struct {
	Name string // path or address of the document
	// Open returns the content of another file of the document, named in the same way as Name: by a
	// path or an address. It decides which files may be read. If nil, there are no other files.
	Open func(name string) ([]byte, error)
	// Server replaces the servers that the document names; "" keeps them.
	Server string
	// Supplied reports whether the settings supply a header, a cookie or a query parameter of
	// requests to a server, which then does not become a param. nil means that they supply none.
	Supplied func(server, in, name string) bool
	// Normal returns the name under which an operation will be registered, so that no two get the
	// same. nil means the operation's own name.
	Normal func(string) string
	// FileNote is added to the description of params that are files; it says what a value
	// may be.
	FileNote string
	// MaxSchema is the maximum size of a schema, in bytes; 0 means 1 MiB, which is also its upper
	// bound.
	MaxSchema int
}

// reader reads a document.
type reader struct {
	*fileSet
	opts    Options
	version int // 20, 30 or 31
	root    node
	input   *converter
	output  *converter
	names   map[string]bool // of operations, normal
	doc     *Document

	fileKinds map[*jsonx.Value]int // results of filesOf, by schema
}

// Read reads a document. An error means that it has no usable operation, and names file and line.
func Read(data []byte, o Options) (*Document, error) {
	f, err := parse(o.Name, data)
	if err != nil {
		return nil, err
	}
	root := node{f.root, f, ""}
	version := versionOf(root)
	if version == 0 {
		return nil, root.problem("the document says neither openapi: 3.… nor swagger: \"2.0\"")
	}
	files := &fileSet{files: map[string]*file{o.Name: f}, open: o.Open}
	limit := min(cmp.Or(o.MaxSchema, maxInput), maxInput)
	r := &reader{fileSet: files, opts: o, version: version, root: root,
		input:     newConverter(files, version, false, limit),
		output:    newConverter(files, version, true, min(limit, maxOutput)),
		names:     map[string]bool{},
		fileKinds: map[*jsonx.Value]int{}}
	d := &Document{}
	r.doc = d
	for _, item := range root.get("paths").members() {
		if !strings.HasPrefix(item.name(), "x-") {
			r.operations(item)
		}
	}
	for i := range d.Operations {
		d.Server = cmp.Or(d.Server, d.Operations[i].Server)
	}
	if len(d.Operations) == 0 {
		return nil, r.root.problem("the document has no operations")
	}
	d.compose()
	return d, nil
}

func versionOf(root node) int {
	switch text := root.get("openapi").Text() + root.get("swagger").Text(); {
	case strings.HasPrefix(text, "3.0"):
		return 30
	case strings.HasPrefix(text, "3"): // also 3, which some YAML writers make of 3.0 or 3.1
		return 31
	case strings.HasPrefix(text, "2"):
		return 20
	}
	return 0
}

// addOperation adds an operation to the document. An error says why it cannot be used.
func (r *reader) addOperation(op Operation, input, output *bundledSchema, err error) {
	if err != nil {
		op.Problem, op.Plan, op.Server = problemOf(err), Plan{}, ""
		input, output = &bundledSchema{own: []byte(noParams)}, nil
	}
	r.doc.Operations = append(r.doc.Operations, op)
	r.doc.inputs, r.doc.outputs = append(r.doc.inputs, input), append(r.doc.outputs, output)
}

// operations reads the operations of a path.
func (r *reader) operations(item node) {
	route := item.name()
	item, err := r.resolve(item)
	if err == nil && !item.Is(jsonx.Object) {
		err = item.problem("a path must be an object")
	}
	if err != nil {
		r.broken("GET", route, err)
		return
	}
	for _, n := range item.members() {
		switch name := n.name(); name {
		case "get", "put", "post", "delete", "options", "head", "patch", "trace", "query":
			r.method(n, item, strings.ToUpper(name), route)
		case "additionalOperations":
			for _, n := range n.members() {
				r.method(n, item, n.name(), route)
			}
		}
	}
}

// method reads the operation of a method.
func (r *reader) method(n, item node, method, route string) {
	n, err := r.resolve(n) // documents in several files have a reference here, too
	switch {
	case !isToken(method), method == "CONNECT": // which asks for a tunnel
		r.broken("GET", route, n.problem("%.200q is not the method of an operation", method))
	case err != nil:
		r.broken(method, route, err)
	case !n.Is(jsonx.Object):
		r.broken(method, route, n.problem("an operation must be an object"))
	default:
		r.operation(n, item, method, route)
	}
}

// noParams is the schema of a tool without params.
const noParams = `{"type":"object","properties":{},"additionalProperties":false}`

// broken adds an operation that cannot be used.
func (r *reader) broken(method, route string, err error) {
	op := Operation{Name: r.unique(nameOf(method, route), method, route), Method: method, Path: route}
	r.addOperation(op, nil, nil, err)
}

func problemOf(err error) *document.Problem {
	if p, ok := errors.AsType[*problemError](err); ok {
		return &p.Problem
	}
	return &document.Problem{Message: err.Error()}
}

// unique returns a name that no other operation of the document has.
func (r *reader) unique(name, method, route string) string {
	normal := func(s string) string { return s }
	if r.opts.Normal != nil {
		normal = r.opts.Normal
	}
	if own := nameOf(method, route); r.names[normal(name)] {
		name = own // two operations have one operationId
	}
	for r.names[normal(name)] {
		sum := sha256.Sum256([]byte(method + " " + route))
		name += "_" + hex.EncodeToString(sum[:3])
		route += "+"
	}
	r.names[normal(name)] = true
	return name
}

func (r *reader) operation(n, item node, method, route string) {
	id := n.get("operationId").Text()
	name := id
	if !isUsable(id) {
		name = nameOf(method, route)
	}
	op := Operation{
		Name: r.unique(name, method, route), ID: id, Method: method, Path: route,
		Deprecated: n.get("deprecated").Is(jsonx.True), Summary: summaryOf(n, item),
		Description: describe(n, item, method, route), Tags: n.get("tags").Strings(),
	}
	input, output, err := r.use(n, item, &op)
	r.addOperation(op, input, output, err)
}

// use reads everything that using an operation needs: its params, its server and its results.
func (r *reader) use(n, item node, op *Operation) (input, output *bundledSchema, err error) {
	if err := checkRoute(n, op.Path); err != nil {
		return nil, nil, err
	}
	if r.input.total > maxInputs {
		return nil, nil, n.problem("the schemas of the operations before it have more than %d bytes together",
			maxInputs)
	}
	if op.Server, err = r.server(n, item); err != nil {
		return nil, nil, err
	}
	p, err := r.params(n, item, op)
	if err != nil {
		return nil, nil, err
	}
	body, err := r.body(n, p)
	if err != nil {
		return nil, nil, err
	}
	op.Plan.Params = p.params
	if body != nil {
		plan := body.plan // a copy, so that the nodes it was made from are not kept
		if op.Plan.Body = &plan; len(plan.Needs) > 0 {
			op.Description += "\n\nWith any member of the body, these are required: " +
				strings.Join(plan.Needs, ", ") + "."
		}
	}
	if input, err = r.inputSchema(p, body, n); err != nil {
		return nil, nil, err
	}
	if input.kept < len(input.defs) {
		op.Description += "\n\nParts of the params are not described here, because the schema would be too large."
	}
	return input, r.responses(n, op), nil
}

// summaryOf returns the summary of an operation on one line; it may be empty.
func summaryOf(n, item node) string {
	return strings.Join(strings.Fields(cmp.Or(n.get("summary").Text(), item.get("summary").Text())), " ")
}

// describe returns the document's description of an operation.
func describe(n, item node, method, route string) string {
	summary := summaryOf(n, item)
	text := strings.TrimSpace(cmp.Or(n.get("description").Text(), item.get("description").Text()))
	switch {
	case summary == "" && text == "":
		return method + " " + route
	case text == "" || strings.TrimSuffix(text, ".") == strings.TrimSuffix(summary, "."):
		return summary
	case summary == "" || strings.HasPrefix(text, summary):
		return text
	}
	return summary + "\n\n" + text
}

// server returns the base URL of an operation's requests.
func (r *reader) server(n, item node) (string, error) {
	if r.opts.Server != "" {
		return strings.TrimSuffix(r.opts.Server, "/"), nil
	}
	if r.version == 20 {
		return r.swaggerServer(n)
	}
	for _, place := range []node{n, item, r.root} {
		servers := place.get("servers")
		if !servers.Is(jsonx.Array) || len(servers.Items) == 0 {
			continue
		}
		server := servers.item(0)
		address := server.get("url").Text()
		for _, v := range server.get("variables").members() {
			value := v.get("default")
			if values := v.get("enum").items(); !value.exists() && len(values) > 0 {
				value = values[0]
			}
			if value.exists() {
				// Amazon's API Gateway writes /{basePath} and the default /prod.
				address = strings.ReplaceAll(address, "/{"+v.name()+"}", "/"+strings.TrimPrefix(value.Text(), "/"))
				address = strings.ReplaceAll(address, "{"+v.name()+"}", value.Text())
			}
		}
		return r.checkServer(server, cmp.Or(address, "/")) // an empty one would be that of the document
	}
	return r.checkServer(r.root, "/")
}

// swaggerServer returns the base URL that a Swagger 2.0 document names.
func (r *reader) swaggerServer(n node) (string, error) {
	own, _ := url.Parse(r.opts.Name) // nil or without a host: the document is a file
	host, scheme := r.root.get("host").Text(), ""
	for _, place := range []node{r.root, n} {
		if schemes := place.get("schemes"); schemes.Is(jsonx.Array) {
			if names := schemes.Strings(); slices.Contains(names, "https") {
				scheme = "https"
			} else if slices.Contains(names, "http") {
				scheme = "http"
			}
		}
	}
	base := "/" + strings.TrimPrefix(r.root.get("basePath").Text(), "/")
	if host == "" {
		return r.checkServer(r.root, base)
	}
	if scheme == "" && own != nil && own.Host == host {
		scheme = own.Scheme
	}
	return r.checkServer(r.root, cmp.Or(scheme, "https")+"://"+host+base)
}

// checkServer returns the address of a server that a document names, resolved against that
// of the document.
func (r *reader) checkServer(n node, address string) (string, error) {
	const advice = "; set baseUrl in the API's entry"
	own, err := url.Parse(r.opts.Name)
	if err != nil || own.Host == "" {
		own = nil
	}
	u, err := url.Parse(address)
	if err == nil && own != nil {
		u = own.ResolveReference(u)
	}
	if err == nil && own == nil && u.Scheme == "" && u.Host != "" {
		u.Scheme = "https" // that of the document, which is a file
	}
	switch {
	case err != nil || strings.ContainsAny(address, "{}"):
		return "", n.problem("the server's address %.200q is not usable%s", address, advice)
	case u.Host == "":
		return "", n.problem("the document does not say which host serves the API%s", advice)
	case u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "":
		return "", n.problem("the server's address %.200q is not a plain http or https address%s", address, advice)
	case own != nil && (own.Scheme != u.Scheme || own.Host != u.Host):
		return "", n.problem("the document names a server on another host, %s%s", u.Host, advice)
	case hasDotSegment(u.EscapedPath()):
		return "", n.problem("the server's address %.200q has a segment . or ..%s", address, advice)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}
