package registry

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// ofConstants returns a single violation for a union of constants if no branch
// matches. Each branch alone would report only its own constant.
func (v *Validator) ofConstants(e *jsonschema.ValidationError) (Violation, bool) {
	keyword, branches := keywordOf(e), v.branches(e)
	if branches == nil || len(e.Causes) == 0 {
		return Violation{}, false
	}
	var values []*jsonx.Value
	for _, branch := range branches {
		constants := v.constants(branch)
		if constants == nil {
			return Violation{}, false
		}
		values = append(values, constants...)
	}
	var texts []string
	for _, value := range values {
		if text := string(value.AppendTo(nil)); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return Violation{Pointer: pointerOf(e.InstanceLocation), Keyword: keyword, Message: "value must be one of " + strings.Join(texts, ", "),
		Expected: describe(jsonx.NewArray(values...))}, true
}

// constants returns the values that a schema allows, or nil if it does not
// consist of constants.
func (v *Validator) constants(branch *jsonx.Value) []*jsonx.Value {
	branch, err := v.refs.Resolve(branch)
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

// keywordOf returns the schema keyword that failed.
func keywordOf(e *jsonschema.ValidationError) string {
	return e.KeywordLocation[strings.LastIndexByte(e.KeywordLocation, '/')+1:]
}
