package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Quoted text has no effect by itself. In a variable it may be run: arithmetic,
// subscripts, declarations and ${x@P} evaluate the text of a variable,
// including the substitutions in it. So if a line has one of these, what its
// quoted texts would run is treated as run.

// quoted notes a word with quoted text that would run something.
func (a *analysis) quoted(n *syntax.Word) {
	if lit := n.Lit(); lit != "" && !strings.ContainsAny(lit, "`$(") {
		return
	}
	w := a.word(n)
	if strings.Contains(w.text, "`") || strings.Contains(w.text, "$(") || strings.Contains(w.text, "${") || strings.Contains(w.text, "<(") || strings.Contains(w.text, ">(") {
		a.latent = append(a.latent, w.text)
	}
}

// pieces notes values that would run something once they are put together.
func (a *analysis) pieces(values ...*syntax.Word) {
	for _, v := range values {
		if w := a.word(v); strings.HasSuffix(w.text, "$") {
			a.latent = append(a.latent, w.text+"(")
		}
	}
}

// evaluated adds what the quoted texts of a line would run, if anything in it
// evaluates them.
func (a *analysis) evaluated() {
	deeper := *a
	deeper.depth++
	for i := 0; i < len(a.latent) && a.evaluate; i++ { // one text may contain another
		deeper.script(Bash, "cat <<TOOLREG\n"+a.latent[i]+"\nTOOLREG\n")
		if strings.Contains(a.latent[i], "<(") || strings.Contains(a.latent[i], ">(") { // in a list
			a.add(Command{Text: a.latent[i], Doubt: "its text may be run as a command", dynamic: true})
		}
	}
}
