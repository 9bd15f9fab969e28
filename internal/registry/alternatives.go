package registry

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// Limits on the untrusted text that an error repeats, in bytes, and on the search for what to say.
const (
	maxPointer = 200
	maxMessage = 1000 // the library's messages list all allowed values
	maxTags    = 32   // members that may tell alternatives apart
)

// alternatives explains errors about anyOf and oneOf of one schema.
type alternatives struct{ refs *schema.Refs }

// causes returns the causes of an error to report. If a constant distinguishes the alternatives, as
// in {"kind":"a"} and {"kind":"b"}, these are the mistakes in the alternative that the value
// selects, or the wrong constants if it selects none. Alternatives for values of another type are
// ignored if there is one for the value's type.
func (a alternatives) causes(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if _, ok := a.whole(e); ok {
		return nil
	}
	wrong, mistyped := a.wrong(e), a.mistyped(e)
	return slices.DeleteFunc(slices.Clone(e.Causes), func(c *jsonschema.ValidationError) bool {
		return wrong[branchOf(c, e)] != nil || mistyped[branchOf(c, e)]
	})
}

// whole returns a single violation for a failed anyOf or oneOf, if one describes it better than its
// parts.
func (a alternatives) whole(e *jsonschema.ValidationError) (v Violation, ok bool) {
	if len(e.Causes) == 0 || a.branches(e) == nil {
		return v, false
	}
	for _, of := range []func(*jsonschema.ValidationError) (Violation, bool){a.ofConstants, a.ofTypes, a.ofAbsent} {
		if v, ok = of(e); ok {
			break
		}
	}
	return v, ok
}

// mistyped returns the alternatives of e, by index, that are for values of another type. It returns
// nil if the others only list constants.
func (a alternatives) mistyped(e *jsonschema.ValidationError) map[string]bool {
	branches := a.branches(e)
	if branches == nil {
		return nil
	}
	out, others := map[string]bool{}, false
	for _, c := range e.Causes {
		if isAbout(c, e.InstanceLocation, "type") {
			out[branchOf(c, e)] = true
		} else {
			others = others || !isAbout(c, e.InstanceLocation, "const", "enum")
		}
	}
	if !others && len(out) < len(branches) {
		return nil
	}
	return out
}

// isAbout reports whether an error is about one of the keywords for the value at a location, in all
// alternatives.
func isAbout(e *jsonschema.ValidationError, at string, keywords ...string) bool {
	about := func(c *jsonschema.ValidationError) bool { return isAbout(c, at, keywords...) }
	switch keyword := keywordOf(e); {
	case len(e.Causes) == 0:
		return slices.Contains(keywords, keyword) && e.InstanceLocation == at
	case keyword == "anyOf" || keyword == "oneOf":
		return !slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return !about(c) })
	}
	return slices.ContainsFunc(e.Causes, about)
}

// wrong returns the errors about the constant that tells the alternatives of e apart, by the index of the
// alternative; nil if there is no such constant.
func (a alternatives) wrong(e *jsonschema.ValidationError) map[string]*jsonschema.ValidationError {
	branches := a.branches(e)
	if branches == nil || len(e.Causes) < 2 {
		return nil
	}
	wrong := map[string]*jsonschema.ValidationError{} // by the index of the alternative
	var constants []*jsonschema.ValidationError
	for _, c := range e.Causes {
		if found := wrongConstant(c, e.InstanceLocation); found != nil && wrong[branchOf(c, e)] == nil {
			wrong[branchOf(c, e)] = found
			constants = append(constants, found)
		}
	}
	if len(wrong) == 0 || !a.discriminates(branches, constants, e.InstanceLocation) {
		return nil
	}
	return wrong
}

// branchOf returns the index of the alternative of e to which a cause belongs.
func branchOf(cause, e *jsonschema.ValidationError) string {
	index, _, _ := strings.Cut(strings.TrimPrefix(cause.KeywordLocation, e.KeywordLocation+"/"), "/")
	return index
}

// branches returns the alternatives of the anyOf or oneOf that failed, or nil if
// another keyword failed.
func (a alternatives) branches(e *jsonschema.ValidationError) []*jsonx.Value {
	if keyword := keywordOf(e); keyword != "anyOf" && keyword != "oneOf" {
		return nil
	}
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	list := a.refs.Lookup("#" + fragment)
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
func (a alternatives) discriminates(branches []*jsonx.Value, wrong []*jsonschema.ValidationError, at string) bool {
	place := wrong[0].InstanceLocation
	if slices.ContainsFunc(wrong, func(e *jsonschema.ValidationError) bool { return e.InstanceLocation != place }) {
		return false
	}
	var member string
	for token := range jsonx.Tokens(pointerOf(strings.TrimPrefix(place, at))) {
		member = token
	}
	return a.listed(branches, member) != nil
}

// listed returns the constants that alternatives have for a member; nil if one has none.
func (a alternatives) listed(branches []*jsonx.Value, member string) (values []*jsonx.Value) {
	for _, branch := range branches {
		s, _ := a.refs.Resolve(branch) // nil if it fails
		constants := a.constants(s.Get("properties").Get(member))
		if constants == nil {
			return nil
		}
		values = append(values, constants...)
	}
	return values
}

// pointerOf undoes the percent-encoding that the library adds to JSON pointers.
func pointerOf(location string) string {
	if p, err := url.PathUnescape(location); err == nil {
		return p
	}
	return location
}

// describe returns the value of a schema keyword as text for [Violation.Expected],
// or "" if it is too long.
func describe(rule *jsonx.Value) string {
	if rule.Is(jsonx.String) {
		return rule.Text()
	}
	if text := jsonx.Canonical(rule.AppendTo(nil)); len(text) <= 300 {
		return text
	}
	return ""
}

// ofConstants returns a single violation for a union of constants, or of objects that a constant
// tells apart, if no branch matches. Each branch alone would report only its own constant.
func (a alternatives) ofConstants(e *jsonschema.ValidationError) (Violation, bool) {
	var values []*jsonx.Value
	wrong, at := a.wrong(e), e.InstanceLocation
	for i, branch := range a.branches(e) {
		if found := wrong[strconv.Itoa(i)]; found != nil {
			_, fragment, _ := strings.Cut(found.AbsoluteKeywordLocation, "#")
			at, branch = found.InstanceLocation, a.refs.Lookup("#"+strings.TrimSuffix(fragment, "/"+keywordOf(found)))
		}
		constants := a.constants(branch)
		if constants == nil {
			return Violation{}, false
		}
		values = append(values, constants...)
	}
	return Violation{Pointer: pointerOf(at), Keyword: keywordOf(e), Message: valueMustBe(values),
		Expected: describe(jsonx.NewArray(values...))}, true
}

// ofAbsent returns a single violation for an object without the member whose constant distinguishes
// the alternatives. What else the alternatives require cannot be known without it.
func (a alternatives) ofAbsent(e *jsonschema.ValidationError) (Violation, bool) {
	mistyped := a.mistyped(e)
	var branches []*jsonx.Value
	for i, branch := range a.branches(e) {
		if !mistyped[strconv.Itoa(i)] {
			branches = append(branches, branch)
		}
	}
	if len(branches) < 2 {
		return Violation{}, false
	}
	first, _ := a.refs.Resolve(branches[0]) // nil if it fails
	members := first.Get("properties").Fields()
	for _, m := range members[:min(len(members), maxTags)] {
		values := a.listed(branches, m.Name)
		given := func(c *jsonschema.ValidationError) bool {
			return !mistyped[branchOf(c, e)] && !lacksMember(c, e.InstanceLocation, m.Name)
		}
		if values != nil && !slices.ContainsFunc(e.Causes, given) {
			return Violation{Pointer: pointerOf(e.InstanceLocation), Keyword: "required",
				Message:  text.Clip(fmt.Sprintf("missing property %q, whose %s", m.Name, valueMustBe(values)), maxMessage),
				Expected: describe(jsonx.NewArray(values...))}, true
		}
	}
	return Violation{}, false
}

// lacksMember reports whether an error says that the object at a location lacks a member.
func lacksMember(e *jsonschema.ValidationError, at, member string) bool {
	return e.InstanceLocation == at && keywordOf(e) == "required" && strings.Contains(e.Message, "'"+member+"'") ||
		slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return lacksMember(c, at, member) })
}

// ofTypes returns a single violation for alternatives that are all for values of other types.
func (a alternatives) ofTypes(e *jsonschema.ValidationError) (Violation, bool) {
	if len(a.mistyped(e)) < len(a.branches(e)) {
		return Violation{}, false
	}
	var types []string
	got := ""
	for _, leaf := range leavesOf(e, func(c *jsonschema.ValidationError) []*jsonschema.ValidationError { return c.Causes }) {
		expected, found, ok := strings.Cut(strings.TrimPrefix(leaf.Message, "expected "), ", but got ")
		if keywordOf(leaf) != "type" || leaf.InstanceLocation != e.InstanceLocation || !ok {
			continue
		}
		got = found
		for name := range strings.SplitSeq(expected, " or ") {
			types = text.AppendNew(types, name)
		}
	}
	return Violation{Pointer: pointerOf(e.InstanceLocation), Keyword: keywordOf(e),
		Message: "expected " + strings.Join(types, " or ") + ", but got " + got}, true
}

// constants returns the values that a schema allows, or nil if it does not
// consist of constants.
func (a alternatives) constants(branch *jsonx.Value) []*jsonx.Value {
	branch, err := a.refs.Resolve(branch)
	if err != nil {
		return nil
	}
	if c := branch.Get("const"); c != nil {
		return []*jsonx.Value{c}
	}
	if enum := branch.Get("enum"); enum.Is(jsonx.Array) {
		return enum.Items
	}
	if branch.Get("type").IsText("null") {
		return []*jsonx.Value{{Kind: jsonx.Null, Token: "null"}}
	}
	return nil
}

func keywordOf(e *jsonschema.ValidationError) string {
	parts := strings.Split(e.KeywordLocation, "/")
	if n := len(parts); n > 3 && parts[n-3] == "dependentRequired" { // the place of one name in the list of a property
		return parts[n-3]
	}
	return parts[len(parts)-1]
}

// valueMustBe returns the message for a value that is none of the allowed ones.
func valueMustBe(values []*jsonx.Value) string {
	var texts []string
	for _, value := range values {
		if text := string(value.AppendTo(nil)); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if len(texts) == maxMessage { // more would be cut
			break
		}
	}
	if len(texts) == 1 {
		return "value must be " + texts[0]
	}
	return "value must be one of " + strings.Join(texts, ", ")
}

func leavesOf(e *jsonschema.ValidationError,
	causes func(*jsonschema.ValidationError) []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	further := causes(e)
	if len(further) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, c := range further {
		out = append(out, leavesOf(c, causes)...)
	}
	slices.SortFunc(out, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(cmp.Compare(a.InstanceLocation, b.InstanceLocation),
			cmp.Compare(a.KeywordLocation, b.KeywordLocation))
	})
	return out
}
