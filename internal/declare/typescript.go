package declare

import "strings"

// typescript writes one function signature per tool, for models that write
// code and for people. Names become identifiers that are no reserved words.
func typescript() Format {
	return Format{
		Name:    "typescript",
		Summary: "TypeScript signatures",
		Text:    true,
		rule:    nameRule{extra: "", letterFirst: true, max: 64, reserved: reservedWord},
		layout: func(Options) layout {
			return layout{between: "\n", empty: "// There are no tools to call.\n"}
		},
		prepare: func(e *encoder, t *tool) { e.noStrict() },
		write: func(e *encoder, t *tool) {
			e.comment("", t.def.Description)
			e.raw("declare function " + t.name + "(")
			if !t.bare {
				e.params(t.schema)
			}
			e.raw("): Promise<" + e.returned(t) + ">;\n")
		},
	}
}

// params writes the one parameter, an object; it may be left out where no
// property is required.
func (e *encoder) params(schema *node) {
	root, err := newResolver(schema).resolve(schema)
	if err != nil { // not for a schema whose root was checked
		root = schema
	}
	if p := root.get("properties"); closed(root) && (p == nil || len(p.members) == 0) {
		return
	}
	e.raw("params")
	if required := root.get("required"); required == nil || len(required.items) == 0 {
		e.raw("?")
	}
	e.raw(": ")
	w := &typeWriter{refs: newResolver(schema), out: e.out}
	w.typ(schema, "", 0)
	e.out = w.out
}

// closed reports whether an object schema allows no properties beyond those it
// names.
func closed(n *node) bool {
	further := n.get("additionalProperties")
	return further != nil && further.kind == kindFalse
}

// returned is the type of the result. It ends the life of the tool's schema.
func (e *encoder) returned(t *tool) string {
	if len(t.def.OutputSchema) == 0 {
		return "unknown"
	}
	n, err := e.extraNode(t.def.OutputSchema, false)
	if err != nil {
		return "unknown"
	}
	w := &typeWriter{refs: newResolver(n)}
	w.typ(n, "", 0)
	return string(w.out)
}

// comment writes text as a documentation comment, none where it is empty.
func (e *encoder) comment(indent, text string) {
	w := &typeWriter{out: e.out}
	w.comment(indent, text)
	e.out = w.out
}

func reservedWord(name string) bool {
	switch name {
	case "arguments", "as", "async", "await", "break", "case", "catch", "class", "const", "continue",
		"debugger", "declare", "default", "delete", "do", "else", "enum", "eval", "export", "extends",
		"false", "finally", "for", "function", "if", "implements", "import", "in", "instanceof",
		"interface", "let", "new", "null", "package", "private", "protected", "public", "return",
		"static", "super", "switch", "this", "throw", "true", "try", "type", "typeof", "undefined",
		"var", "void", "while", "with", "yield":
		return true
	}
	return false
}

// isIdentifier reports whether a property name needs no quotes.
func isIdentifier(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && s[i] != '$' && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}

// jsdoc makes text safe within a comment.
func jsdoc(line string) string { return strings.ReplaceAll(line, "*/", `*\/`) }
