package restore

import (
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// Optional removes the nulls that strict declarations require for absent
// params, unless the tool's own schema allows null there. Like [Values] it
// changes nothing else.
func Optional(schema, params json.RawMessage) json.RawMessage {
	return restore(schema, params, (*restorer).optional)
}

// optional removes nulls from v and everything in it.
func (r *restorer) optional(s, v *jsonx.Value) {
	if v.Is(jsonx.Object) {
		r.dropNulls(s, v)
	}
	r.parts(s, v, r.optional)
}

// dropNulls removes members that are null if the schema allows them to be absent,
// but not to be null.
func (r *restorer) dropNulls(s, v *jsonx.Value) {
	drop := map[string]bool{}
	for _, m := range v.Members {
		if m.Value.Is(jsonx.Null) {
			verdict := r.null(s, v, m.Name, 0)
			drop[m.Name] = verdict.refused && !verdict.required
		}
	}
	v.Members = slices.DeleteFunc(v.Members, func(m jsonx.Member) bool {
		r.changed = r.changed || drop[m.Name]
		return drop[m.Name]
	})
}

// verdict is the result of checking a member that is null against the schema of its
// object.
type verdict struct {
	refused, allowed bool // if both are false, the schema does not describe the member
	required         bool
}

// null returns the verdict of a schema for the object v about its member name,
// which is null.
func (r *restorer) null(s, v *jsonx.Value, name string, depth int) (out verdict) {
	if s = r.enter(s, depth); s == nil {
		return out
	}
	if sub := r.refs.Get(s.Get("properties"), name); sub != nil {
		out.allowed = r.takesNull(sub, 0)
		out.refused = !out.allowed
	}
	out.required = schema.Required(s)[name]
	both := func(more verdict) {
		out = verdict{out.refused || more.refused, out.allowed || more.allowed, out.required || more.required}
	}
	for _, part := range s.Get("allOf").Elements() {
		both(r.null(part, v, name, depth+1))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := s.Get(keyword); list != nil {
			both(r.nullIn(list.Items, v, name, depth))
		}
	}
	return out
}

// nullIn is like null, for alternatives. A member that is described only by
// alternatives that are not possible is not allowed.
func (r *restorer) nullIn(list []*jsonx.Value, v *jsonx.Value, name string, depth int) (out verdict) {
	out.required = true
	possible, other := false, false
	for _, branch := range list {
		one := r.null(branch, v, name, depth+1)
		if r.possible(branch, v, depth) {
			possible = true
			out = verdict{out.refused || one.refused, out.allowed || one.allowed, out.required && one.required}
		} else {
			other = other || one.refused || one.allowed
		}
	}
	out.refused = (out.refused || other) && !out.allowed
	out.required = out.required && possible
	return out
}
