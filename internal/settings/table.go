package settings

import "strings"

// valueType is what a setting takes.
type valueType int

const (
	typeString   valueType = iota
	typeBool               // true or false
	typeInt                // a whole number, 0 or more
	typeDuration           // whole milliseconds, or a string such as "30s"
	typeSize               // whole bytes, or a string such as "10MiB"
	typeChoice             // one of setting.choices
	typeCommand            // a string that is split into words, or a list of words
	typeStrings            // a list of strings
	typePairs              // an object of strings: env, headers
	typeObject             // an object with setting.fields
	typeNamed              // an object of names, each with an object of setting.fields
	typeObjects            // a list of objects with setting.fields
	typeRaw                // anything; the feature it belongs to checks it
	typeRawNamed           // an object of names, each with anything
)

// isScalar reports whether a variable or a flag can carry a value of the type.
func (t valueType) isScalar() bool { return t <= typeCommand }

// mergeRule is what a later place does to the value of an earlier one.
type mergeRule int

const (
	mergeReplace mergeRule = iota // the later value stands
	mergeUnite                    // exclusion and deny lists, and hooks: the values of all places count
	mergeByName                   // the later entry of one name stands
)

// setting is one row of the table of settings, or one field of an object. From
// the table come the reader, the check for unknown keys, the merging, the
// variables, the JSON Schema and the documentation.
type setting struct {
	name     string // dotted; a field's own name
	twin     string // the other spelling, dotted
	typ      valueType
	merge    mergeRule
	doc      string
	def      string // default as JSON; "" = none
	choices  []string
	fields   []setting
	required bool
	secret   bool // values are masked wherever they are shown
	runs     bool // commands inside a raw value run: the trust prompt shows them
	loosens  func(*node) bool
	foreign  bool // of the Gemini CLI, without meaning here
}

// variable returns the name of the setting's environment twin; "" if it cannot
// have one.
func (s *setting) variable() string {
	if !s.typ.isScalar() || s.foreign {
		return ""
	}
	out := append(make([]byte, 0, 40), "TOOLREG_"...)
	for i := range len(s.name) { // names of the table are ASCII
		c := s.name[i]
		switch {
		case c == '.':
			c = '_'
		case c >= 'A' && c <= 'Z':
			out = append(out, '_')
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// index finds settings by name or twin and knows the groups their dots make.
type index struct {
	rows   []setting
	byName map[string]*setting
	groups map[string]bool
}

func newIndex(rows []setting) *index {
	x := &index{rows: rows, byName: make(map[string]*setting, 2*len(rows)), groups: map[string]bool{}}
	for i := range rows {
		s := &rows[i]
		for _, name := range []string{s.name, s.twin} {
			if name == "" {
				continue
			}
			x.byName[name] = s
			for j, r := range name {
				if r == '.' {
					x.groups[name[:j]] = true
				}
			}
		}
	}
	return x
}

// names lists what may stand below a group ("" = at the top), for "did you mean".
func (x *index) names(group string) []string {
	var out []string
	for name, s := range x.byName {
		if rest, ok := below(name, group); ok && !s.foreign {
			first, _, _ := strings.Cut(rest, ".")
			out = append(out, first)
		}
	}
	return out
}

func below(name, group string) (string, bool) {
	if group == "" {
		return name, true
	}
	return strings.CutPrefix(name, group+".")
}

// Loosening tests. A row without one never loosens anything.

func always(*node) bool { return true }

func whenTrue(n *node) bool { return n.kind == kindBool && n.bool }

func whenFalse(n *node) bool { return n.kind == kindBool && !n.bool }

func whenFilled(n *node) bool { return len(n.items)+len(n.fields) > 0 || n.text != "" }

func whenText(text string) func(*node) bool {
	return func(n *node) bool { return n.text == text }
}

func whenNot(text string) func(*node) bool {
	return func(n *node) bool { return n.text != text }
}

// whenLonger is true for a duration beyond the default, and for none at all.
func whenLonger(def string) func(*node) bool {
	limit, _ := parseDuration(&node{kind: kindString, text: def})
	return func(n *node) bool {
		d, err := parseDuration(n)
		return err == nil && (d == 0 || d > limit)
	}
}

// passesOn is true for variables whose values come from our environment, from
// files or from commands.
func passesOn(n *node) bool {
	for _, f := range n.fields {
		if strings.Contains(f.value.text, "$") || isReference(f.value.text) {
			return true
		}
	}
	return false
}
