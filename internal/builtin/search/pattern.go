package search

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/text"
)

// relativePattern makes a pattern that starts with the absolute path of the
// workspace relative to the workspace.
func relativePattern(w *workspace.Dir, pattern string) (string, error) {
	if !filepath.IsAbs(pattern) {
		return pattern, nil
	}
	if _, err := w.Root(); err != nil {
		return "", err
	}
	fixed := pattern
	if i := strings.IndexAny(pattern, `*?[{`); i >= 0 {
		fixed = pattern[:strings.LastIndexAny(pattern[:i], `/\`)+1]
	}
	rel, ok := w.Inside(fixed)
	if !ok {
		return "", fmt.Errorf("path %s is outside the workspace; give a pattern relative to it", text.Quote(pattern))
	}
	// "./" keeps a pattern with no other slash from matching below the top of
	// the workspace.
	return "./" + path.Join(rel, pattern[len(fixed):]), nil
}

// existing quotes the names with brackets or braces at the start of a pattern that
// exist as they are written. They are read as such, not as patterns.
func existing(w *workspace.Dir, start, pattern string) string {
	root, err := w.Root()
	if err != nil || !strings.ContainsAny(pattern, "[{") {
		return pattern
	}
	parts, at := strings.Split(pattern, "/"), start
	for i, part := range parts {
		if at = path.Join(at, part); strings.ContainsAny(part, "*?\\") {
			break
		}
		if _, err := root.Lstat(at); err != nil {
			break
		}
		if part != "." && part != ".." {
			parts[i] = glob.Quote(part)
		}
	}
	return strings.Join(parts, "/")
}

// gitFolder is the folder that a search skips unless the pattern names it.
const gitFolder = ".git"

// aGlob says what a pattern of paths is, where none matches.
const aGlob = "a glob of file paths such as src/** or *.{ts,tsx}."

// isOddGlob reports that a pattern may be meant as something else: the name of a folder, several
// patterns, a negation, or a path as on Windows.
func isOddGlob(pattern string) bool {
	return strings.ContainsAny(pattern, `,| \`) && !strings.Contains(pattern, "{") || strings.HasPrefix(pattern, "!") ||
		!strings.ContainsAny(pattern, `*?[{`) && path.Ext(pattern) == ""
}

// below makes a path relative to the folder where a search started.
func below(start, path string) string {
	if start == "." {
		return path
	}
	return strings.TrimPrefix(path, start+"/")
}
