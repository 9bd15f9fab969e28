package markdown

import (
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/ui"
)

func ended(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// isJSON distinguishes JSON from prose that begins with a bracket.
func isJSON(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

// source makes text safe to show, expands tabs and removes trailing blanks.
func source(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	all := strings.Split(strings.Trim(ui.Visible(text), "\n"), "\n")
	for i, l := range all {
		all[i] = strings.TrimRight(expandTabs(l), " ")
	}
	return strings.Join(all, "\n") + "\n"
}

// expandTabs replaces tabs with blanks: to every fourth column in the indent of
// a line, and to every eighth after it, as a terminal does.
func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	column, stop := 0, 4
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := stop - column%stop
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		if part != "" {
			b.WriteString(part)
			column += ui.Width(part)
			stop = 8
		}
	}
	return b.String()
}

// prose reports whether the author wrapped the text, that is, every line except the
// last ends where the next word did not fit, and a line is wider than the screen.
func prose(text []string, width int) bool {
	const narrowest, widest = 60, 120
	author := 0
	for _, l := range text {
		author = max(author, ui.Width(l))
	}
	if len(text) < 2 || author <= width || author < narrowest || author > widest {
		return false
	}
	for i, l := range text[1:] {
		word, _, _ := strings.Cut(strings.TrimLeft(l, " "), " ")
		if strings.HasSuffix(text[i], `\`) || ui.Width(text[i])+1+ui.Width(word) <= author {
			return false
		}
	}
	return true
}
