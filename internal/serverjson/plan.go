package serverjson

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/text"
)

// Given has the values that a person gives, by the names of inputs. A value that is env:NAME,
// file:PATH, cmd:ARGV, $NAME or ${NAME} as a whole is a reference; all other text is literal.
type Given map[string][]string

// Plan is what the settings contain for a server. Its strings are in the notation of the settings:
// only the person's references in them are expanded.
type Plan struct {
	Command string
	Args    []string
	URL     string
	Type    string // http, sse; "" for a command
	Env     []Pair
	Headers []Pair
	Secrets []Secret // to be stored before the entry is written

	Missing []Input  // required values that were not given; the plan is incomplete
	Notes   []string // what the person should know
}

// Pair is a variable or a header.
type Pair struct{ Name, Value string }

// Secret is a literal secret, which is kept in a file instead of the settings.
type Secret struct{ Name, Text string }

// ValueError reports a value that does not fit its input. It never has the value of a secret.
type ValueError struct {
	Name   string
	Reason string
}

func (e *ValueError) Error() string { return fmt.Sprintf("%s: %s", text.Quote(e.Name), e.Reason) }

// Options are what [Way.Plan] needs to know about the system.
type Options struct {
	// Has reports whether a program is installed.
	Has func(program string) bool
	// Keep returns the reference to the file in which a secret will be kept.
	Keep func(name string) string
}

type builder struct {
	*Plan
	given  Given
	opts   Options
	inputs []Input
	within string // folder of the bundle; "" if it is not a bundle
}

// checkGiven reports given values that do not fit, and missing ones.
func (b *builder) checkGiven() error {
	for name, values := range b.given {
		i := slices.IndexFunc(b.inputs, func(in Input) bool { return in.Name == name })
		if i < 0 {
			known := []string{}
			for _, in := range b.inputs {
				known = append(known, in.Name)
			}
			reason := "the server takes no values"
			if len(known) > 0 {
				reason = "the server has no such value; it has " + strings.Join(known, ", ")
			}
			return &ValueError{name, reason}
		}
		in := b.inputs[i]
		if len(values) > 1 && !in.Repeated {
			return &ValueError{name, "it is given more than once"}
		}
		for _, value := range values {
			if err := in.Check(value); err != nil {
				return err
			}
		}
	}
	for _, in := range b.inputs {
		if _, ok := b.given[in.Name]; !ok && in.Required && in.Default == "" {
			b.Missing = append(b.Missing, in)
		}
	}
	return nil
}

// Check returns a [*ValueError] if a value does not fit the input.
func (in Input) Check(value string) error {
	wrong := func(reason string) error { return &ValueError{in.Name, reason} }
	kind, _ := reference(value)
	switch {
	case strings.ContainsAny(value, "\x00\r\n"):
		return wrong("it contains a line break or a NUL")
	case in.Argument && (kind == "file" || kind == "cmd"):
		return wrong("on a command line or in an address, only env:NAME can be a reference")
	case in.Argument && in.Secret && kind == "" && value != "":
		return wrong("a secret on a command line or in an address must be a reference, as in env:NAME, because the settings would contain it")
	case kind != "" || value == "":
		return nil
	case len(in.Choices) > 0 && !slices.Contains(in.Choices, value):
		return wrong("it must be one of " + strings.Join(in.Choices, ", "))
	case in.Format == "number":
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
			return wrong("it must be a number")
		case in.Min != nil && n < *in.Min:
			return wrong(fmt.Sprintf("it must be at least %v", *in.Min))
		case in.Max != nil && n > *in.Max:
			return wrong(fmt.Sprintf("it must be at most %v", *in.Max))
		}
	case in.Format == "boolean" && value != "true" && value != "false":
		return wrong("it must be true or false")
	}
	return nil
}

// reference returns the kind of the reference that a value is as a whole: env, file, cmd, or
// variable; "" if the value is literal.
func reference(value string) (kind, target string) {
	if kind, target = secret.Reference(value); kind != "" {
		return kind, target
	}
	if expand.IsVariable(value) {
		return "variable", value
	}
	return "", ""
}

// IsReference reports whether a value that a person gives is a reference.
func IsReference(value string) bool {
	kind, _ := reference(value)
	return kind != ""
}

// Literal returns the notation of the settings for literal text.
func Literal(s string) string {
	s = strings.ReplaceAll(s, "$", "$$")
	if kind, _ := secret.Reference(s); kind != "" {
		return "${}" + s
	}
	return s
}

// Notation returns the notation of the settings for a value that a person has given.
func Notation(value string) string {
	if kind, _ := reference(value); kind != "" {
		return value
	}
	return Literal(value)
}

// Denote is the inverse of [Notation].
func Denote(notation string) string {
	if kind, _ := reference(notation); kind != "" {
		return notation
	}
	value, err := expand.Text(notation, nil)
	if err != nil {
		return notation
	}
	return value
}

// part is a part of a value: literal text or a reference.
type part struct {
	text   string
	isRef  bool
	secret bool
}

// values returns the values of a piece, each as its parts; none if it is left out. A piece that can
// be repeated may have several.
func (b *builder) values(p piece) [][]part {
	if p.value.Value == "" {
		return b.inputValues(p.name, p.value)
	}
	times := 1
	names := placeholders(p.value.Value)
	for _, name := range names {
		if v, ok := p.value.Variables[name]; ok && p.arg != nil && p.arg.IsRepeated {
			times = max(times, len(b.inputValues(name, v)))
		}
	}
	var out [][]part
next:
	for i := range times {
		var parts []part
		for _, s := range splitTemplate(p.value.Value) {
			v, isInput := p.value.Variables[s.text]
			switch {
			case !s.isName:
				parts = append(parts, part{text: s.text})
			case !isInput: // braces of another notation
				parts = append(parts, part{text: "{" + s.text + "}"})
			case v.Value != "":
				parts = append(parts, part{text: v.Value})
			default:
				all := b.inputValues(s.text, v)
				if len(all) == 0 {
					continue next
				}
				of := all[min(i, len(all)-1)]
				for j := range of {
					of[j].secret = of[j].secret || p.value.Secret
				}
				parts = append(parts, of...)
			}
		}
		out = append(out, parts)
	}
	return out
}

// inputValues returns the given values of an input, or its default.
func (b *builder) inputValues(name string, v Value) [][]part {
	values, ok := b.given[name]
	if !ok {
		if v.Default == "" {
			return nil
		}
		defaults := v.Defaults
		if defaults == nil {
			defaults = []string{v.Default}
		}
		var out [][]part
		for _, text := range defaults {
			out = append(out, []part{{text: text}}) // published, so not a secret
		}
		return out
	}
	var out [][]part
	for _, value := range values {
		kind, _ := reference(value)
		out = append(out, []part{{text: value, isRef: kind != "", secret: v.Secret}})
	}
	return out
}

// pairValue returns the value of a variable or a header in the notation of the settings; false if it
// is empty.
func (b *builder) pairValue(p piece, parts []part) (value string, ok bool, err error) {
	if len(parts) == 1 && parts[0].isRef {
		return parts[0].text, true, nil
	}
	if joined := joinParts(parts); joined == "" {
		return "", false, nil
	} else if !slices.ContainsFunc(parts, func(t part) bool { return t.isRef }) &&
		slices.ContainsFunc(parts, func(t part) bool { return t.secret && t.text != "" }) {
		b.Secrets = append(b.Secrets, Secret{p.name, joined})
		return b.opts.Keep(p.name), true, nil
	}
	value, err = b.notation(p, parts)
	if err == nil && len(parts) > 0 && !parts[0].isRef {
		if kind, _ := secret.Reference(value); kind != "" {
			value = "${}" + value
		}
	}
	return value, true, err
}

func joinParts(parts []part) string {
	var b strings.Builder
	for _, t := range parts {
		b.WriteString(t.text)
	}
	return b.String()
}

// notation returns parts in the notation of the settings for text in which only variables
// are replaced.
func (b *builder) notation(p piece, parts []part) (string, error) {
	var out strings.Builder
	for _, t := range parts {
		kind, target := reference(t.text)
		switch {
		case !t.isRef && t.secret && t.text != "":
			return "", &ValueError{p.name, "a secret beside a reference must be a reference too, as in env:NAME"}
		case !t.isRef:
			out.WriteString(strings.ReplaceAll(t.text, "$", "$$"))
		case kind == "env":
			out.WriteString("${" + target + "}")
		case kind == "variable":
			out.WriteString(t.text)
		default:
			return "", &ValueError{p.name, "within other text only env:NAME can be a reference"}
		}
	}
	return out.String(), nil
}

// pairs returns the variables or headers of a way.
func (b *builder) pairs(list []piece) ([]Pair, error) {
	var out []Pair
	for _, p := range list {
		all := b.values(p)
		if len(all) == 0 {
			continue
		}
		value, ok, err := b.pairValue(p, all[0])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if slices.ContainsFunc(out, func(have Pair) bool { return strings.EqualFold(have.Name, p.name) }) {
			return nil, Refuse("", "%s occurs twice", text.Escape(p.label))
		}
		out = append(out, Pair{p.name, value})
	}
	return out, nil
}

// checkVariable refuses an invalid name of a variable, and a value for a variable that steers the
// program which runs the package: with it a publisher could choose other code than what is shown. A
// description may only name such a variable, for the person to set it.
func (b *builder) checkVariable(p piece) error {
	if p.name == "" || strings.ContainsAny(p.name, "=\x00") || !isPlain(p.name) {
		return Refuse("", "%s is not the name of a variable", text.Quote(p.name))
	}
	if !expand.Steers(p.name) {
		return nil
	}
	v := p.value
	switch {
	case v.Value == "" && v.Default == "" && len(v.Choices) == 0 && !p.isOption:
		if len(b.given[p.name]) > 0 {
			b.Notes = append(b.Notes,
				"the variable "+text.Escape(p.name)+" changes what the program that runs it loads, runs or trusts")
		}
		return nil
	case b.within != "" && len(v.Variables) == 0 &&
		slices.Contains(expand.CodeFolders(), strings.ToUpper(p.name)) && isWithin(v.Value, b.within):
		return nil // code of the bundle itself
	}
	return Refuse("if you want it, add the server with toolreg servers add NAME -- COMMAND",
		"it sets %s, which changes what the program that runs it loads, runs or trusts", p.name)
}

func isWithin(list, folder string) bool {
	return !slices.ContainsFunc(filepath.SplitList(list), func(dir string) bool {
		rel, err := filepath.Rel(folder, dir)
		return err != nil || !filepath.IsLocal(rel)
	})
}

// checkHeader refuses an invalid name of a header, or one that belongs to the protocol.
func checkHeader(p piece) error {
	lower := strings.ToLower(p.name)
	if !httpguts.ValidHeaderFieldName(p.name) {
		return Refuse("", "%s is not the name of a header", text.Quote(p.name))
	}
	if slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection", "content-type", "accept"},
		lower) || strings.HasPrefix(lower, "mcp-") {
		return Refuse("", "it sets the header %s, which belongs to the protocol", p.name)
	}
	return nil
}

func matches(expression, s string) bool { return regexp.MustCompile(expression).MatchString(s) }
