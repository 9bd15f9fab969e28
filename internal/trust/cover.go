package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Program is a command that settings name.
type Program struct {
	Argv []string // expanded as far as it can be
	Dir  string   // where it runs, absolute
	Env  []string // values of variables that the settings give it, which can name files too: PATH, NODE_OPTIONS
}

// Cover returns everything that a grant for the project at root covers: the
// settings files, the files inside the project that the programs name, and all
// files of the trees (plugin folders, absolute; missing ones are empty). The
// result is sorted by name. An error means that the project cannot be trusted
// as it is.
func Cover(root string, settings []File, programs []Program, trees []string) ([]File, error) {
	c := cover{root: resolved(root), files: map[string]File{}, room: maxBytes, seen: map[string]bool{}}
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
	for _, f := range c.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
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
	root  string
	files map[string]File
	room  int64           // bytes left
	seen  map[string]bool // folders, links resolved
}

// inside reports whether a path is in the project, by its own spelling or by
// where its links lead.
func (c *cover) inside(path string) bool {
	for _, p := range []string{path, resolved(path), filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))} {
		if rel, err := filepath.Rel(c.root, p); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// add covers one file. What is not there or not a regular file runs nothing.
func (c *cover) add(path string) error {
	name := Name(c.root, filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path)))
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
	return nil
}

// program covers the files that a command names and, for a folder or a known
// runner, the files that say what runs.
func (c *cover) program(p Program) error {
	if len(p.Argv) == 0 {
		return nil
	}
	for _, entry := range entryFiles(filepath.Base(p.Argv[0])) {
		if err := c.word(p.Dir, entry); err != nil {
			return err
		}
	}
	for _, word := range p.Argv {
		if err := c.words(p.Dir, word); err != nil {
			return err
		}
	}
	return c.environment(p)
}

// words covers what a word could mean, as a whole and in its pieces.
func (c *cover) words(dir, word string) error {
	if err := c.word(dir, word); err != nil {
		return err
	}
	parts := pieces(word)
	if len(parts) == 1 && parts[0] == word {
		return nil
	}
	for _, part := range parts {
		if err := c.word(dir, part); err != nil {
			return err
		}
	}
	return nil
}

// environment covers the files that variables name, and the program itself in
// the folders that they name, as PATH does.
func (c *cover) environment(p Program) error {
	for _, value := range p.Env {
		if err := c.words(p.Dir, value); err != nil {
			return err
		}
		for _, folder := range append(filepath.SplitList(value), value) {
			if folder == "" {
				continue
			}
			if err := c.word(p.Dir, filepath.Join(folder, p.Argv[0])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cover) word(dir, word string) error {
	if word == "" {
		return nil
	}
	path := word
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err != nil || !c.inside(path) { // what is not there runs nothing
		return nil
	}
	if !info.IsDir() {
		return c.add(path)
	}
	for _, entry := range entryFiles("") {
		if err := c.add(filepath.Join(path, entry)); err != nil {
			return err
		}
	}
	return nil
}

// tree covers all files of a folder, through links too; each folder once. Git's
// own data is left out: it changes all the time.
func (c *cover) tree(dir string) error {
	real := resolved(dir)
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
		if err := c.entry(filepath.Join(real, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (c *cover) entry(path, name string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // a link to nowhere
		return nil
	case info.IsDir() && name == ".git":
		return nil
	case info.IsDir():
		return c.tree(path)
	}
	return c.add(path)
}

// pieces cuts a word where a shell or an option would: "--x=FILE", "a; b".
func pieces(word string) []string {
	return strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\r\n=;|&<>(){}`'\",:$", r) })
}

// entryFiles names what a runner reads to learn what to run: in its working
// directory for a program that needs no file argument, in a folder given as
// argument for program "".
func entryFiles(program string) []string {
	switch strings.TrimSuffix(program, filepath.Ext(program)) {
	case "":
		return []string{"package.json", "index.js", "index.mjs", "index.cjs", "__main__.py", "main.go", "pyproject.toml"}
	case "npm", "pnpm", "yarn", "npx", "bun", "bunx":
		return []string{"package.json", ".npmrc", "bunfig.toml"}
	case "make", "gmake":
		return []string{"GNUmakefile", "makefile", "Makefile"}
	case "just":
		return []string{"justfile", "Justfile", ".justfile"}
	case "task":
		return []string{"Taskfile.yml", "Taskfile.yaml"}
	case "deno":
		return []string{"deno.json", "deno.jsonc"}
	case "cargo":
		return []string{"Cargo.toml"}
	case "uv", "uvx", "poetry", "hatch", "pdm":
		return []string{"pyproject.toml"}
	}
	return nil
}
