package glob

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// Pattern is a glob over paths relative to a folder, with braces. Without a
// slash it matches in every subfolder. A class such as [id] also matches its own text.
type Pattern struct {
	globs []*Glob
	fold  bool // ignore case
}

// CompilePattern compiles a pattern. If fold is set, case is ignored. The error
// describes what is wrong with the pattern.
func CompilePattern(pattern string, fold bool) (*Pattern, error) {
	alternatives, err := expandBraces(filepath.ToSlash(pattern))
	if err != nil {
		return nil, err
	}
	p := &Pattern{fold: fold}
	for _, alt := range alternatives {
		alt = p.folded(alt)
		if !strings.Contains(alt, "/") {
			alt = "**/" + alt
		}
		parts := slices.DeleteFunc(strings.Split(alt, "/"), func(part string) bool { return part == "" || part == "." })
		if slices.Contains(parts, "..") {
			return nil, fmt.Errorf("pattern %s leads outside through \"..\"", text.Quote(pattern))
		}
		g, ok := compile(strings.Join(parts, "/"), true)
		if !ok {
			return nil, fmt.Errorf(
				"pattern %s ends inside [ or after \\; close the bracket, or write \\[ for the character",
				text.Quote(pattern))
		}
		p.globs = append(p.globs, g)
	}
	return p, nil
}

// folded returns the form of a pattern or path that is compared: composed, because file
// systems keep names either way.
func (p *Pattern) folded(s string) string {
	s = text.Composed(s)
	if p.fold {
		return strings.ToLower(s)
	}
	return s
}

// Match reports whether the path matches.
func (p *Pattern) Match(path string) bool {
	path = p.folded(path)
	return slices.ContainsFunc(p.globs, func(g *Glob) bool { return g.Match(path) })
}

// MayContain reports whether something below the folder may match.
func (p *Pattern) MayContain(folder string) bool {
	folder = p.folded(folder)
	return slices.ContainsFunc(p.globs, func(g *Glob) bool { return g.mayContain(folder) })
}

// Names reports whether the pattern contains the name literally. Ignore files
// do not apply to names that are spelled out.
func (p *Pattern) Names(name string) bool {
	name = p.folded(name)
	return slices.ContainsFunc(p.globs, func(g *Glob) bool { return g.names(name) })
}

// Quote escapes what has a meaning in patterns.
func Quote(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[]{},\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
