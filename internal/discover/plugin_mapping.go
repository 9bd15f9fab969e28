package discover

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// mapping says how the params of a tool reach its program: as arguments and environment
// variables. One param never becomes more than one argument. The zero value passes them as
// JSON on stdin.
type mapping struct {
	args []filler // nil means JSON on stdin
	env  []variable
	root bool // the program runs in the project root, not in the plugin's folder
}

type variable struct {
	name  string
	value filler
}

// filler is a text with placeholders such as {{name}} for params.
type filler []piece

// piece is a literal text, or a placeholder if param is not empty.
type piece struct {
	literal string
	param   string
	flag    bool            // {{?name}}: nothing if the param is true; without it the text is left out
	dash    json.RawMessage // the schema of the param, which may allow a value that begins with "-"
}

// readMapping reads the fields args, env and cwd of a declaration. With an error it
// returns the field that has the mistake, as a JSON pointer.
func readMapping(o object) (m mapping, field string, err error) {
	var cwd string
	switch raw := o["cwd"]; {
	case !isPresent(raw):
	case json.Unmarshal(raw, &cwd) != nil || cwd != "project":
		return m, "/cwd", fmt.Errorf(`its cwd is not "project"`)
	default:
		m.root = true
	}
	params := maps.Collect(jsonx.Members(jsonx.Get(o["parameters"], "properties")))
	if raw := o["args"]; isPresent(raw) {
		var args []string
		if json.Unmarshal(raw, &args) != nil {
			return m, "/args", fmt.Errorf("its args are not a list of strings")
		}
		m.args = make([]filler, len(args))
		for i, arg := range args {
			if m.args[i], err = newFiller(arg, params); err != nil {
				return m, fmt.Sprintf("/args/%d", i), fmt.Errorf("its args: %s: %w", text.Quote(arg), err)
			}
		}
	}
	if raw := o["env"]; isPresent(raw) {
		if jsonx.KindOf(raw) != jsonx.Object {
			return m, "/env", fmt.Errorf("its env is not an object of strings")
		}
		for name, raw := range jsonx.Members(raw) {
			v := variable{name: name}
			value, isText := jsonx.Text(raw)
			switch {
			case !isText:
				return m, "/env/" + jsonx.EscapeToken(name), fmt.Errorf("its env: %s is not a string", text.Quote(name))
			case strings.Trim(name, variableChars) != "" || name == "" || name[0] >= '0' && name[0] <= '9':
				return m, "/env/" + jsonx.EscapeToken(name),
					fmt.Errorf("its env: %s is not a variable name", text.Quote(name))
			}
			if v.value, err = newFiller(value, params); err != nil {
				return m, "/env/" + jsonx.EscapeToken(name), fmt.Errorf("its env: %s: %w", text.Quote(value), err)
			}
			m.env = append(m.env, v)
		}
	}
	if (m.args != nil || m.env != nil || m.root) && !isPresent(o["command"]) {
		return m, "", fmt.Errorf("args, env and cwd need a command of the tool's own")
	}
	return m, "", nil
}

const variableChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

func newFiller(s string, params map[string]json.RawMessage) (filler, error) {
	f := filler{}
	for {
		before, rest, found := strings.Cut(s, "{{")
		if before != "" {
			f = append(f, piece{literal: before})
		}
		if !found {
			return f, nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		name, flag := strings.CutPrefix(strings.TrimSpace(name), "?")
		schema, known := params[name]
		switch {
		case !closed:
			return nil, fmt.Errorf(`"{{" has no "}}"`)
		case !known:
			return nil, fmt.Errorf("the tool has no parameter %s; words with braces of their own belong in command",
				text.Quote(name))
		case flag && len(f) == 0:
			return nil, fmt.Errorf("{{?%s}} needs the option before it, such as --%s{{?%s}}", name, name, name)
		case flag && string(jsonx.Get(schema, "type")) != `"boolean"`:
			return nil, fmt.Errorf("{{?%s}} needs a parameter of type boolean", name)
		}
		f = append(f, piece{param: name, flag: flag, dash: schema})
		s = after
	}
}

// fill replaces the placeholders. ok is false if a param is absent, or false
// in a placeholder such as {{?name}}.
func (f filler) fill(params object) (s string, ok bool) {
	var b strings.Builder
	for _, p := range f {
		if p.param == "" {
			b.WriteString(p.literal)
			continue
		}
		raw := params[p.param]
		if !isPresent(raw) || p.flag && string(raw) != "true" {
			return "", false
		}
		if !p.flag {
			b.WriteString(asWord(raw))
		}
	}
	return b.String(), true
}

// asWord returns a string without quotes, and any other value as JSON.
func asWord(raw json.RawMessage) string {
	if s, ok := jsonx.Text(raw); ok {
		return s
	}
	return string(raw)
}

// checkParams returns what is wrong with the params: a value that the program would take as an
// option, or that cannot be an argument.
func (m mapping) checkParams(params object) []registry.Violation {
	var out []registry.Violation
	refuse := func(param, message string) {
		v := registry.Violation{Pointer: "/" + jsonx.EscapeToken(param), Message: message}
		if !slices.ContainsFunc(out, func(have registry.Violation) bool { return have.Pointer == v.Pointer }) {
			out = append(out, v)
		}
	}
	for _, f := range m.args {
		value, ok := f.fill(params)
		if ok && strings.HasPrefix(value, "-") && f[0].param != "" && !(len(f) == 1 && allowsDash(f[0].dash)) {
			refuse(f[0].param,
				`begins with "-", which the program would take as an option; the tool's schema does not allow it by a pattern`)
		}
		m.refuseNUL(f, params, refuse)
	}
	for _, v := range m.env {
		m.refuseNUL(v.value, params, refuse)
	}
	slices.SortFunc(out, func(a, b registry.Violation) int { return strings.Compare(a.Pointer, b.Pointer) })
	return out
}

func (m mapping) refuseNUL(f filler, params object, refuse func(param, message string)) {
	for _, p := range f {
		if p.param != "" && strings.ContainsRune(asWord(params[p.param]), 0) {
			refuse(p.param, "contains a NUL character, which a program's arguments and variables cannot hold")
		}
	}
}

// allowsDash reports whether a schema restricts the values by a pattern, a list of values or
// a negative minimum. A value that begins with "-" and is valid is then intended.
func allowsDash(schema json.RawMessage) bool {
	o, _ := readObject(schema)
	var minimum float64
	return isPresent(o["pattern"]) || isPresent(o["enum"]) || isPresent(o["const"]) ||
		json.Unmarshal(o["minimum"], &minimum) == nil && minimum < 0
}

// apply returns the command line, the folder and the environment of a call.
func (m mapping) apply(argv []string, dir, root string, env []string, params object) ([]string, string, []string) {
	argv, env = slices.Clone(argv), slices.Clone(env)
	for _, f := range m.args {
		if value, ok := f.fill(params); ok {
			argv = append(argv, value)
		}
	}
	for _, v := range m.env {
		if value, ok := v.value.fill(params); ok {
			env = slices.DeleteFunc(env, func(entry string) bool {
				name, _, _ := expand.Cut(entry)
				return expand.Key(name) == expand.Key(v.name)
			})
			env = append(env, v.name+"="+value)
		}
	}
	if !m.root {
		return argv, dir, env
	}
	if strings.ContainsAny(argv[0], `/\`) && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(dir, argv[0])
	}
	return argv, root, env
}
