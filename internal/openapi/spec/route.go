package spec

import (
	"net/url"
	"slices"
	"strings"
)

// cutRoute returns the parts of a path as written in a document: some documents distinguish
// operations of one path by a query, or by a fragment, which is not sent. A part of the query such
// as q={text} is not in query but in named, which maps each param to its name in the query.
func cutRoute(route string) (path, query string, named map[string]string) {
	route, _, _ = strings.Cut(route, "#")
	path, query, _ = strings.Cut(route, "?")
	if !strings.Contains(query, "{") {
		return path, query, nil
	}
	named = map[string]string{}
	var fixed []string
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		param, ok := strings.CutPrefix(value, "{")
		param, closed := strings.CutSuffix(param, "}")
		if !ok || !closed || strings.ContainsAny(name+param, "{}") {
			fixed = append(fixed, pair)
			continue
		}
		named[param] = name
	}
	return path, strings.Join(fixed, "&"), named
}

// checkRoute returns an error for a path that no request could have, or that would lead out of the
// server's base.
func checkRoute(n node, route string) error {
	path, query, _ := cutRoute(route)
	if !strings.HasPrefix(route, "/") {
		return n.problem("the path %.200q does not begin with /", route)
	}
	if strings.ContainsFunc(route, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) ||
		strings.ContainsAny(query, "{}") {
		return n.problem("the path %.200q has a character that no path has", route)
	}
	if hasDotSegment(path) {
		return n.problem("the path %.200q leaves the server's base", route)
	}
	return nil
}

// hasDotSegment reports whether a path has a segment . or .., in any encoding.
func hasDotSegment(p string) bool {
	for range 8 {
		if slices.ContainsFunc(strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' }),
			func(s string) bool { return s == "." || s == ".." }) {
			return true
		}
		plain, err := url.PathUnescape(p)
		if err != nil || plain == p {
			return false
		}
		p = plain
	}
	return true
}
