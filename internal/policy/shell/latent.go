package shell

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/lazy"
)

// Quoted text has no effect by itself, but the line may store it in a variable,
// and arithmetic, subscripts, declarations and ${x@P} evaluate the values of
// variables, including substitutions in them. If a line contains any of these,
// everything that its quoted texts would run is treated as run.

// quoted records a word whose quoted text would run a command if it were
// evaluated.
func (a *analysis) quoted(n *syntax.Word) {
	if lit := n.Lit(); lit != "" && !strings.ContainsAny(lit, "`$(") {
		return
	}
	w := a.word(n)
	if strings.Contains(w.text, "`") || strings.Contains(w.text, "$(") || strings.Contains(w.text, "${") ||
		strings.Contains(w.text, "<(") || strings.Contains(w.text, ">(") {
		a.latent = append(a.latent, w.text)
	}
}

// pieces records values that end in a dollar sign, because they would run a
// command if they were joined with a value that begins with a parenthesis.
func (a *analysis) pieces(values ...word) {
	for _, w := range values {
		if strings.HasSuffix(w.text, "$") {
			a.latent = append(a.latent, w.text+"(")
		}
	}
}

// variableTable contains the variables in tables.txt that a line may set.
type variableTable struct {
	harmless map[string]*regexp.Regexp // which values are harmless, by name
	local    map[string]bool
}

var variables = lazy.New(readVariables)

func readVariables() variableTable {
	v := variableTable{map[string]*regexp.Regexp{}, map[string]bool{}}
	for token := range strings.FieldsSeq(tables.Get().lines["$variables"]) {
		names, values, ok := strings.Cut(token, "=")
		if !ok {
			values = plainValue
		}
		for name := range strings.SplitSeq(names, ",") {
			v.harmless[name] = regexp.MustCompile("^(" + values + ")$")
		}
	}
	for name := range strings.FieldsSeq(tables.Get().lines["$local"]) {
		v.local[name] = true
		if v.harmless[name] == nil {
			v.harmless[name] = regexp.MustCompile("^(" + plainValue + ")$")
		}
	}
	return v
}

// plainValue matches text that programs take for neither an option nor a file in another folder nor
// several words.
const plainValue = `([A-Za-z0-9_.,:@%+][A-Za-z0-9_.,:@%+-]*)?`

// plainWord matches values of loops that remain one word, and are not an option, wherever they are
// expanded.
var plainWord = lazy.NewRegexp(`^[A-Za-z0-9_./][A-Za-z0-9_./,:@%+-]*$`)

// isHarmlessVariable reports whether no program does harm because a variable has this value.
func isHarmlessVariable(name, value string) bool {
	values := variables.Get().harmless[name]
	return values != nil && values.MatchString(value)
}

// isLocalVariable reports whether no program acts on a variable, whatever its value.
func isLocalVariable(name string) bool { return variables.Get().local[name] }

// isPlainVariable reports whether an assignment sets a variable to a value that is harmless in the
// environment of any program.
func (a *analysis) isPlainVariable(as *syntax.Assign) bool {
	if as.Name == nil || as.Naked || as.Append || as.Index != nil || as.Array != nil {
		return false
	}
	w := a.word(as.Value)
	return w.known && isHarmlessVariable(as.Name.Value, w.text)
}
