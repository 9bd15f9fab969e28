package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Note describes what a search skipped, as a sentence with a leading space.
func (w *LeftOut) Note() string {
	out := ""
	if n := int(w.ignored.Load()); n > 0 {
		out = fmt.Sprintf(" (%s excluded by ignore files; respect_ignore_files: false shows them)",
			text.Count(n, "entry"))
	}
	out += Hidden(int(w.hidden.Load()))
	if n := int(w.unreadable.Load()); n > 0 {
		out += fmt.Sprintf(" (%s could not be read)", text.Count(n, "folder"))
	}
	return out
}

// Nothing reports whether the walk visited no files.
func (w *LeftOut) Nothing() bool { return w.visited.Load() == 0 }

// Hidden describes n entries that rules hide from the caller, as a sentence
// with a leading space; "" if n is 0.
func Hidden(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s excluded by policy rules)", text.Count(n, "entry"))
}

// Failure returns the result of a call that could not use a path: the problem
// and what to do next. name is the path as the caller wrote it. Paths for which
// hides, which may be nil, returns true are not named.
func (w *Dir) Failure(rel, name string, err error, hides func(string) bool) registry.Result {
	return registry.ErrorResult(registry.ErrorExecution, w.Explain(rel, name, err, hides))
}

// Explain returns the text of [Dir.Failure].
func (w *Dir) Explain(rel, name string, err error, hides func(string) bool) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		quoted, near := w.near(rel, name, hides)
		quoted += " does not exist in the workspace " + text.Quote(w.dir)
		if strings.ContainsRune(name, '*') {
			return quoted + "; a path names one file or folder, and patterns are taken by glob and by include of grep"
		}
		if len(near) > 0 {
			return quoted + "; did you mean " + strings.Join(near, ", ") + "?"
		}
		return quoted + "; list_directory and glob show what does"
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Sprintf("%s does not exist: a part of the path is a file, not a folder", text.Quote(name))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s cannot be read: %v", text.Quote(name), err)
	case errors.Is(err, ErrIsDir):
		return fmt.Sprintf("%s is a directory; use list_directory to list it", text.Quote(name))
	case errors.Is(err, ErrKind):
		return fmt.Sprintf("%s %v", text.Quote(name), err)
	}
	return fmt.Sprintf("reading %s: %v", text.Quote(name), err)
}

// near returns existing paths that may have been meant instead of a missing one: similar names in
// the nearest folder that exists. They are quoted like name, and with escapes if they look the same
// as the missing one.
func (w *Dir) near(rel, name string, hides func(string) bool) (quoted string, near []string) {
	root, err := w.Root()
	if err != nil {
		return text.Quote(name), nil
	}
	dir, want := path.Dir(rel), path.Base(rel)
	for dir != "." {
		if info, err := root.Stat(dir); err == nil && info.IsDir() {
			break
		}
		dir, want = path.Dir(dir), path.Base(dir)
	}
	names := slices.DeleteFunc(namesIn(root, dir),
		func(n string) bool { return hides != nil && hides(path.Join(dir, n)) })
	quote := strconv.Quote
	if near = slices.DeleteFunc(slices.Clone(names),
		func(n string) bool { return !text.LookSame(n, want) }); len(near) > 0 {
		quote = strconv.QuoteToASCII
	} else {
		near = registry.Near(want, names)
	}
	if stem := strings.TrimSuffix(want, path.Ext(want)); len(near) == 0 && len(stem) > 2 {
		for _, n := range names {
			if strings.EqualFold(strings.TrimSuffix(n, path.Ext(n)), stem) {
				near = append(near, n)
			}
		}
	}
	near = near[:min(len(near), 3)]
	for i, n := range near {
		near[i] = quote(path.Join(dir, n))
	}
	return quote(text.Valid(text.Clip(name, maxPath))), near
}

// NotFolder returns a failed result if the start of a search is not a folder.
func (w *Dir) NotFolder(rel, name string, hides func(string) bool) (registry.Result, bool) {
	f, info, err := w.OpenFile(rel)
	if err != nil {
		return w.Failure(rel, name, err, hides), true
	}
	f.Close()
	if !info.IsDir() {
		return registry.ErrorResult(registry.ErrorExecution,
			fmt.Sprintf("%s is a file, not a folder; use read_file, or give the folder that contains it",
				text.Quote(name))), true
	}
	return registry.Result{}, false
}
