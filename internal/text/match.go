package text

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// MatchName reports whether a name matches a pattern with *, ?, [...] and
// {a,b}. A malformed pattern matches only itself.
func MatchName(pattern, name string) bool {
	if pattern == name {
		return true
	}
	if !IsGlob(pattern) {
		return false
	}
	// In names of servers, a slash is an ordinary character.
	ok, err := doublestar.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(name, "/", "\x00"))
	return err == nil && ok
}

// MatchNameFold is [MatchName], but ignores what [Folded] does.
func MatchNameFold(pattern, name string) bool {
	if MatchName(strings.ToLower(pattern), strings.ToLower(name)) {
		return true
	}
	// Folding may change the number of characters, which matters to a pattern with ?.
	return !(isASCII(pattern) && isASCII(name)) && MatchName(Folded(pattern), Folded(name))
}

// IsPattern reports whether a pattern for [MatchName] is well formed.
func IsPattern(pattern string) bool { return doublestar.ValidatePattern(pattern) }

// IsGlob reports whether a name is a pattern for [MatchName].
func IsGlob(name string) bool {
	for i := range len(name) {
		switch name[i] {
		case '*', '?', '[', '{':
			return true
		}
	}
	return false
}
