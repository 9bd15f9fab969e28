// Package secret recognizes names and words that indicate secrets, and masks
// the secrets: in displayed settings, in the log of calls, in messages of
// servers. It catches mistakes but is no guarantee: a secret without any
// indication is not masked.
//
// [Named] decides which names indicate secrets. [MaskKnown] is for free text, [Args]
// for the words of a command, [Value] for decoded JSON, and [NewReplacer] for secrets
// whose values are known. What of the settings is secret is decided by the rows of package
// table, which use [Text], [Line], [Word], [Source] and [Telling].
package secret

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Masked is the text that replaces a secret.
const Masked = "***"

// Named reports whether the name of a variable, a header, an option, a param or
// a key indicates a secret, such as DB_PASS, X-Api-Key, --passphrase or
// clientSecret.
func Named(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i := range words {
		words[i] = strings.TrimRight(strings.ToLower(words[i]), "0123456789") // PASS2 and PASS_2, as PASS
	}
	joined := strings.Join(words, "")
	return slices.ContainsFunc(unmistakable(), func(word string) bool { return strings.Contains(joined, word) }) ||
		slices.ContainsFunc([]string{"key", "pass", "pwd", "cookie"},
			func(end string) bool { return strings.HasSuffix(joined, end) }) ||
		slices.ContainsFunc(words, isShortWord)
}

// unmistakable returns words that indicate a secret anywhere in a name.
func unmistakable() []string {
	return []string{"token", "secret", "password", "passwd",
		"passphrase", "passcode", "apikey", "accesskey", "privatekey",
		"credential", "authorization", "signature"}
}

// isShortWord reports whether a word of a name indicates a secret, although it may be
// part of a harmless longer word.
func isShortWord(word string) bool {
	switch word {
	case "key", "pass", "pwd", "pw", "auth", "bearer", "sig", "pat":
		return true
	}
	return false
}

// Telling reports whether a value is masked wherever it appears, and not only in its own place: its
// name indicates a secret, or it is a word with letters and digits that does not look like a common
// setting. Masking "debug" or "application/json" everywhere would make logs and recordings wrong.
func Telling(name, value string) bool {
	if scheme, token, ok := strings.Cut(value, " "); ok && scheme != "" {
		value = token
	}
	const shortest = 12
	return Named(name) || len(value) >= shortest && !strings.ContainsAny(value, " /\\:;,") &&
		strings.ContainsAny(value, "0123456789") && strings.ContainsFunc(value, unicode.IsLetter)
}

// tokenBody is the minimum length of a token without its prefix.
const tokenBody = 12

// token reports whether a word begins like the tokens of known services.
func token(word string) bool {
	prefixes := []string{"ghp_", "gho_", "ghs_", "ghu_", "ghr_",
		"github_pat_", "glpat-", "sk-", "sk_live_", "sk_test_", "rk_live_",
		"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-", "AKIA", "ASIA",
		"AIza", "ya29.", "npm_", "pypi-", "hf_", "dop_v1_", "SG.", "eyJ"}
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(word, p) && len(word) >= len(p)+tokenBody })
}
