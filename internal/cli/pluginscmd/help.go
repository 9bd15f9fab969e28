package pluginscmd

import (
	"regexp"
	"slices"
	"strings"
	"sync"

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

// readHelp reads a help text as argparse, click, getopt and most programs print it. What
// it does not understand it leaves out.
func readHelp(help string) *scriptHelp {
	h := &scriptHelp{}
	lines := strings.Split(strings.ReplaceAll(help, "\r", ""), "\n")
	var usage []string
	inUsage := false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		rest, isUsage := cutUsage(trimmed)
		switch {
		case isUsage:
			usage, inUsage = append(usage, rest), true
		case trimmed == "":
			inUsage = inUsage && usage[0] == "" // "Usage:" on a line of its own
		case strings.HasPrefix(trimmed, "-"):
			inUsage = false
			below := ""
			if i+1 < len(lines) {
				below = lines[i+1]
			}
			h.add(readOption(line, below))
		case inUsage && line != trimmed:
			usage = append(usage, trimmed)
		case line == trimmed && !strings.HasSuffix(trimmed, ":") && h.description == "" && len(h.params) == 0:
			inUsage = false
			h.description = text.Head(trimmed, maxHelpDescription)
		default:
			inUsage = false
		}
	}
	for _, p := range readUsage(strings.Join(usage, " ")) {
		h.add(p)
	}
	return h
}

// add adds a param unless there is one of its name.
func (h *scriptHelp) add(p helpParam) {
	if p.name != "" && len(h.params) < maxHelpParams && !slices.ContainsFunc(h.params, func(have helpParam) bool { return have.name == p.name }) {
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

// readOption reads the line of an option, such as "-n N, --lines N  How many." The
// description may be on the line below.
func readOption(line, below string) (p helpParam) {
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	spec, description, found := strings.Cut(strings.ReplaceAll(line[indent:], "\t", "  "), "  ")
	if next := strings.TrimLeft(below, " \t"); !found && len(below)-len(next) > indent && !strings.HasPrefix(next, "-") {
		description = next
	}
	flag, value := "", ""
	for form := range strings.SplitSeq(spec, ", ") {
		name := strings.TrimLeft(form, "-")
		end := strings.IndexAny(name, " =[")
		if end < 0 {
			end = len(name)
		}
		if own := form[:len(form)-len(name)+end]; strings.HasPrefix(own, "--") || flag == "" {
			flag = own
		}
		if v := strings.Trim(name[end:], " =[]<>"); v != "" {
			value = v
		}
	}
	name := paramName(flag)
	if name == "" || slices.Contains([]string{"help", "version", "h", "V"}, name) {
		return p
	}
	p = helpParam{name: name, kind: "string", description: text.Head(strings.TrimSpace(description), maxHelpDescription)}
	switch {
	case value == "": // a flag is given or not
		p.values, p.arg = []string{flag}, "{{"+name+"}}"
		return p
	case strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}"):
		p.values = strings.Split(value[1:len(value)-1], ",")
	case slices.Contains([]string{"N", "NUM", "NUMBER", "INT", "INTEGER", "COUNT"}, strings.ToUpper(value)):
		p.kind = "integer"
	}
	p.arg = flag + "={{" + name + "}}"
	if !strings.HasPrefix(flag, "--") {
		p.arg = flag + "{{" + name + "}}"
	}
	return p
}

// Parts of a usage line: options in brackets, and arguments.
var (
	usageOption = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\[-[^\]]*\]+|(?i:\[(options?|flags)\.*\]|<options>)|(^|\s)-\S+(\s+[A-Z][A-Z_]*\b)?`)
	})
	usageArgument = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\[*)<?([A-Za-z][A-Za-z0-9_-]*)>?(\.\.\.)?(\]*)(\.\.\.)?$`)
	})
)

// readUsage reads the arguments in a usage line, such as "prog [options] FILE [DIR]".
func readUsage(usage string) []helpParam {
	_, usage, _ = strings.Cut(usage, " ") // the program's name
	var out []helpParam
	for word := range strings.FieldsSeq(usageOption().ReplaceAllString(usage, " ")) {
		m := usageArgument().FindStringSubmatch(word)
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
