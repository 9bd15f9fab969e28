package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxLinks limits the links followed on one path, to the same number as in
// Linux.
const maxLinks = 40

// refusal is the error for a path that must not be used.
type refusal struct{ path, reason string }

func (e *refusal) Error() string { return fmt.Sprintf("path %s %s", text.Quote(e.path), e.reason) }

// Param resolves the value of a path param. If the path is refused, the error
// is an *ArgsError for the param at pointer.
func (w *Dir) Param(tool, pointer, name string) (string, error) {
	return w.param(tool, pointer, name, text.Alike)
}

func (w *Dir) param(tool, pointer, name string, form func(string) string) (string, error) {
	rel, err := w.resolve(name, form)
	if r, ok := errors.AsType[*refusal](err); ok {
		return "", registry.Invalid(tool, pointer, "%s", r.Error())
	}
	return rel, err
}

// resolve converts a path as a model writes it, relative to the workspace or
// absolute inside it, to the real path inside the workspace: relative, cleaned,
// with slashes and without links. The file need not exist. The error is a
// *refusal if the path must not be used because it leads outside the workspace,
// directly or through a link, or is not a plain path.
//
// A part that does not exist stands for the only entry of its folder that has the
// same form: models write names composed and with plain quotes, however the file
// system has them.
//
// The links are followed by hand because an os.Root refuses absolute links, even
// those that lead back inside. The result is opened with enter, so replacing a
// folder with a link in the meantime has no effect.
func (w *Dir) resolve(name string, form func(string) string) (string, error) {
	if len(name) > maxPath {
		return "", &refusal{name, fmt.Sprintf("is longer than %d bytes", maxPath)}
	}
	root, err := w.Root()
	if err != nil {
		return "", err
	}
	rel, err := w.relative(name)
	if err != nil {
		return "", err
	}
	done, rest, via := ".", split(rel), ""
	for links := 0; len(rest) > 0; {
		if runtime.GOOS == "windows" {
			if i := slices.IndexFunc(rest, isOtherName); i >= 0 {
				return "", &refusal{name, fmt.Sprintf(
					"has %s, by which Windows may open another file; give the whole name", text.Quote(rest[i]))}
			}
		}
		next := rest[0]
		rest = rest[1:]
		if next == ".." {
			if done == "." {
				return "", errLeaves(name, via)
			}
			done = path.Dir(done)
			continue
		}
		at := path.Join(done, next)
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
			other := equivalent(namesIn(root, done), next, form)
			if links++; other == "" || links > maxLinks {
				return resolveMissing(name, at, rest)
			}
			rest = append([]string{other}, rest...)
			continue
		case err != nil:
			return "", fmt.Errorf("inspecting %s: %w", text.Quote(name), text.Cause(err))
		case info.Mode()&fs.ModeSymlink == 0:
			done = at
			continue
		}
		if links++; links > maxLinks {
			return "", &refusal{name, fmt.Sprintf("has a loop of links at %s", text.Quote(at))}
		}
		if done, rest, err = w.follow(root, name, at, rest); err != nil {
			return "", err
		}
		via = at
	}
	return done, nil
}

// equivalent returns the only one of the names that has the same form as one that
// does not exist, or "".
func equivalent(names []string, missing string, form func(string) string) string {
	if len(names) == maxSiblings { // there may be more
		return ""
	}
	want, found := form(missing), ""
	for _, n := range names {
		switch {
		case n == missing || form(n) != want:
		case found != "":
			return ""
		default:
			found = n
		}
	}
	return found
}

func errLeaves(name, link string) error {
	return &refusal{name, fmt.Sprintf("leaves the workspace through link %s", text.Quote(link))}
}

// follow replaces the link at the path at with its target. It returns the
// resolved part and the remaining parts.
func (w *Dir) follow(root *os.Root, name, at string, rest []string) (string, []string, error) {
	target, err := root.Readlink(at)
	if err != nil {
		return "", nil, fmt.Errorf("reading link %s: %w", text.Quote(at), text.Cause(err))
	}
	if filepath.IsAbs(target) {
		rel, ok := w.Inside(target)
		if !ok {
			return "", nil, errLeaves(name, at)
		}
		return ".", append(split(rel), rest...), nil
	}
	if target = filepath.ToSlash(target); path.IsAbs(target) || filepath.VolumeName(target) != "" {
		return "", nil, errLeaves(name, at)
	}
	return path.Dir(at), append(split(target), rest...), nil
}

// isOtherName reports whether Windows may open a file of another name by this one, so that
// rules about that file would not match: it ignores dots and blanks at the end, and accepts
// short names such as PRIVAT~1.TXT.
func isOtherName(name string) bool {
	if name == ".." {
		return false
	}
	base, extension, _ := strings.Cut(name, ".")
	tilde := strings.LastIndexByte(base, '~')
	short := tilde > 0 && len(base) <= 8 && len(extension) <= 3 &&
		strings.Trim(base[tilde+1:], "0123456789") == "" && tilde+1 < len(base)
	return short || strings.TrimRight(name, ". ") != name
}

// resolveMissing ends the resolution at a part that does not exist.
func resolveMissing(name, at string, rest []string) (string, error) {
	if slices.Contains(rest, "..") {
		return "", &refusal{name, fmt.Sprintf("goes up from %s, which does not exist", text.Quote(at))}
	}
	return path.Join(at, path.Join(rest...)), nil
}

// relative makes the path relative to the workspace lexically.
func (w *Dir) relative(name string) (string, error) {
	switch {
	case name == "":
		return "", &refusal{name, "is empty"}
	case strings.ContainsRune(name, 0):
		return "", &refusal{name, "contains a NUL byte"}
	case name == "~" || strings.HasPrefix(name, "~/") || strings.HasPrefix(name, `~\`):
		return "", &refusal{name, "starts with ~, which is not expanded; give a path inside the workspace"}
	case strings.HasPrefix(strings.ToLower(name), "file:/"):
		return "", &refusal{name, "is a URL; give a plain path"}
	}
	if filepath.IsAbs(name) {
		rel, ok := w.Inside(name)
		if !ok {
			return "", &refusal{name, "is outside the workspace; give a path inside it"}
		}
		return rel, nil
	}
	clean := filepath.Clean(name)
	if !filepath.IsLocal(clean) {
		return "", &refusal{name, "leads outside the workspace"}
	}
	return filepath.ToSlash(clean), nil
}

// Inside makes an absolute path relative to the workspace. The workspace may be
// written as in the settings, by its real path, or by another path through
// links.
func (w *Dir) Inside(abs string) (string, bool) {
	for _, base := range []string{w.dir, w.real} {
		if rel, _ := filepath.Rel(base, abs); filepath.IsLocal(rel) { // with an error it is not
			return filepath.ToSlash(rel), true
		}
	}
	for head, tail := filepath.Clean(abs), ""; ; {
		if info, err := os.Stat(head); err == nil {
			if ws, err := w.root.Stat("."); err == nil && os.SameFile(info, ws) {
				return filepath.ToSlash(filepath.Join(".", tail)), true
			}
		}
		parent := filepath.Dir(head)
		if parent == head {
			return "", false
		}
		head, tail = parent, filepath.Join(filepath.Base(head), tail)
	}
}

// split returns the parts of a path, without empty parts and ".".
func split(rel string) []string {
	parts := strings.Split(rel, "/")
	out := parts[:0]
	for _, p := range parts {
		if p != "" && p != "." {
			out = append(out, p)
		}
	}
	return out
}

// maxSiblings limits how many names are searched for similar ones.
const maxSiblings = 10_000

func namesIn(root *os.Root, dir string) []string {
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxSiblings)
	slices.Sort(names)
	return names
}
