package search

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
)

// pattern is a glob over paths relative to some folder, with braces.
type pattern struct {
	globs []workspace.Wildcard
	fold  bool // upper and lower case are the same
}

// compilePattern compiles a glob. Without a slash it is looked for in every
// folder. The error tells what is wrong with the text.
func compilePattern(text string, fold bool) (*pattern, error) {
	alternatives, err := expandBraces(filepath.ToSlash(text))
	if err != nil {
		return nil, err
	}
	p := &pattern{fold: fold}
	for _, alt := range alternatives {
		if fold {
			alt = strings.ToLower(alt)
		}
		if !strings.Contains(alt, "/") {
			alt = "**/" + alt
		}
		parts := workspace.Split(alt)
		if slices.Contains(parts, "..") {
			return nil, fmt.Errorf("pattern %q leads out through \"..\"", text)
		}
		glob, ok := workspace.CompileWildcard(strings.Join(parts, "/"))
		if !ok {
			return nil, fmt.Errorf("pattern %q ends within [ or behind \\; close the bracket, or write \\[ for the character", text)
		}
		p.globs = append(p.globs, glob)
	}
	return p, nil
}

func (p *pattern) folded(s string) string {
	if p.fold {
		return strings.ToLower(s)
	}
	return s
}

// match reports whether the path matches.
func (p *pattern) match(path string) bool {
	path = p.folded(path)
	return slices.ContainsFunc(p.globs, func(w workspace.Wildcard) bool { return w.Match(path) })
}

// mayContain reports whether something below the folder can match.
func (p *pattern) mayContain(dir string) bool {
	dir = p.folded(dir)
	return slices.ContainsFunc(p.globs, func(w workspace.Wildcard) bool { return w.MayContain(dir) })
}

// names reports whether the pattern holds the name as it is: whoever writes a
// name wants it, whatever ignore files say.
func (p *pattern) names(name string) bool {
	name = p.folded(name)
	return slices.ContainsFunc(p.globs, func(w workspace.Wildcard) bool {
		return slices.ContainsFunc(w.Parts, func(part workspace.WildPart) bool {
			return !part.Deep && part.Tokens == nil && part.Literal == name
		})
	})
}

// relativePattern makes a pattern that begins with the absolute path of the
// workspace relative to it.
func relativePattern(w *workspace.Dir, text string) (string, error) {
	if !filepath.IsAbs(text) {
		return text, nil
	}
	if _, err := w.Root(); err != nil {
		return "", err
	}
	fixed := text
	if i := strings.IndexAny(text, `*?[{`); i >= 0 {
		fixed = text[:strings.LastIndexAny(text[:i], `/\`)+1]
	}
	rel, ok := w.Inside(fixed)
	if !ok {
		return "", fmt.Errorf("path %q is outside the workspace; give a pattern relative to it", text)
	}
	// "./" keeps a pattern with no other slash at the top of the workspace.
	return "./" + path.Join(rel, text[len(fixed):]), nil
}

// skipped reports whether a search passes over a folder that no pattern names:
// git's own, and installed packages while ignore files are honoured.
func skipped(name string, respect bool) bool {
	return name == ".git" || respect && name == "node_modules"
}

// below makes a path relative to the folder that a search began in.
func below(start, path string) string {
	if start == "." {
		return path
	}
	return strings.TrimPrefix(path, start+"/")
}
