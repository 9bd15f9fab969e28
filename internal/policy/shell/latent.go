package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
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

// evaluated adds the commands that the quoted texts of a line would run, if
// anything in the line evaluates them.
func (a *analysis) evaluated() {
	deeper := *a
	deeper.depth++
	for i := 0; i < len(a.latent) && a.evaluate; i++ { // one text may contain another
		deeper.script(Bash, "cat <<TOOLREG\n"+a.latent[i]+"\nTOOLREG\n")
		if strings.Contains(a.latent[i], "<(") || strings.Contains(a.latent[i], ">(") { // expanded if the text becomes a list, but not in a here-document
			a.add(Command{Text: a.latent[i], Doubt: "its text may be run as a command", dynamic: true})
		}
	}
}
