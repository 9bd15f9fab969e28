package typescript

// Reserved reports whether a word cannot be the name of a function.
func Reserved(name string) bool {
	switch name {
	case "arguments", "as", "async", "await", "break", "case", "catch", "class", "const", "continue",
		"debugger", "declare", "default", "delete", "do", "else", "enum", "eval", "export", "extends",
		"false", "finally", "for", "function", "if", "implements", "import", "in", "instanceof",
		"interface", "let", "new", "null", "package", "private", "protected", "public", "return",
		"static", "super", "switch", "this", "throw", "true", "try", "type", "typeof", "undefined",
		"var", "void", "while", "with", "yield":
		return true
	}
	return false
}

// isIdentifier reports whether a property name needs no quotes.
func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
