package registry

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// causes returns the causes of an error to report. Of alternatives that a constant
// tells apart, such as {"kind":"a"} and {"kind":"b"}, these are the mistakes in
// the one that the value names, or the wrong constants if it names none.
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
	if len(wrong) == 0 || !v.tellsApart(branches, constants, e.InstanceLocation) {
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

// branches returns the alternatives that an error is about; nil if it is about
// something else.
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

// wrongConstant returns the error about a constant of a member of the value at a
// location; nil if there is none.
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

// tellsApart reports whether the errors are about one member, for which every
// alternative has constants.
func (v *Validator) tellsApart(branches []*jsonx.Value, wrong []*jsonschema.ValidationError, at string) bool {
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
