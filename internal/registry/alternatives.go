package registry

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// causes returns the causes of an error to report. If a constant distinguishes the
// alternatives, as in {"kind":"a"} and {"kind":"b"}, these are the mistakes in the
// alternative that the value selects, or the wrong constants if it selects none.
func (v *Validator) causes(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if _, ok := v.ofConstants(e); ok {
		return nil
	}
	branches := v.branches(e)
	if branches == nil || len(e.Causes) < 2 {
		return e.Causes
	}
	wrong := map[string]*jsonschema.ValidationError{} // by the index of the alternative
	var constants []*jsonschema.ValidationError
	for _, c := range e.Causes {
		if found := wrongConstant(c, e.InstanceLocation); found != nil && wrong[branchOf(c, e)] == nil {
			wrong[branchOf(c, e)] = found
			constants = append(constants, found)
		}
	}
	if len(wrong) == 0 || !v.discriminates(branches, constants, e.InstanceLocation) {
		return e.Causes
	}
	named := slices.DeleteFunc(slices.Clone(e.Causes), func(c *jsonschema.ValidationError) bool { return wrong[branchOf(c, e)] != nil })
	if len(named) == 0 {
		return constants
	}
	return named
}

// branchOf returns the index of the alternative of e to which a cause belongs.
func branchOf(cause, e *jsonschema.ValidationError) string {
	index, _, _ := strings.Cut(strings.TrimPrefix(cause.KeywordLocation, e.KeywordLocation+"/"), "/")
	return index
}

// branches returns the alternatives of the anyOf or oneOf that failed, or nil if
// another keyword failed.
func (v *Validator) branches(e *jsonschema.ValidationError) []*jsonx.Value {
	if keyword := keywordOf(e); keyword != "anyOf" && keyword != "oneOf" {
		return nil
	}
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	list := v.refs.Lookup("#" + fragment)
	if !list.Is(jsonx.Array) {
		return nil
	}
	return list.Items
}

// wrongConstant returns the error about a constant in a member of the value at a
// location, or nil.
func wrongConstant(e *jsonschema.ValidationError, at string) *jsonschema.ValidationError {
	member, ok := strings.CutPrefix(e.InstanceLocation, at+"/")
	switch keyword := keywordOf(e); {
	case ok && strings.Contains(member, "/"):
		return nil
	case ok && (keyword == "const" || keyword == "enum"):
		return e
	}
	for _, c := range e.Causes {
		if found := wrongConstant(c, at); found != nil {
			return found
		}
	}
	return nil
}

// discriminates reports whether all errors are about the same member and every
// alternative has constants for it.
func (v *Validator) discriminates(branches []*jsonx.Value, wrong []*jsonschema.ValidationError, at string) bool {
	place := wrong[0].InstanceLocation
	if slices.ContainsFunc(wrong, func(e *jsonschema.ValidationError) bool { return e.InstanceLocation != place }) {
		return false
	}
	var member string
	for token := range jsonx.Tokens(pointerOf(strings.TrimPrefix(place, at))) {
		member = token
	}
	return !slices.ContainsFunc(branches, func(branch *jsonx.Value) bool {
		s, err := v.refs.Resolve(branch)
		return err != nil || v.constants(s.Get("properties").Get(member)) == nil
	})
}
