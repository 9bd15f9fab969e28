package args

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// Format is the inverse of [Parse]: it returns arguments that produce the params.
// ok is false if that is not possible, for example if a key contains "=".
func Format(params, inputSchema json.RawMessage) (arguments []string, ok bool) {
	root, err := jsonx.Parse(params, jsonx.Options{})
	if err != nil || !root.Is(jsonx.Object) {
		return nil, false
	}
	t := newTypes(inputSchema)
	for _, m := range root.Members {
		one := t.argument(m.Name, m.Value)
		if one == nil {
			return nil, false
		}
		arguments = append(arguments, one...)
	}
	return arguments, true
}

// argument returns the simplest arguments that [Parse] converts back to the value
// of one key, or nil if there are none.
func (t types) argument(key string, v *jsonx.Value) []string {
	spelled := []string{key + "=" + escapeAt(plain(v))}
	if v.Is(jsonx.Array) && len(v.Items) > 0 {
		spelled = nil
		for _, item := range v.Items {
			spelled = append(spelled, key+"="+escapeAt(plain(item)))
		}
	}
	for _, arguments := range [][]string{spelled, {key + ":=" + string(text.EscapeJSON(v.AppendTo(nil)))}} {
		if !slices.ContainsFunc(arguments, notCopyable) && t.parsesTo(arguments, key, v) {
			return arguments
		}
	}
	return nil
}

// notCopyable reports whether an argument cannot be part of a command line to copy: it
// would be parsed as a flag, or contains characters that a terminal does not show.
func notCopyable(argument string) bool {
	return strings.HasPrefix(argument, "-") || text.FirstInvisible([]byte(argument)) >= 0 || strings.ContainsAny(argument, "\n\t\r")
}

// parsesTo reports whether [Parse] converts the arguments to the value under a key.
func (t types) parsesTo(arguments []string, key string, v *jsonx.Value) bool {
	root := jsonx.NewObject()
	if t.parse(root, arguments, Options{}) != nil {
		return false
	}
	for _, step := range t.path(key) {
		root = root.Get(step)
	}
	return root != nil && jsonx.Canonical(root.AppendTo(nil)) == jsonx.Canonical(v.AppendTo(nil))
}

// escapeAt escapes a value that begins with @, which would otherwise name a file.
func escapeAt(value string) string {
	if strings.HasPrefix(value, "@") {
		return "@" + value
	}
	return value
}

// plain returns a value as it is written in an argument.
func plain(v *jsonx.Value) string {
	if v.Is(jsonx.String) {
		return v.Text()
	}
	return string(v.AppendTo(nil))
}
