package registry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// checkable turns a settled schema into one that the library compiles, with a note for each
// pattern that cannot be checked.
type checkable struct{ notes []string }

// walk changes v and everything below it; is is the kind of v. The value of an
// unknown keyword is treated as a schema, because a reference may lead there.
func (c *checkable) walk(v *jsonx.Value, is schema.Content) {
	for _, item := range v.Items {
		c.walk(item, is)
	}
	isSchema := is == schema.Schemas || is == schema.Other
	if isSchema && v.Kind == jsonx.Object {
		v.Members = slices.DeleteFunc(v.Members, func(m jsonx.Member) bool { return isUnchecked(m.Name) })
		c.patterns(v)
	}
	for _, m := range v.Members {
		below := schema.Data
		if isSchema {
			below = schema.Under(m.Name)
		} else if is == schema.Named {
			below = schema.Schemas
		}
		c.walk(m.Value, below)
	}
}

// isUnchecked reports whether a keyword has no effect on the validity of values, or none in
// a settled schema.
func isUnchecked(keyword string) bool {
	switch keyword {
	case "title", "description", "$comment", "format", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
		"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary", "regexProperties":
		return true
	}
	return false
}

// patterns rewrites or removes the regular expressions of one schema.
func (c *checkable) patterns(n *jsonx.Value) {
	if p := n.Get("pattern"); p.Is(jsonx.String) {
		if re, ok := toRE2(p.Text()); ok {
			n.Set("pattern", jsonx.NewString(re))
		} else {
			n.Remove("pattern")
			c.notes = append(c.notes, fmt.Sprintf("pattern %q is not checked: RE2 does not support it", p.Text()))
		}
	}
	props := n.Get("patternProperties")
	if !props.Is(jsonx.Object) {
		return
	}
	for _, m := range slices.Clone(props.Members) {
		re, ok := toRE2(m.Name)
		if ok && re == m.Name {
			continue
		}
		props.Remove(m.Name)
		if ok {
			props.Set(re, m.Value)
			continue
		}
		// Without the pattern, it is unknown which keys are additional.
		n.Remove("additionalProperties")
		n.Remove("unevaluatedProperties")
		c.notes = append(c.notes, fmt.Sprintf("patternProperties %q is not checked: RE2 does not support it", m.Name))
	}
}

// toRE2 converts an ECMAScript regular expression to RE2 syntax. It returns false
// if this is not possible.
func toRE2(p string) (string, bool) {
	if _, err := regexp.Compile(p); err == nil {
		return p, true
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 == len(p) {
			b.WriteByte(p[i])
			continue
		}
		if p[i+1] == 'u' && i+6 <= len(p) && isHex(p[i+2:i+6]) {
			b.WriteString(`\x{` + p[i+2:i+6] + `}`)
			i += 5
			continue
		}
		b.WriteString(p[i : i+2])
		i++
	}
	_, err := regexp.Compile(b.String())
	return b.String(), err == nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }
