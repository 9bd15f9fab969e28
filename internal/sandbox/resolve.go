package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks limits the symbolic links of one path, as the kernel does.
const maxLinks = 40

// resolved is a path without symbolic links.
type resolved struct {
	path  string
	isDir bool
	links map[string]string // the links on the way and their targets, both without earlier links
}

// resolver resolves many paths and examines each folder on the way only once.
type resolver map[string]component

// component is what exists at a path whose parents are not links.
type component struct {
	mode fs.FileMode
	to   string // target of a link
	err  error
}

func (known resolver) lookup(path string) component {
	c, ok := known[path]
	if ok {
		return c
	}
	info, err := os.Lstat(path)
	if c.err = err; err == nil {
		if c.mode = info.Mode(); c.mode&fs.ModeSymlink != 0 {
			c.to, c.err = os.Readlink(path)
		}
	}
	known[path] = c
	return c
}

// resolve follows the symbolic links of an absolute path.
func resolve(path string) (resolved, error) { return resolver{}.resolve(path) }

func (known resolver) resolve(path string) (resolved, error) {
	r := resolved{path: "/", links: map[string]string{}}
	rest := split(path)
	for len(rest) > 0 {
		next := filepath.Join(r.path, rest[0])
		rest = rest[1:]
		c := known.lookup(next)
		if c.err != nil {
			return resolved{}, c.err
		}
		r.isDir = c.mode.IsDir()
		if c.mode&fs.ModeSymlink == 0 {
			r.path = next
			continue
		}
		target := c.to
		if !filepath.IsAbs(target) {
			target = strings.TrimSuffix(r.path, "/") + "/" + target
		}
		if r.links[next] = target; len(r.links) > maxLinks {
			return resolved{}, errors.New("too many symbolic links")
		}
		// The target is not cleaned: ".." after a link is the parent of the
		// link's target.
		rest = append(split(target), rest...)
		r.path = "/"
	}
	if r.path == "/" {
		r.isDir = true
	}
	return r, nil
}

// linkIn returns a link on the way that is in one of the folders, which do not contain
// symbolic links in their own paths.
func (r resolved) linkIn(folders []string) (link string, ok bool) {
	for link := range r.links {
		if isWithinAny(link, folders) {
			return link, true
		}
	}
	return "", false
}

// resolveAll returns those of the paths that exist, without symbolic links.
func (known resolver) resolveAll(paths []string) []string {
	var out []string
	for _, path := range paths {
		if r, err := known.resolve(path); err == nil {
			out = append(out, r.path)
		}
	}
	return out
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// isWithin reports whether a path is a folder or below it; both are clean.
func isWithin(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == '/' || folder == "/")
}

func isWithinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return isWithin(path, folder) })
}
