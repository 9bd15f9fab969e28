package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Cover returns everything that a grant for the project at root covers: the
// settings files, the files in the project that the programs name, and all
// files of the trees (absolute paths of plugin folders; missing ones are
// empty). The result is sorted by name. An error means that the project cannot
// be trusted in its current state.
func Cover(root string, settings []File, programs []Program, trees []string) ([]File, error) {
	c := cover{root: Real(root), files: map[string]File{}, room: maxBytes, seen: map[string]bool{}, listed: map[string]*listing{}}
	for _, f := range settings {
		c.files[f.Name] = f
	}
	for _, p := range programs {
		if err := c.program(p); err != nil {
			return nil, err
		}
	}
	for _, tree := range trees {
		if err := c.tree(tree); err != nil {
			return nil, err
		}
	}
	out := make([]File, 0, len(c.files))
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		out = append(out, c.files[name])
	}
	return out, nil
}

// Name returns the name of a file in a project: relative to the root with
// slashes, or the absolute path outside it.
func Name(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

type cover struct {
	root   string
	files  map[string]File
	room   int64           // bytes left
	seen   map[string]bool // folders already covered, with links resolved
	listed map[string]*listing
}

// inside reports whether a path is in the project, either as written or after
// resolving links.
func (c *cover) inside(path string) bool {
	for _, p := range []string{path, Real(path), filepath.Join(Real(filepath.Dir(path)), filepath.Base(path))} {
		if Within(p, c.root) {
			return true
		}
	}
	return false
}

// add covers one file. Absent files and files that are not regular are ignored,
// because they cannot be run.
func (c *cover) add(path string) error {
	name := Name(c.root, filepath.Join(Real(filepath.Dir(path)), filepath.Base(path)))
	if _, ok := c.files[name]; ok {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := digest(path, c.room)
	if err != nil {
		return err
	}
	f.Name = name
	c.room -= f.Size
	c.files[name] = f
	if len(c.files) > maxFiles {
		return fmt.Errorf("covering %s: more than %d files", c.root, maxFiles)
	}
	if module, ok := strings.CutSuffix(filepath.Base(path), ".py"); ok {
		return c.bytecode(filepath.Join(filepath.Dir(path), "__pycache__"), module+".")
	}
	return nil
}

// bytecode covers the compiled forms of a Python module that Python runs in place of its
// source although the source may say something else: those that refer to it by hash. The
// usual ones have the time of the source, which a repository cannot set, and change with
// every run.
func (c *cover) bytecode(dir, prefix string) error {
	for _, name := range c.list(dir).names {
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, ".pyc") {
			continue
		}
		if path := filepath.Join(dir, name); hashBased(path) {
			if err := c.add(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashBased reads the flags after the magic number of a .pyc file (PEP 552).
func hashBased(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // opening a pipe would wait
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [8]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && head[4]&1 != 0
}

// tree covers all files of a folder, following links; each folder once.
func (c *cover) tree(dir string) error {
	real := Real(dir)
	if c.seen[real] {
		return nil
	}
	c.seen[real] = true
	entries, err := os.ReadDir(real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("covering plugins: %w", err)
	}
	for _, e := range entries {
		if err := c.entry(filepath.Join(real, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *cover) entry(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // a dangling link
		return nil
	case info.IsDir():
		return c.tree(path)
	}
	return c.add(path)
}
