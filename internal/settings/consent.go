package settings

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/trust"
)

// program is something that settings would run or reach.
type program struct {
	key    string
	origin Origin
	argv   []string // unexpanded; empty for an address
	url    string
	cwd    string   // where it runs, unexpanded, relative to the project root
	env    []string // values of the variables that the settings give it, unexpanded
}

// programs lists what a layer would run, in file order; none of a nil layer.
func (l *loader) programs(own *layer) []program {
	if own == nil {
		return nil
	}
	var out []program
	for _, e := range own.entries {
		switch {
		case e.set.typ == typeCommand:
			out = append(out, program{key: e.key, origin: e.origin, argv: toCommand(e.node, e.origin).Argv, env: own.env()})
		case e.set.name == "mcpServers":
			out = append(out, l.serverPrograms(e)...)
		case e.set.runs && e.set.typ == typeRaw:
			for _, argv := range rawCommands(e.node) {
				out = append(out, program{key: e.key, origin: e.origin, argv: argv})
			}
		case e.set.runs:
			for _, path := range stringsIn(e.node) {
				out = append(out, program{key: e.key, origin: e.origin, argv: []string{path}})
			}
		}
		out = append(out, l.referencePrograms(e)...)
	}
	return slices.DeleteFunc(out, func(p program) bool { return len(p.argv) == 0 && p.url == "" })
}

// referencePrograms lists the cmd: references anywhere in an entry.
func (l *loader) referencePrograms(e entry) []program {
	var out []program
	walk(e.key, e.node, func(key string, n *node) {
		kind, target := reference(n.text)
		if n.kind != kindString || kind != "cmd" {
			return
		}
		o := e.origin
		o.Line, o.Col = n.line, n.col
		out = append(out, program{key: key, origin: o, argv: splitAnyhow(target)})
	})
	return out
}

// splitAnyhow splits a command for showing and covering it, runnable or not.
func splitAnyhow(line string) []string {
	if argv, err := process.Split(line); err == nil {
		return argv
	}
	return strings.Fields(line)
}

// rawCommands finds the commands in a value whose form is not known here.
func rawCommands(n *node) [][]string {
	var out [][]string
	for _, item := range n.items {
		out = append(out, rawCommands(item)...)
	}
	for _, f := range n.fields {
		switch {
		case f.name == "command" && f.value.kind == kindString:
			argv := splitAnyhow(f.value.text)
			out = append(out, append(argv, stringsIn(n.get("args"))...))
		case f.name == "command" && f.value.kind == kindList:
			out = append(out, stringsIn(f.value))
		default:
			out = append(out, rawCommands(f.value)...)
		}
	}
	return out
}

// stringsIn returns the strings of a list that may not have been checked.
func stringsIn(n *node) []string {
	if n == nil {
		return nil
	}
	var out []string
	for _, item := range n.items {
		if item.kind == kindString {
			out = append(out, item.text)
		}
	}
	return out
}

// pluginTrees are the plugin folders inside the project that its settings add.
func (l *loader) pluginTrees(own *layer) []string {
	if own == nil {
		return nil
	}
	x := NewExpander(l.root, l.opts.Environ)
	var out []string
	for _, e := range own.entries {
		if e.set.name != "plugins.paths" {
			continue
		}
		for _, path := range x.allAnyhow(stringsIn(e.node)) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(l.root, path)
			}
			if rel, err := filepath.Rel(l.root, path); err == nil && filepath.IsLocal(rel) {
				out = append(out, path)
			}
		}
	}
	return out
}

// expandPrograms expands the words as far as it can, to find the files they name.
func expandPrograms(programs []program, x *Expander) []trust.Program {
	out := make([]trust.Program, 0, len(programs))
	for _, p := range programs {
		dir := x.anyhow(p.cwd)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(x.Dir, dir)
		}
		out = append(out, trust.Program{Argv: x.allAnyhow(p.argv), Dir: dir, Env: x.allAnyhow(p.env)})
	}
	return out
}

// anyhow expands a string, or returns it as it is.
func (x *Expander) anyhow(s string) string {
	if expanded, err := x.Expand(s); err == nil {
		return expanded
	}
	return s
}

func (x *Expander) allAnyhow(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = x.anyhow(s)
	}
	return out
}

// env returns the values of the layer's own top-level env.
func (l *layer) env() []string {
	for _, e := range l.entries {
		if e.set.name == "env" {
			return valuesOf(e.node)
		}
	}
	return nil
}

// valuesOf returns the strings of an object that may not have been checked.
func valuesOf(n *node) []string {
	if n == nil {
		return nil
	}
	var out []string
	for _, f := range n.fields {
		if f.value.kind == kindString {
			out = append(out, f.value.text)
		}
	}
	return out
}

// describe renders one program a line, every argument in full.
func describe(programs []program) []string {
	out := make([]string, 0, len(programs))
	for _, p := range programs {
		line := fmt.Sprintf("%s: %s:", p.origin, printableName(p.key))
		if p.url != "" {
			line += " connects to " + quoteWord(p.url)
		}
		for _, word := range p.argv {
			line += " " + quoteWord(word)
		}
		out = append(out, line)
	}
	return out
}

// quoteWord makes word borders and odd characters visible.
func quoteWord(word string) string {
	plain := strings.IndexFunc(word, func(r rune) bool {
		return r <= ' ' || r == '"' || r == '\'' || r == '\\' || !strconv.IsPrint(r)
	}) < 0
	if plain && word != "" {
		return word
	}
	return strconv.Quote(word)
}

// loosens lists the settings of a layer that allow more than the defaults, with
// secrets masked.
func (l *layer) loosens() []string {
	var out []string
	for _, e := range l.entries {
		out = append(out, loosening(e.set, e.key, e.node, e.origin)...)
	}
	return out
}

func loosening(set *setting, key string, n *node, o Origin) []string {
	line := func(n *node) string {
		return fmt.Sprintf("%s: %s = %s", o, printableName(key), show(set, n))
	}
	var out []string
	switch {
	case set.typ == typeNamed:
		for _, f := range n.fields {
			for _, member := range f.value.fields {
				o.Line, o.Col = member.line, member.col
				out = append(out, loosening(set.field(member.name), key+"."+f.name+"."+member.name, member.value, o)...)
			}
		}
	case set.loosens == nil || !set.loosens(n):
	case set.typ == typeObjects:
		for _, item := range n.items {
			if allowsSomething(&node{items: []*node{item}}) {
				o.Line, o.Col = item.line, item.col
				out = append(out, line(item))
			}
		}
	default:
		out = append(out, line(n))
	}
	return out
}

// expands lists every variable and reference that a layer's strings mention,
// whatever setting they are in.
func (l *layer) expands() []string {
	var out []string
	if l.root == nil {
		return nil
	}
	walk("", l.root, func(key string, n *node) {
		if n.kind != kindString {
			return
		}
		for _, name := range mentions(n.text) {
			out = append(out, fmt.Sprintf("%s:%d: %s: %s", l.file, n.line, printableName(key), quoteWord(name)))
		}
	})
	return out
}

// mentions lists every variable and reference that expanding a string could
// read, whatever is set and however its words are quoted.
func mentions(s string) []string {
	var out []string
	switch kind, target := reference(s); kind {
	case "env":
		return []string{target}
	case "file", "cmd":
		out = append(out, s)
		s = target
	}
	out = append(out, variablesIn(s)...)
	if words, err := process.Split(s); err == nil { // quotes can hide a name: $\A
		for _, word := range words {
			out = append(out, variablesIn(word)...)
		}
	}
	return unique(out)
}

// variablesIn finds the names behind dollar signs without expanding anything,
// so that no broken default can hide what stands behind it.
func variablesIn(s string) []string {
	var out []string
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '$':
			continue
		case strings.HasPrefix(s[i:], "$$"):
			i++
			continue
		}
		rest := strings.TrimPrefix(s[i+1:], "{")
		name := rest[:nameLength(rest)]
		if name == "" {
			continue
		}
		if strings.HasPrefix(rest[len(name):], "(x86)") {
			out = append(out, name+"(x86)")
		}
		out = append(out, name)
	}
	return out
}

// unique keeps the first of equal strings.
func unique(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// walk visits every value below n with its dotted key.
func walk(key string, n *node, visit func(key string, n *node)) {
	visit(key, n)
	for i, item := range n.items {
		walk(fmt.Sprintf("%s[%d]", key, i), item, visit)
	}
	for _, f := range n.fields {
		name := f.name
		if key != "" {
			name = key + "." + name
		}
		walk(name, f.value, visit)
	}
}
