package jsonx

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Canonical returns JSON with sorted keys, of each the last value, and no white
// space; numbers keep their text. Of what is no JSON the first value counts;
// where there is none, the text comes back as it is. Two texts mean the same if
// and, but for the spelling of numbers, only if their canonical forms are equal.
//
// It gives what decoding and encoding would, at a fraction of the cost: a
// listing has it of every schema.
func Canonical(raw json.RawMessage) string {
	v, err := Parse(raw, Options{})
	if err != nil {
		var first json.RawMessage
		if json.NewDecoder(bytes.NewReader(raw)).Decode(&first) != nil {
			return string(raw)
		}
		if v, err = Parse(first, Options{}); err != nil {
			return string(raw)
		}
	}
	v.canonize()
	return string(v.AppendTo(make([]byte, 0, len(raw))))
}

func (v *Value) canonize() {
	if v.Kind == String {
		v.Token = canonicalString(v.Token)
	}
	for i := range v.Members {
		v.Members[i].Token = canonicalString(v.Members[i].Token)
		v.Members[i].Value.canonize()
	}
	slices.SortFunc(v.Members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for _, item := range v.Items {
		item.canonize()
	}
}

// canonicalString returns the JSON text of a string as [Marshal] writes it.
func canonicalString(token string) string {
	for i := range len(token) {
		if c := token[i]; c == '\\' || c >= utf8.RuneSelf {
			return Quote(unquote(token))
		}
	}
	return token
}
