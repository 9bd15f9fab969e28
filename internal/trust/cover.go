package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// missing records a file for [Missing].
func (c *cover) missing(path string) {
	if c.absent == nil {
		return
	}
	if path = c.place(path); Within(path, c.root) {
		c.absent[path] = true
	}
}

// Name returns the name of a file in a project: its path relative to root with
// slashes, or its absolute path if it is outside.
func Name(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

type cover struct {
	root   string // with links resolved
	given  string // as given
	files  map[string]File
	room   int64               // bytes left
	seen   map[string]bool     // folders that are already covered, with links resolved
	listed map[string][]string // the names in folders
	reals  map[string]string   // see real

	scripts bool            // find scripts alone, without reading them all
	started bool            // also what runners read and run first
	absent  map[string]bool // see [Missing]; nil if nobody asks
}

func newCover(root string) *cover {
	return &cover{root: Real(root), given: root, files: map[string]File{}, room: maxBytes,
		seen: map[string]bool{}, listed: map[string][]string{}, reals: map[string]string{}}
}

// paths returns the paths of the files, sorted by their names.
func (c *cover) paths() []string {
	out := make([]string, 0, len(c.files))
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		out = append(out, c.files[name].Path)
	}
	return out
}

// real is Real for a folder, which it looks up once.
func (c *cover) real(dir string) string {
	real, ok := c.reals[dir]
	if !ok {
		real = Real(dir)
		c.reals[dir] = real
	}
	return real
}

// listDir returns the names in a folder, which it reads once; none if the folder is outside the project.
func (c *cover) listDir(dir string) []string {
	names, known := c.listed[dir]
	if !known && Within(c.real(dir), c.root) {
		entries, _ := os.ReadDir(dir) // an unreadable folder is empty
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	c.listed[dir] = names
	return names
}

// place returns where a file is: its path with links resolved, but for its own name.
func (c *cover) place(path string) string {
	return filepath.Join(c.real(filepath.Dir(path)), filepath.Base(path))
}

// inside reports whether a path is in the project, either as written or with links
// resolved.
func (c *cover) inside(path string) bool {
	return Within(path, c.root) || Within(c.place(path), c.root) || Within(Real(path), c.root)
}

// maxLinks limits how many links lead from one to the next.
const maxLinks = 40

// links covers the texts of the links in the project through which a path leads. What
// they lead to is covered too, but only inside the project by content.
func (c *cover) links(path string) {
	if c.scripts {
		return
	}
	switch {
	case Within(path, c.root):
	case Within(path, c.given):
		rest, _ := filepath.Rel(c.given, path)
		path = filepath.Join(c.root, rest)
	default:
		path = c.place(path)
	}
	c.follow(path, maxLinks)
}

func (c *cover) follow(path string, left int) {
	for at := path; left > 0 && at != c.root && Within(at, c.root); at = filepath.Dir(at) {
		text, err := os.Readlink(at)
		if err != nil { // not a link
			continue
		}
		name := Name(c.root, at) + mark + "-> " + text
		sum := sha256.Sum256([]byte(text))
		c.files[name] = File{Name: name, Path: at, Sum: hex.EncodeToString(sum[:]), Link: text}
		if !filepath.IsAbs(text) {
			text = filepath.Join(filepath.Dir(at), text)
		}
		rest, _ := filepath.Rel(at, path)
		c.follow(filepath.Join(text, rest), left-1)
	}
}

// add covers one file. It ignores missing and non-regular files, because they cannot be run.
func (c *cover) add(path string) error { return c.addFile(path, false) }

// addFile is add; with whole, it adds a file to [Started] even if it is not a script.
func (c *cover) addFile(path string, whole bool) error {
	place := c.place(path)
	name := Name(c.root, place)
	if filepath.IsAbs(filepath.FromSlash(name)) {
		if real := Real(path); Within(real, c.root) { // it is a link outside that leads in
			name = Name(c.root, real)
		}
	}
	if _, ok := c.files[name]; ok {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if c.scripts {
		if whole || isScript(name, info) {
			c.files[name] = File{Name: name, Path: place}
		}
		return nil
	}
	f, err := hashFile(path, c.room)
	if err != nil {
		return err
	}
	c.links(path)
	f.Name, f.Outside = name, !Within(f.Path, c.root)
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

// bytecode covers compiled Python modules that refer to their source by hash.
// Python may run these even if they do not match the source. Ordinary ones are not
// covered: they contain the modification time of the source, which a repository
// cannot set, and they change from run to run.
func (c *cover) bytecode(dir, prefix string) error {
	for _, name := range c.listDir(dir) {
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

// hashBased reports whether a .pyc file refers to its source by hash, according to
// the flags after the magic number (PEP 552).
func hashBased(path string) bool {
	f, _, err := openFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [8]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && head[4]&1 != 0
}

// tree covers all files in a folder, following links. It visits each folder once.
func (c *cover) tree(dir string) error {
	real := c.real(dir)
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
		if e.Name() == "__pycache__" { // changes from run to run
			err = c.bytecode(filepath.Join(real, e.Name()), "")
		} else {
			err = c.entry(filepath.Join(real, e.Name()))
		}
		if err != nil {
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
		c.links(path)
		return c.tree(path)
	}
	return c.add(path)
}

// document covers an OpenAPI document and the files in its folder to which it refers. A reference
// written in an unusual way is not covered, and its file is not read either.
func (c *cover) document(path string) error {
	if c.scripts {
		return nil
	}
	folder, found := filepath.Dir(path), map[string]bool{path: true}
	for next := []string{path}; len(next) > 0; next = next[1:] {
		if err := c.add(next[0]); err != nil {
			return err
		}
		f, err := Read(next[0], maxBytes) // add has checked what is left
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRegular) {
				continue
			}
			return err
		}
		for _, ref := range references(f.Data) {
			file := filepath.Join(filepath.Dir(next[0]), filepath.FromSlash(ref))
			if rel, err := filepath.Rel(folder, file); err == nil && filepath.IsLocal(rel) && !found[file] {
				found[file], next = true, append(next, file)
			}
		}
	}
	return nil
}

// references returns the files to which the references ($ref) of a document in JSON or YAML
// refer, without duplicates.
func references(data []byte) []string {
	var out []string
	found := map[string]bool{}
	for {
		_, after, ok := bytes.Cut(data, []byte("$ref"))
		if !ok {
			return out
		}
		data = after
		after = bytes.TrimLeft(after[:min(len(after), maxReference)], "\"' \t\r\n:")
		if end := bytes.IndexAny(after, "#\"'\r\n,}"); end >= 0 {
			after = after[:end]
		}
		ref := strings.TrimSpace(strings.ReplaceAll(string(after), `\/`, "/"))
		if ref != "" && !strings.Contains(ref, "://") && !found[ref] {
			found[ref], out = true, append(out, ref)
		}
	}
}

// maxReference is how much of a document is searched for the end of a reference, in bytes.
const maxReference = 4 << 10
