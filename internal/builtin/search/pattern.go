package search

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
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

// compileBelow compiles the param at pointer, a pattern of paths below the folder start, which
// the caller calls name. If the pattern is absolute, or leads through a link, which no walk follows,
// start and name become the folder from which it counts. The names at its beginning that exist as
// they are written are read as such, also those with brackets or braces.
func compileBelow(w *workspace.Dir, tool, pointer, pattern string, fold bool, start, name *string) (*glob.Pattern, error) {
	rel, err := relativePattern(w, pattern)
	if err != nil {
		return nil, registry.Invalid(tool, pointer, "%v", err)
	}
	if rel != pattern { // it was absolute
		*start, *name = ".", ""
	}
	root, err := w.Root()
	parts, at := strings.Split(rel, "/"), *start
	for i := 0; i < len(parts) && err == nil && !strings.ContainsAny(parts[i], "*?\\"); i++ {
		at = path.Join(at, parts[i])
		var info fs.FileInfo
		switch info, err = root.Lstat(at); {
		case err != nil || parts[i] == "." || parts[i] == "..":
		case info.Mode()&fs.ModeSymlink != 0 && i < len(parts)-1:
			if *start, err = w.Param(tool, pointer, at); err != nil {
				return nil, err
			}
			*name, at = at, *start
			parts = append([]string{"."}, parts[i+1:]...)
			i = 0
		default:
			parts[i] = glob.Quote(parts[i])
		}
	}
	compiled, err := glob.CompilePattern(strings.Join(parts, "/"), fold)
	if err != nil {
		return nil, registry.Invalid(tool, pointer, "%v", err)
	}
	return compiled, nil
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

// relativeTo makes a path relative to the folder where a search started.
func relativeTo(start, path string) string {
	if start == "." {
		return path
	}
	return strings.TrimPrefix(path, start+"/")
}
