package accesstoken

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// maxName is the maximum length of the name of a caller or a group, in bytes.
const maxName = 256

// find returns the claim of a name or, if there is none, the nested one whose names have dots
// between them; nil if there is none of both.
func find(claims *jsonx.Value, name string) *jsonx.Value {
	if !claims.Is(jsonx.Object) {
		return nil
	}
	if v := claims.Get(name); v != nil {
		return v
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if v := find(claims.Get(name[:i]), name[i+1:]); v != nil {
			return v
		}
	}
	return nil
}

// name returns the name of the caller.
func (v *Verifier) name(claims *jsonx.Value) (string, error) {
	is := find(claims, v.config.Name)
	if !is.Is(jsonx.String) || !isName(is.Text()) {
		return "", invalid("the claim %s of the token is not a name", v.config.Name)
	}
	return is.Text(), nil
}

// groups returns the groups of the caller: a list, or one. A claim that is elsewhere (OpenID
// Connect Core 1.0 section 5.6.2) is an error, because rules may deny by group.
func (v *Verifier) groups(claims *jsonx.Value) ([]string, error) {
	is := find(claims, v.config.Groups)
	if is == nil || is.Is(jsonx.Null) {
		if isElsewhere(claims, v.config.Groups) {
			return nil, invalid("the token does not have the claim %s itself, but says where it is", v.config.Groups)
		}
		return nil, nil
	}
	groups, err := texts(is)
	if err != nil {
		return nil, invalid("the claim %s of the token is neither a list of names nor a name", v.config.Groups)
	}
	for _, group := range groups {
		if !isName(group) {
			return nil, invalid("the claim %s of the token has a group that is not a name", v.config.Groups)
		}
	}
	return groups, nil
}

// isElsewhere reports whether an object of claims says of a claim, or of one that contains it, that it
// is elsewhere. Claims within others may have been distributed, too.
func isElsewhere(claims *jsonx.Value, name string) bool {
	if !claims.Is(jsonx.Object) {
		return false
	}
	names := claims.Get("_claim_names")
	if names.Get(name) != nil {
		return true
	}
	for i := range len(name) {
		if name[i] == '.' && (names.Get(name[:i]) != nil || isElsewhere(claims.Get(name[:i]), name[i+1:])) {
			return true
		}
	}
	return false
}

// isName reports whether a text can be shown and stored as a name. Characters that JSON could not
// decode are none, because different names would become one.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
}

// scopes returns the scopes of a token: the claim scope (RFC 9068 section 2.2.3), or scp, in which
// Entra ID and Okta have them.
func scopes(claims *jsonx.Value) ([]string, error) {
	is := claims.Get("scope")
	if is == nil {
		is = claims.Get("scp")
	}
	if is == nil {
		return nil, nil
	}
	list, err := texts(is)
	if err != nil {
		return nil, invalid("the scopes of the token are not text")
	}
	if is.Is(jsonx.String) {
		return strings.Fields(is.Text()), nil
	}
	return list, nil
}

// texts returns a list of strings, or the one string.
func texts(v *jsonx.Value) ([]string, error) {
	if v.Is(jsonx.String) {
		return []string{v.Text()}, nil
	}
	if !v.Is(jsonx.Array) {
		return nil, errNoTexts
	}
	for _, item := range v.Items {
		if !item.Is(jsonx.String) {
			return nil, errNoTexts
		}
	}
	return v.Strings(), nil
}

var errNoTexts = errors.New("not a string or a list of strings")

// date reads a NumericDate (RFC 7519 section 2).
func date(v *jsonx.Value) (time.Time, bool) {
	const last = 253402300799 // of the year 9999
	if !v.Is(jsonx.Number) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseFloat(v.Token, 64)
	if err != nil || seconds < 0 || seconds > last {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
