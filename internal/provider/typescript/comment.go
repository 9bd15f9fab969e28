package typescript

import "strings"

// AppendComment writes text as an indented documentation comment. It writes nothing
// if the text is blank.
func AppendComment(dst []byte, indent, text string) []byte {
	text = strings.TrimSpace(Lines(text))
	if text == "" {
		return dst
	}
	text = strings.ReplaceAll(text, "*/", `*\/`)
	if !strings.Contains(text, "\n") {
		dst = append(dst, indent...)
		dst = append(dst, "/** "...)
		dst = append(dst, text...)
		return append(dst, " */\n"...)
	}
	dst = append(dst, indent+"/**\n"...)
	for line := range strings.SplitSeq(text, "\n") {
		dst = append(dst, strings.TrimRight(indent+" * "+line, " \t")+"\n"...)
	}
	return append(dst, indent+" */\n"...)
}

// Lines converts all kinds of line breaks to newlines and invalid bytes to
// U+FFFD.
func Lines(text string) string {
	if isPlain(text) {
		return text
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
		"\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// isPlain reports whether text is one line of printable ASCII.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] >= 0x7F {
			return false
		}
	}
	return true
}
