package overrides

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// translation converts params between the new shape and the tool's original one.
type translation struct {
	tool   string
	origin string            // of the override
	names  map[string]string // from the new name of each param to its original name
	fixed  []value           // params that calls cannot set, in the order in which they are sent to the tool
	absent []value           // values sent if a call has none
	// closed maps each folded name that calls must not use to the correct name, or
	// to "" for a param that calls cannot set. Names that match a name in the new
	// shape exactly are always allowed.
	closed map[string]string
	// own maps the original names of params to those that the person's own override gives them, if
	// the project's adds to it.
	own map[string]string
}

// value is the original name of a param and the value to send; nil means that none
// is sent.
type value struct {
	name string
	json json.RawMessage
}

// foldName returns a key that is equal for all names that a case-insensitive program
// may treat as the same, whichever case-folding rules it uses. Text after a NUL is
// dropped, because C programs ignore it.
func foldName(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(unicode.ToUpper(r)) // dotless i and long s have no case pair
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

// close forbids a name in calls; instead is the name to use, or "".
func (tr *translation) close(name, instead string) {
	if key := foldName(name); instead == "" ||
		tr.closed[key] == "" && !slices.ContainsFunc(tr.fixed, func(v value) bool { return foldName(v.name) == key }) {
		tr.closed[key] = instead
	}
}

// refuse returns an *ArgsError that names every param that the call must not
// contain.
func (tr *translation) refuse(params *jsonx.Value) error {
	var found []registry.Violation
	for _, m := range params.Members {
		if _, ok := tr.names[m.Name]; ok {
			continue
		}
		instead, closed := tr.closed[foldName(m.Name)]
		switch {
		case !closed:
		case instead == "":
			v := violation(m.Name, "an override sets this param, so a call cannot")
			v.Setting = tr.origin
			found = append(found, v)
		default:
			found = append(found, violation(m.Name, fmt.Sprintf("unknown property, did you mean %q?", instead)))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &registry.ArgsError{Tool: tr.tool, Violations: found}
}

func violation(name, message string) registry.Violation {
	return registry.Violation{Pointer: "/" + jsonx.EscapeToken(name), Message: message}
}

// wire converts a call to the tool's original shape. The error is an *ArgsError.
func (tr *translation) wire(call registry.Call) (registry.Call, error) {
	params, err := tr.parse(call.Params)
	if err != nil {
		return call, err
	}
	if err := tr.refuse(params); err != nil {
		return call, err
	}
	for i, m := range params.Members {
		if name, ok := tr.names[m.Name]; ok {
			params.Members[i] = jsonx.NewMember(name, m.Value)
		}
	}
	edited := maps.Collect(jsonx.Members(call.Edited))
	for _, v := range tr.fixed {
		if raw, ok := edited[v.name]; ok {
			v.json = raw
		}
		addParam(params, v)
	}
	for _, v := range tr.absent {
		if params.Get(v.name) == nil {
			addParam(params, v)
		}
	}
	call.Params, call.Edited = params.AppendTo(nil), nil
	return call, nil
}

// shapes implements [registry.Tool.Shapes].
func (tr *translation) shapes(call registry.Call) ([]json.RawMessage, error) {
	w, err := tr.wire(call)
	if err != nil {
		return nil, err
	}
	declared, err := tr.parse(call.Params)
	if err != nil {
		return nil, err
	}
	for _, v := range tr.absent {
		if name := tr.nameOf(v.name); declared.Get(name) == nil {
			addParam(declared, value{name, v.json})
		}
	}
	out := []json.RawMessage{declared.AppendTo(nil), w.Params}
	if len(tr.own) > 0 {
		own, err := tr.parse(w.Params)
		if err != nil {
			return nil, err
		}
		for i, m := range own.Members {
			if name, ok := tr.own[m.Name]; ok {
				own.Members[i] = jsonx.NewMember(name, m.Value)
			}
		}
		out = append(out, own.AppendTo(nil))
	}
	return out, nil
}

// addParam appends a param unless it has no value to send.
func addParam(params *jsonx.Value, v value) {
	if v.json == nil {
		return
	}
	if parsed, err := jsonx.Parse(v.json, jsonx.Options{}); err == nil { // valid, because it was parsed before
		params.Members = append(params.Members, jsonx.NewMember(v.name, parsed))
	}
}

func (tr *translation) parse(raw json.RawMessage) (*jsonx.Value, error) {
	params, err := jsonx.Parse(raw, jsonx.Options{Strict: true, Depth: registry.MaxDepth})
	if err != nil {
		return nil, registry.Invalid(tr.tool, "", "params are not valid JSON: %s", err)
	}
	if !params.Is(jsonx.Object) {
		return nil, registry.Invalid(tr.tool, "", "params must be a JSON object")
	}
	return params, nil
}

// shape converts params in the tool's original shape to the new one. edited
// contains the params that calls cannot set, if they differ from the values that
// would be sent.
func (tr *translation) shape(raw json.RawMessage) (params, edited json.RawMessage, err error) {
	v, err := tr.parse(raw)
	if err != nil {
		return nil, nil, err
	}
	changed := jsonx.NewObject()
	for _, f := range tr.fixed {
		was := v.Get(f.name)
		if was != nil && jsonx.Canonical(was.AppendTo(nil)) != jsonx.Canonical(f.json) {
			changed.Set(f.name, was)
		}
		v.Remove(f.name)
	}
	for i, m := range v.Members {
		v.Members[i] = jsonx.NewMember(tr.nameOf(m.Name), m.Value)
	}
	if len(changed.Members) > 0 {
		edited = changed.AppendTo(nil)
	}
	return v.AppendTo(nil), edited, nil
}

// nameOf returns the new name of a param.
func (tr *translation) nameOf(name string) string {
	for to, from := range tr.names {
		if from == name {
			return to
		}
	}
	return name
}

// inShape converts an error about params in the original shape to the names of the
// new shape.
func (tr *translation) inShape(err error) error {
	args, ok := err.(*registry.ArgsError)
	if !ok {
		return err
	}
	out := &registry.ArgsError{Tool: tr.tool, Violations: slices.Clone(args.Violations)}
	for i := range out.Violations {
		v := &out.Violations[i]
		for first := range jsonx.Tokens(v.Pointer) {
			v.Pointer = "/" + jsonx.EscapeToken(tr.nameOf(first)) +
				strings.TrimPrefix(v.Pointer, "/"+jsonx.EscapeToken(first))
			break // only the first token is the name of a param
		}
	}
	return out
}
