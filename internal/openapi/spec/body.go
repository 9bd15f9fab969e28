package spec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// bodyParam is the name of the param that is the whole body.
const bodyParam = "body"

// bodyParams has the params that make up the body of an operation.
type bodyParams struct {
	plan       Body
	properties []property
	rest       *fragment // schema of additional params that become members; nil means none are allowed
}

// body reads the body of an operation; nil if it has none.
func (r *reader) body(n node, p *params) (*bodyParams, error) {
	if r.version == 20 {
		return r.swaggerBody(n, p)
	}
	request, err := r.resolve(n.get("requestBody"))
	if err != nil || !request.exists() {
		return nil, err
	}
	content := request.get("content")
	if !request.Is(jsonx.Object) || content.exists() && !content.Is(jsonx.Object) {
		return nil, request.problem("a requestBody must be an object with a content for each media type")
	}
	best, name, media := unsendable, "", node{}
	for _, m := range content.members() {
		if rank := r.rank(m.name(), r.media(m).get("schema")); rank < best {
			best, name, media = rank, m.name(), r.media(m)
		}
	}
	if name == "" {
		if len(content.members()) > 0 {
			return nil, content.problem("no key of content is a media type that can be sent")
		}
		return nil, nil
	}
	kind := kindOf(name)
	if i := slices.IndexFunc(content.members(), func(m node) bool { return kindOf(m.name()) == kindMultipart }); i >= 0 &&
		kind < kindMultipart && r.hasFiles(media.get("schema")) {
		kind, name, media = kindMultipart, content.member(i).name(), r.media(content.member(i))
	}
	return r.bodyOf(Body{Type: name, Kind: kind, Required: request.get("required").Is(jsonx.True)},
		p, media.get("schema"), media.get("encoding"), request.get("description").Text())
}

// bodyOf makes params of a body's schema: one for each of its members, or one for the whole.
func (r *reader) bodyOf(plan Body, p *params, s, encoding node, description string) (*bodyParams, error) {
	resolved, err := r.resolve(s)
	if err != nil {
		return nil, err
	}
	b := &bodyParams{plan: plan}
	b.plan.Type = sendable(plan.Type, plan.Kind)
	if plan.Type == "*/*" && r.filesOf(resolved, 0) == oneFile {
		b.plan.Kind, b.plan.Type = kindBytes, "application/octet-stream"
	}
	r.fields(b, resolved, encoding)
	if b.plan.Kind <= kindMultipart && r.isSpread(s, resolved) && r.spread(b, p, resolved) {
		return b, nil
	}
	r.bodyParam(b, p, s, description)
	return b, nil
}

// mediaTypes returns the media types that an operation of Swagger 2.0 consumes or produces: its
// own, or else those of the document.
func (r *reader) mediaTypes(n node, keyword string) []string {
	if own := n.get(keyword); own.Value != nil {
		return own.Strings()
	}
	return r.root.get(keyword).Strings()
}

// swaggerBody reads the body of an operation of Swagger 2.0.
func (r *reader) swaggerBody(n node, p *params) (*bodyParams, error) {
	types := r.mediaTypes(n, "consumes")
	best, media := unsendable, ""
	for _, m := range types {
		if rank := r.rank(m, p.raw.get("schema")); rank < best {
			best, media = rank, m
		}
	}
	kind := kindOf(media)
	if p.raw.Value != nil {
		if media == "" || kind == kindForm || kind == kindMultipart {
			kind, media = kindJSON, "application/json"
		}
		return r.bodyOf(Body{Type: media, Kind: kind, Required: p.raw.get("required").Is(jsonx.True)},
			p, p.raw.get("schema"), node{}, p.raw.get("description").Text())
	}
	if len(p.form) == 0 {
		return nil, nil
	}
	if slices.ContainsFunc(p.form, func(n node) bool { return r.filesOf(n, 0) != 0 }) {
		kind = kindMultipart
	} else if kind != kindMultipart || slices.ContainsFunc(types, func(t string) bool { return kindOf(t) == kindForm }) {
		kind = kindForm
	}
	b := &bodyParams{plan: Body{
		Type: []string{kindForm: "application/x-www-form-urlencoded", kindMultipart: "multipart/form-data"}[kind],
		Kind: kind,
	}}
	for _, field := range p.form {
		name := field.get("name").Text()
		f := r.fileSchema(field)
		file := f != nil
		if !file {
			f = r.input.schema(field, field.get("description").Text())
		}
		b.properties = append(b.properties, property{name, f, field.get("required").Is(jsonx.True)})
		b.plan.Fields = append(b.plan.Fields,
			Field{Name: name, File: file, Style: swaggerStyle(field.get("collectionFormat").Text()),
				Explode: field.get("collectionFormat").Text() == "multi"})
		b.plan.Required = b.plan.Required || field.get("required").Is(jsonx.True)
	}
	if !p.take(b) {
		b.properties = []property{{p.unique(bodyParam, bodyParam), object(b.properties, nil), b.plan.Required}}
		b.plan.Param = b.properties[0].name
	}
	return b, nil
}

// take makes the members of the body params, unless one has the same name as another param.
func (p *params) take(b *bodyParams) bool {
	for _, property := range b.properties {
		if p.taken[property.name] {
			return false
		}
	}
	for i := range b.properties {
		property := &b.properties[i]
		m := Member{Param: p.unique(property.name, bodyParam)}
		if m.Param != property.name {
			m.Name = property.name
		}
		property.name = m.Param
		b.plan.Members = append(b.plan.Members, m)
	}
	return true
}

// isAnnotation reports whether a keyword beside a reference does not change what is valid.
func isAnnotation(keyword string) bool {
	return strings.HasPrefix(keyword, "x-") ||
		slices.Contains([]string{"$ref", "description", "summary", "title",
			"deprecated", "example", "examples", "$comment"}, keyword)
}

// isSpread reports whether the members of a body are params of their own: it is an object
// with declared properties and no alternatives.
func (r *reader) isSpread(s, resolved node) bool {
	if s.Value != resolved.Value && r.version >= 31 &&
		slices.ContainsFunc(s.members(), func(m node) bool { return !isAnnotation(m.name()) }) {
		return false // there are keywords beside the reference
	}
	for _, keyword := range []string{
		"allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "propertyNames", "dependentSchemas",
		"dependentRequired", "$dynamicRef", "unevaluatedProperties", "discriminator",
	} {
		if resolved.Value.Get(keyword) != nil {
			return false
		}
	}
	typ := resolved.Value.Get("type")
	isObject := typ == nil || typ.IsText("object") || typ.Is(jsonx.Array) && slices.Contains(typ.Strings(), "object")
	return isObject && len(resolved.get("properties").members()) > 0
}

// spread makes the members of a body params; false if one has the same name as another param, or if
// no member is left.
func (r *reader) spread(b *bodyParams, p *params, s node) bool {
	if v := s.get("required"); v.Value != nil && !isRequired(v.Value) {
		return false // the problem is reported for the whole schema
	}
	required := map[string]bool{}
	for _, name := range s.get("required").Strings() {
		required[name] = true
	}
	properties := s.get("properties")
	var all []property
	var needs []string
	for _, member := range properties.members() {
		name := member.name()
		if r.input.isLeftOut(member) {
			continue
		}
		f := r.input.schema(member, "")
		if b.plan.field(name).File {
			f = r.fileSchema(member)
		}
		isRequired := required[name]
		if isRequired {
			needs = append(needs, name)
		}
		all = append(all, property{name, f, isRequired && b.plan.Required})
	}
	b.properties = all
	if len(all) == 0 || !p.take(b) {
		b.properties = nil
		return false
	}
	if !b.plan.Required {
		b.plan.Needs = needs
	}
	if rest := s.get("additionalProperties"); rest.Is(jsonx.Object) || rest.Is(jsonx.True) {
		b.rest, b.plan.Rest = r.input.schema(rest, ""), true
	}
	return true
}

// bodyParam makes the whole body one param.
func (r *reader) bodyParam(b *bodyParams, p *params, s node, description string) {
	var f *fragment
	switch {
	case b.plan.Kind == kindBytes:
		resolved, _ := r.resolve(s)
		b.plan.Base64 = resolved.Value.Get("format").IsText("byte") ||
			resolved.Value.Get("contentEncoding").IsText("base64")
		f = r.fileSchema(node{
			jsonx.NewObject(jsonx.NewMember("format", jsonx.NewString("binary")),
				jsonx.NewMember("description", jsonx.NewString(description))), s.file, s.at,
		})
	case b.plan.Kind == kindText:
		f = r.input.schema(node{jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("string"))),
			s.file, s.at}, description)
	default:
		f = r.input.schema(s, r.noteFiles(b, s, description))
	}
	b.plan.Param = p.unique(bodyParam, bodyParam)
	b.properties = []property{{b.plan.Param, f, b.plan.Required}}
}

// noteFiles adds to the description of a body which members are files.
func (r *reader) noteFiles(b *bodyParams, s node, description string) string {
	var names []string
	for _, f := range b.plan.Fields {
		if f.File {
			names = append(names, f.Name)
		}
	}
	if names == nil {
		return description
	}
	resolved, _ := r.resolve(s)
	description = cmp.Or(description, resolved.get("description").Text())
	return strings.TrimSpace(description + "\n\n" + strings.Join(names, ", ") + ": " + r.opts.FileNote)
}

// inputSchema returns the schema of an operation's params, including those of its body; nil if it
// has none.
func (r *reader) inputSchema(p *params, body *bodyParams, of node) (*bundledSchema, error) {
	var all []property
	for i, param := range p.params {
		all = append(all, property{param.Name,
			r.input.schema(r.schemaOf(p.nodes[i]), p.nodes[i].get("description").Text()), p.required[i]})
	}
	rest := &fragment{json: []byte("false")}
	if body != nil {
		all = append(all, body.properties...)
		if body.rest != nil {
			rest = body.rest
		}
	}
	return r.input.bundle(object(all, rest), of)
}

// media returns the document's media type object, whose place differs since OpenAPI 3.2.
func (r *reader) media(n node) node {
	resolved, err := r.resolve(n)
	if err != nil {
		return n
	}
	return resolved
}

// unsendable is the rank of a text that is not a media type.
const unsendable = 2 * (kindBytes + 1)

// rank returns how suitable a media type is for a body; the lowest rank is sent. A JSON Patch must
// be a list, because servers refuse anything else of that type.
func (r *reader) rank(media string, s node) int {
	kind := kindOf(media)
	switch {
	case !isMedia(media):
		return unsendable
	case mediaType(media) == "application/json-patch+json" && r.shape(s, map[*jsonx.Value]string{}, 0) != "array":
		return 2*kind + 1
	}
	return 2 * kind
}

// bodyProperties returns the properties of a body, including those of all schemas that apply to the
// same value.
func (r *reader) bodyProperties(s node) []node {
	resolved, err := r.resolve(s)
	if err != nil {
		return nil
	}
	var out []node
	for _, part := range r.appliedBy(resolved, "allOf", "anyOf", "oneOf") {
		out = append(out, part.get("properties").members()...)
	}
	return out
}

// hasFiles reports whether a member of a body is a file.
func (r *reader) hasFiles(s node) bool {
	return slices.ContainsFunc(r.bodyProperties(s), func(p node) bool { return r.filesOf(p, 0) != 0 })
}

// Results of filesOf.
const (
	oneFile = 1 << iota
	fileList
)

// filesOf reports whether all values of a schema, apart from null, are files (oneFile), lists of
// files (fileList) or either; 0 if they are something else.
func (r *reader) filesOf(n node, depth int) int {
	n, err := r.resolve(n)
	if err != nil || depth > maxChain || !n.Is(jsonx.Object) {
		return 0
	}
	found, known := r.fileKinds[n.Value]
	if known {
		return found
	}
	r.fileKinds[n.Value] = 0 // until it is known, for schemas that contain themselves
	typ, media := n.Value.Get("type"), n.get("contentMediaType").Text()
	switch {
	case n.get("format").Text() == "binary", typ.IsText("file"),
		media != "" && n.get("contentEncoding").Value == nil && kindOf(media) == kindBytes:
		found = oneFile
	case typ.IsText("array") || slices.Contains(typ.Strings(), "array"):
		if r.filesOf(n.get("items"), depth+1) == oneFile {
			found = fileList
		}
	default:
		found = r.filesOfParts(n, depth+1)
	}
	r.fileKinds[n.Value] = found
	return found
}

// filesOfParts is filesOf for the schemas that a schema applies to the same value.
func (r *reader) filesOfParts(n node, depth int) int {
	for _, part := range n.get("allOf").items() {
		if found := r.filesOf(part, depth); found != 0 {
			return found
		}
	}
	all := 0
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for _, part := range n.get(keyword).items() {
			found := r.filesOf(part, depth)
			if found == 0 && !part.Value.Get("type").IsText("null") && !schema.IsUnquotedNull(keyword, part.Value) {
				return 0
			}
			all |= found
		}
	}
	return all
}

// fileSchema returns the schema of a param that is a file or a list of files; nil if n describes
// something else.
func (r *reader) fileSchema(n node) *fragment {
	kinds := r.filesOf(n, 0)
	n, _ = r.resolve(n)
	items, _ := r.resolve(n.get("items"))
	described := func(out *jsonx.Value, description string) *jsonx.Value {
		if description != "" {
			out.Set("description", jsonx.NewString(description))
		}
		return out
	}
	one := func(s node) *jsonx.Value {
		description := s.get("description").Text()
		if description != "" {
			description += "\n\n"
		}
		return described(jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("string")),
			jsonx.NewMember("format", jsonx.NewString("binary"))), description+r.opts.FileNote)
	}
	list := jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("array")), jsonx.NewMember("items", one(items)))
	switch kinds {
	case 0:
		return nil
	case oneFile:
		return &fragment{json: one(n).JSON()}
	case oneFile | fileList:
		list = jsonx.NewObject(jsonx.NewMember("anyOf", jsonx.NewArray(one(items), list)))
	}
	return &fragment{json: described(list, n.get("description").Text()).JSON()}
}

// fields records how the members of a form are sent, where that is not the default.
func (r *reader) fields(b *bodyParams, s, encoding node) {
	if b.plan.Kind != kindForm && b.plan.Kind != kindMultipart {
		return
	}
	known := map[string]int{} // by name, the index in all
	var all []Field
	for _, member := range r.bodyProperties(s) {
		name, isFile := member.name(), b.plan.Kind == kindMultipart && r.filesOf(member, 0) != 0
		if i, ok := known[name]; ok {
			all[i].File = all[i].File && isFile // an alternative takes text
			continue
		}
		field := Field{Name: name, Explode: true, File: isFile}
		if e := encoding.get(name); e.Is(jsonx.Object) {
			field.Type, field.Style, field.Reserved = e.get("contentType").Text(), e.get("style").Text(),
				e.get("allowReserved").Is(jsonx.True)
			if explode := e.get("explode"); explode.Value != nil || field.Style != "" && field.Style != "form" {
				field.Explode = explode.Is(jsonx.True)
			}
		}
		known[name] = len(all)
		all = append(all, field)
	}
	b.plan.Fields = slices.DeleteFunc(all, func(f Field) bool { return f == Field{Name: f.Name, Explode: true} })
}

// responses records which media types the operation responds with, and returns the schema of its
// JSON responses; nil if there is none. An invalid schema is left out and does not make the
// operation unusable.
func (r *reader) responses(n node, op *Operation) *bundledSchema {
	var types []string
	var kinds, others []Output // default stands for errors too, so it counts only where nothing else means success
	schemas := map[string]node{}
	for _, one := range n.get("responses").members() {
		response, err := r.resolve(one)
		status := one.name()
		if err != nil || !response.Is(jsonx.Object) || !(strings.HasPrefix(status, "2") || status == "default") {
			continue
		}
		schema, isJSON := response.get("schema"), false // Swagger 2.0
		for _, media := range response.get("content").members() {
			types = append(types, media.name())
			if kindOf(media.name()) == kindJSON {
				isJSON = true
				if schema.Value == nil {
					schema = r.media(media).get("schema")
				}
			}
		}
		kind := &kinds
		if status == "default" {
			kind = &others
		}
		if schemas[status] = schema; isJSON || schema.Value != nil {
			*kind = append(*kind, Output{Status: status})
		}
	}
	if len(schemas) == 1 {
		kinds = append(kinds, others...)
	}
	if r.version == 20 {
		types = r.mediaTypes(n, "produces")
		if types != nil && !slices.ContainsFunc(types, func(t string) bool { return kindOf(t) == kindJSON }) {
			kinds = nil
		}
	}
	slices.SortStableFunc(types, func(a, b string) int { return min(kindOf(a), 1) - min(kindOf(b), 1) })
	for _, t := range types {
		if isMedia(t) && !slices.Contains(op.Plan.Accept, t) {
			op.Plan.Accept = append(op.Plan.Accept, t)
		}
	}
	if len(kinds) == 0 || r.output.total > maxOutputs {
		return nil
	}
	f := r.outputOf(kinds, schemas)
	if f == nil {
		return nil
	}
	output, err := r.output.bundle(f, n)
	if err != nil {
		return nil
	}
	op.Plan.Outputs = kinds
	return output
}

// outputOf returns the schema of an operation's results, with a branch for each kind if they
// differ, and records which branch belongs to which kind. It returns nil if no result is described.
func (r *reader) outputOf(kinds []Output, schemas map[string]node) *fragment {
	var branches []string
	all, described := &fragment{}, false
	for i := range kinds {
		kind := &kinds[i]
		f := r.kindOfOutput(kind, schemas[kind.Status])
		if described = described || f != nil; f == nil {
			f = &fragment{json: []byte(`{"type":"object"}`)} // a value that is not an object is put into one
		}
		if at := slices.Index(branches, string(f.json)); at >= 0 {
			kind.Branch = at + 1
			continue
		}
		branches = append(branches, string(f.json))
		kind.Branch = len(branches)
		all.refs, all.err = append(all.refs, f.refs...), cmp.Or(all.err, f.err)
	}
	if !described {
		return nil
	}
	if all.json = []byte(`{"type":"object","anyOf":[` + strings.Join(branches, ",") + `]}`); len(branches) == 1 {
		all.json = []byte(branches[0])
		for i := range kinds {
			kinds[i].Branch = 0
		}
	}
	return all
}

// kindOfOutput returns the schema of one kind of an operation's results; nil if they are not described.
func (r *reader) kindOfOutput(kind *Output, s node) *fragment {
	resolved, err := r.resolve(s)
	if err != nil {
		return nil
	}
	switch r.shape(resolved, map[*jsonx.Value]string{}, 0) {
	case "object":
		f := r.output.schema(resolved, "")
		if resolved.Value.Get("type") == nil || resolved.Value.Get("type").Is(jsonx.Array) {
			f.json = asObject(resolved, f.json)
		}
		return f
	case "array":
		kind.Wrap = "items"
	case "scalar":
		kind.Wrap = "value"
	default:
		return nil
	}
	return object([]property{{kind.Wrap, r.output.schema(s, ""), true}}, nil)
}

// asObject sets the type of a schema to object.
func asObject(s node, json []byte) []byte {
	if s.Value.Get("type") == nil {
		return append([]byte(`{"type":"object"`+[]string{"", ","}[min(len(json)-2, 1)]), json[1:]...)
	}
	v, err := jsonx.Parse(json, jsonx.Options{})
	if err != nil {
		return json
	}
	v.Set("type", jsonx.NewString("object"))
	return v.JSON()
}

// shape returns what the values of a schema are: "object", "array", "scalar", or "" if that is
// uncertain. known has the shapes found so far.
func (r *reader) shape(s node, known map[*jsonx.Value]string, depth int) string {
	s, err := r.resolve(s)
	if err != nil || depth > maxChain || !s.Is(jsonx.Object) {
		return ""
	}
	shape, ok := known[s.Value]
	if !ok {
		known[s.Value] = "" // until it is known, for schemas that contain themselves
		shape = r.findShape(s, known, depth+1)
		known[s.Value] = shape
	}
	return shape
}

func (r *reader) findShape(s node, known map[*jsonx.Value]string, depth int) string {
	typ := s.Value.Get("type")
	names := typ.Strings()
	if typ.Is(jsonx.String) {
		names = []string{typ.Text()}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "null" && len(names) > 1 })
	switch {
	case len(names) > 1:
		return ""
	case len(names) == 1 && (names[0] == "object" || names[0] == "array"):
		return names[0]
	case len(names) == 1:
		return "scalar"
	case s.Value.Get("properties") != nil || s.Value.Get("additionalProperties") != nil:
		return "object"
	case s.Value.Get("items") != nil:
		return "array"
	}
	for _, one := range s.get("allOf").items() {
		if shape := r.shape(one, known, depth); shape != "" {
			return shape
		}
	}
	shape := ""
	for _, keyword := range []string{"oneOf", "anyOf"} {
		for i, one := range s.get(keyword).items() {
			this := r.shape(one, known, depth)
			if this == "" || i > 0 && this != shape {
				return ""
			}
			shape = this
		}
	}
	return shape
}
