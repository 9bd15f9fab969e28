package pluginscmd

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/text"
)

// scriptHelp is what a script's --help says about it.
type scriptHelp struct {
	description string
	params      []helpParam
}

// helpParam is an option or an argument of a script.
type helpParam struct {
	name        string
	kind        string // type in JSON Schema
	values      []string
	description string
	arg         string // with a placeholder for the value
	required    bool
}

// Limits on what is taken from a help text.
const (
	maxHelpParams      = 64
	maxHelpDescription = 400
)

// readHelp reads a help text as argparse, click, cobra, clap, getopt and most programs print it. It
// skips what it does not understand.
func readHelp(help string) *scriptHelp {
	h := &scriptHelp{}
	lines := strings.Split(strings.ReplaceAll(help, "\r", ""), "\n")
	described := map[string]entry{} // arguments by the name of their param
	var usage, about []string
	inUsage, inAbout, section := false, false, ""
	for i := 0; i < len(lines); i++ {
		trimmed := strings.TrimSpace(lines[i])
		rest, isUsage := cutUsage(trimmed)
		indented := indentOf(lines[i]) > 0
		switch {
		case isUsage:
			inUsage, inAbout = usage == nil, false
			if inUsage && rest != "" {
				usage = []string{rest}
			}
		case trimmed == "":
			inUsage = inUsage && usage == nil // "Usage:" on a line of its own
			inAbout = inAbout && about == nil
		case inUsage && usage == nil: // other forms may be on the lines below
			usage, inUsage = []string{trimmed}, strings.HasSuffix(trimmed, "\\")
		case option.Get().MatchString(trimmed):
			inUsage, inAbout = false, false
			var e entry
			e, i = readEntry(lines, i)
			for _, p := range readOption(e) {
				h.addParam(p)
			}
		case inUsage && indented:
			usage = append(usage, trimmed)
		case !indented && strings.HasSuffix(trimmed, ":"):
			inUsage, inAbout, section = false, false, strings.ToLower(strings.TrimSuffix(trimmed, ":"))
		case section == "positional arguments" || section == "arguments" || section == "args":
			var e entry
			e, i = readEntry(lines, i)
			if m := usageArgument.Get().FindStringSubmatch(e.spec); m != nil {
				described[paramName(m[2])] = e
			}
		case section == "" && !strings.HasPrefix(trimmed, "-") && (inAbout || about == nil):
			about, inUsage, inAbout = append(about, trimmed), false, true
		default:
			inUsage, inAbout = false, false
		}
		if trimmed == "" {
			inAbout = false
		}
	}
	h.description = text.Head(strings.Join(about, " "), maxHelpDescription)
	for _, p := range readUsage(strings.Join(usage, " ")) {
		if e, ok := described[p.name]; ok {
			p.describe(e.description)
		}
		h.addParam(p)
	}
	return h
}

// entry is an option or argument in a list of them, and its description.
type entry struct{ spec, description string }

// readEntry reads the entry that begins in a line, with the lines below that are indented
// further, and returns the index of its last line.
func readEntry(lines []string, i int) (e entry, last int) {
	indent := indentOf(lines[i])
	spec, description, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(lines[i]), "\t", "  "), "  ")
	words := strings.Fields(description)
	last = i
	for next := i + 1; next < len(lines); next++ {
		trimmed := strings.TrimSpace(lines[next])
		if trimmed == "" {
			continue
		}
		deeper := indentOf(lines[next]) - indent
		if deeper < 3 || next > last+1 && deeper < 6 || option.Get().MatchString(trimmed) {
			break
		}
		words, last = append(words, strings.Fields(trimmed)...), next
	}
	return entry{spec, strings.Join(words, " ")}, last
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// addParam adds a param unless there is one of its name.
func (h *scriptHelp) addParam(p helpParam) {
	if p.name != "" && len(h.params) < maxHelpParams &&
		!slices.ContainsFunc(h.params, func(have helpParam) bool { return have.name == p.name }) {
		h.params = append(h.params, p)
	}
}

func cutUsage(line string) (rest string, ok bool) {
	const usage = "usage:"
	if len(line) < len(usage) || !strings.EqualFold(line[:len(usage)], usage) {
		return "", false
	}
	return strings.TrimSpace(line[len(usage):]), true
}

// readOption reads an option, such as "-n N, --lines N". With "--color / --no-color" there
// are two.
func readOption(e entry) []helpParam {
	spec, negative, _ := strings.Cut(e.spec, " / ")
	flag, value := "", ""
	for form := range strings.SplitSeq(spec, ", ") {
		name := strings.TrimLeft(form, "-")
		end := strings.IndexAny(name, " =[<.")
		if end < 0 {
			end = len(name)
		}
		if own := form[:len(form)-len(name)+end]; strings.HasPrefix(own, "--") || flag == "" {
			flag = own
		}
		if v := strings.Trim(name[end:], " =[]<>."); v != "" {
			value = v
		}
	}
	name := paramName(flag)
	if name == "" || slices.Contains([]string{"help", "version", "h", "V"}, name) {
		return nil
	}
	p := helpParam{name: name}
	p.kind, p.values = typeOf(value)
	p.arg = flag + "={{" + name + "}}"
	if !strings.HasPrefix(flag, "--") {
		p.arg = flag + "{{" + name + "}}"
	}
	if value == "" { // given or not
		p.kind, p.arg = "boolean", flag+"{{?"+name+"}}"
	}
	p.describe(e.description)
	if negative = strings.TrimSpace(negative); option.Get().MatchString(negative) {
		return append([]helpParam{p}, readOption(entry{negative, "The opposite of " + flag + "."})...)
	}
	return []helpParam{p}
}

// isInteger reports whether a placeholder, in lower case, stands for a whole number.
func isInteger(placeholder string) bool {
	return slices.Contains([]string{
		"n", "num", "number", "int", "integer", "count",
		"int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64",
	}, placeholder)
}

// typeOf returns the type and the values that the placeholder of an option or argument
// stands for.
func typeOf(placeholder string) (kind string, values []string) {
	inBraces, isChoice := strings.CutPrefix(placeholder, "{")
	switch lower := strings.ToLower(strings.TrimSuffix(placeholder, " RANGE")); {
	case isChoice && strings.HasSuffix(inBraces, "}"):
		return "string", strings.Split(strings.TrimSuffix(inBraces, "}"), ",")
	case strings.Contains(placeholder, "|") && !strings.ContainsAny(placeholder, " <>["):
		return "string", strings.Split(placeholder, "|")
	case isInteger(lower):
		return "integer", nil
	case slices.Contains([]string{"float", "float32", "float64"}, lower):
		return "number", nil
	case lower == "bool" || lower == "boolean":
		return "boolean", nil
	}
	return "string", nil
}

// describe sets the description, and finds the allowed values in it.
func (p *helpParam) describe(description string) {
	if m := possibleValues.Get().FindStringSubmatch(description); m != nil && len(p.values) == 0 {
		for value := range strings.SplitSeq(m[1], ",") {
			p.values = append(p.values, strings.Trim(value, ` "`))
		}
		description = strings.Replace(description, m[0], "", 1)
	}
	if before, after, found := strings.Cut(description, "[required]"); found {
		p.required, description = true, before+after
	}
	p.description = text.Head(strings.TrimSpace(description), maxHelpDescription)
}

// Parts of a list of options.
var (
	option         = lazy.NewRegexp(`^--?[A-Za-z0-9?]`)
	possibleValues = lazy.NewRegexp(`[\[(](?:possible values|choices): ([^\])]+)[\])]`)
)

// Parts of a usage line: options in brackets, and arguments.
var (
	usageOption   = lazy.NewRegexp(`\[-[^\]]*\]+|(?i:\[(options?|flags)\.*\]|<options>)|(^|\s)-\S+(\s+[A-Z][A-Z_]*\b)?`)
	usageArgument = lazy.NewRegexp(`^(\[*)<?([A-Za-z][A-Za-z0-9_-]*)>?(\.\.\.)?(\]*)(\.\.\.)?$`)
	usageChoice   = lazy.NewRegexp(`^(\[?)(\{[^{}]+\})\]?$`)
)

// readUsage reads the arguments in a usage line, such as "prog [options] FILE [DIR]".
func readUsage(usage string) []helpParam {
	_, usage, _ = strings.Cut(usage, " ") // the program's name
	var out []helpParam
	for word := range strings.FieldsSeq(usageOption.Get().ReplaceAllString(usage, " ")) {
		if m := usageChoice.Get().FindStringSubmatch(word); m != nil {
			_, values := typeOf(m[2])
			out = append(out, helpParam{
				name:     "choice",
				kind:     "string",
				values:   values,
				arg:      "{{choice}}",
				required: m[1] == "",
			})
			continue
		}
		m := usageArgument.Get().FindStringSubmatch(word)
		if m == nil {
			continue
		}
		if name := paramName(m[2]); name != "" {
			out = append(out, helpParam{name: name, kind: "string", arg: "{{" + name + "}}", required: m[1] == ""})
		}
	}
	return out
}

// paramName returns the name of the param for an option or argument; "" if it has no
// letters.
func paramName(word string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(word, "-"), "-", "_"))
}
