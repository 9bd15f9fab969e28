package restore

import (
	"bytes"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/registry"
)

// Values repairs values that a provider's format, models or their clients have changed. A string
// becomes the value that the format gemini declares as that string, or the JSON value in it, if the
// schema does not allow the string but allows that value's type. A whole number such as 5000.0
// becomes 5000 if the schema allows only integers. An empty list, which PHP writes for an empty
// object, becomes one if the schema allows objects and no lists. Everything else keeps its bytes
// except for white space. If there is nothing to restore, or schema or params cannot be parsed or
// have duplicate keys, params are unchanged.
func Values(inputSchema, params json.RawMessage) json.RawMessage {
	if !mayNeedRepair(params) {
		return params
	}
	return restore(inputSchema, params, (*restorer).values)
}

// mayNeedRepair reports whether params have a number with a point or an exponent, an empty list, or
// a string that may be JSON. Most have none of these, and need not be parsed.
func mayNeedRepair(params []byte) bool {
	for i, c := range params {
		switch {
		case i == 0:
		case (c == '.' || c|0x20 == 'e') && params[i-1]-'0' <= 9, c == ']' && params[i-1] == '[':
			return true
		case params[i-1] == '"':
			switch {
			case c == '{' || c == '[' || c == '-' || c-'0' <= 9, c == ' ', c == '\\':
				return true
			case bytes.HasPrefix(params[i:], []byte(`true"`)),
				bytes.HasPrefix(params[i:], []byte(`false"`)), bytes.HasPrefix(params[i:], []byte(`null"`)):
				return true
			}
		}
	}
	return false
}

// values repairs v and everything in it.
func (r *restorer) values(s, v *jsonx.Value) {
	if !r.spend(1) {
		return
	}
	switch v.Kind {
	case jsonx.String:
		allowed := r.kinds(s, v, 0)
		if allowed&aString != 0 {
			break
		}
		if original := r.listed(s, v, 0); original != nil {
			*v, r.changed = *original, true
		} else if registry.CheckJSON([]byte(v.Text())) == nil {
			if parsed, err := jsonx.Parse([]byte(v.Text()), registry.SchemaJSON()); err == nil &&
				kindOf(parsed)&allowed != 0 {
				*v, r.changed = *parsed, true
				r.values(s, v)
				return
			}
		}
	case jsonx.Number:
		if digits, ok := wholeNumber(v.Token); ok && digits != v.Token &&
			r.kinds(s, nil, 0)&(anInteger|aFraction) == anInteger {
			v.Token, r.changed = digits, true
		}
	case jsonx.Array:
		if len(v.Items) == 0 && r.kinds(s, nil, 0)&(anObject|anArray) == anObject {
			*v, r.changed = *jsonx.NewObject(), true
		}
	}
	r.parts(s, v, r.values)
}

// listed returns the value that a schema lists and gemini declares as the string v, or nil.
func (r *restorer) listed(s, v *jsonx.Value, depth int) *jsonx.Value {
	if s = r.enter(s, depth); s == nil {
		return nil
	}
	if enum := s.Get("enum"); enum.Is(jsonx.Array) && r.declared(enum)[v.Text()] != nil {
		return r.declared(enum)[v.Text()]
	}
	if c := s.Get("const"); c != nil && gemini.String(c) == v.Text() {
		return c
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		for _, branch := range s.Get(keyword).Elements() {
			if original := r.listed(branch, v, depth+1); original != nil {
				return original
			}
		}
	}
	return nil
}
