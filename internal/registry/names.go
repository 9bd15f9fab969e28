package registry

import "strings"

// NameIn reads a name or glob of tools as it is in settings: without the blanks around it, and
// without @latest, since a name alone means the highest version.
func NameIn(text string) string {
	return strings.TrimSuffix(strings.TrimSpace(text), "@"+latest)
}

// maxName is the maximum length of a registered name, in characters.
const maxName = 63

// ValidName converts any text to a valid name, as Gemini CLI does: each UTF-16 code
// unit outside [a-zA-Z0-9_.-] becomes "_", and a name of more than 63 characters
// becomes its first 28, "___" and its last 32.
func ValidName(name string) string {
	if isValidName(name) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case isNameRune(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("__") // two UTF-16 code units
		default:
			b.WriteByte('_')
		}
	}
	s := b.String()
	if len(s) > maxName {
		s = s[:28] + "___" + s[len(s)-32:]
	}
	return s
}

func isValidName(name string) bool {
	if len(name) > maxName {
		return false
	}
	for _, r := range name {
		if !isNameRune(r) {
			return false
		}
	}
	return true
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-'
}
