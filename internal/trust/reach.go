package trust

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxFolders bounds the folders that one command may start from. A command that
// names more cannot be followed, so that its project cannot be trusted.
const maxFolders = 64

// Program is a command that settings name.
type Program struct {
	Argv      []string // expanded as far as it can be; empty for an environment alone
	Dir       string   // where it runs, absolute
	Env       []string // "NAME=value": what the settings give it; every value may name files
	Inherited []string // "NAME=value": what it has from us; words may mention it, and its PATH counts
}

// reach is one command on the way to the files that it may run.
//
// A word is read in every way that a shell, an interpreter or an option could
// read it, and looked for in every folder that the command names. A file that
// is not there is not recorded: each check looks again, and one that has come
// counts as added.
type reach struct {
	*cover
	program Program
	words   []string // of the command, without their quotes; each once
	folders []string // where relative words may start, absolute
	runners []runner
}

// program covers the files that a command may run.
func (c *cover) program(p Program) error {
	r := &reach{cover: c, program: p}
	for _, word := range p.Argv {
		r.addWords(word)
	}
	for _, entry := range p.Env {
		_, value, _ := strings.Cut(entry, "=")
		r.addWords(value)
	}
	for _, word := range r.words {
		r.addRunner(word)
	}
	r.folders = []string{p.Dir, c.root}
	for i := 0; i < len(r.folders); i++ { // grows
		if i == maxFolders {
			return fmt.Errorf("covering %q: it names more than %d folders", strings.Join(p.Argv, " "), maxFolders)
		}
		if err := r.folder(r.folders[i]); err != nil {
			return err
		}
	}
	return errors.Join(r.path(), r.codeFolders(), r.local())
}

// addWords takes a word as a whole, in the pieces that a shell or an option would
// cut it into, and as it is without quotes.
func (r *reach) addWords(word string) {
	word = r.expand(word)
	bare := strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(word)
	for _, w := range slices.Concat([]string{word}, pieces(word), pieces(bare)) {
		for _, form := range forms(w) {
			if form != "" && !strings.ContainsRune(form, 0) && !slices.Contains(r.words, form) {
				r.words = append(r.words, form)
			}
		}
	}
}

// Compiled where a project is judged, not at every start.
var (
	processFolder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/proc/[^/\s]+/(?:task/[^/\s]+/)?(cwd|root)\b`) })
	variable      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$(?:\{(\w+)[^}]*\}|(\w+))|%(\w+)%`) })
)

// expand replaces what a shell would, so far as it is known. Any other variable
// may be any folder that the command names.
func (r *reach) expand(word string) string {
	word = processFolder().ReplaceAllStringFunc(word, func(m string) string {
		if strings.HasSuffix(m, "/root") {
			return ""
		}
		return r.program.Dir
	})
	return variable().ReplaceAllStringFunc(word, func(m string) string {
		groups := variable().FindStringSubmatch(m)
		return r.lookup(cmp.Or(groups[1], groups[2], groups[3]))
	})
}

func (r *reach) lookup(name string) string {
	switch name {
	case "TOOLREG_PROJECT_ROOT":
		return r.root
	case "PWD":
		return r.program.Dir
	}
	for _, entry := range slices.Concat(r.program.Env, r.program.Inherited) {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return "."
}

// pieces cuts a word where a shell or an option would: "--x=FILE", "a; b".
func pieces(word string) []string {
	return strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\r\n=;|&<>(){}[]`'\",:$#!+", r) })
}

// forms are the readings of a word: the file itself, the value behind an option's
// letter (-rFILE), a file of arguments (@FILE), and modules (a.b).
func forms(word string) []string {
	out := []string{word}
	if rest := strings.TrimPrefix(word, "@"); rest != word {
		out = append(out, rest)
	}
	if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		word = word[2:]
		out = append(out, word)
	}
	if !strings.Contains(word, "/") && strings.Contains(strings.Trim(word, "."), ".") {
		var path string
		for _, name := range strings.Split(word, ".") { // importing a.b runs a first
			path = filepath.Join(path, name)
			out = append(out, path)
		}
	}
	return out
}

// folder covers what the words name in one folder, and adds the folders among
// them.
func (r *reach) folder(dir string) error {
	for _, word := range r.words {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		} else if err := r.word(filepath.Join(dir, path)); err != nil { // behind something unknown: $(pwd)/x
			return err
		}
		if err := r.word(path); err != nil {
			return err
		}
	}
	return r.entries(dir)
}

// word covers the files that a path could mean: itself, with an extension, and
// those that a pattern fits.
func (r *reach) word(path string) error {
	parent, base := filepath.Split(path)
	names := r.list(filepath.Clean(parent)).names
	for _, extension := range extensions() {
		if slices.Contains(names, base+extension) {
			if err := r.add(path + extension); err != nil {
				return err
			}
		}
	}
	if strings.ContainsAny(path, "*?") {
		matches, _ := filepath.Glob(path) // a pattern that is none matches nothing
		for _, m := range matches {
			if err := r.file(m); err != nil {
				return err
			}
		}
	}
	return r.file(path)
}

// file covers one file inside the project, or takes a folder to start from.
func (r *reach) file(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // what is not there runs nothing
		return nil
	case info.IsDir():
		if path = filepath.Clean(path); !slices.Contains(r.folders, path) {
			r.folders = append(r.folders, path)
		}
		return nil
	case !r.inside(path):
		return nil
	}
	if err := r.add(path); err != nil {
		return err
	}
	return r.siblings(path)
}

// listing is what a folder holds, where it is inside the project.
type listing struct{ names []string }

// list reads a folder once; empty for one that is outside.
func (c *cover) list(dir string) *listing {
	if l, ok := c.listed[dir]; ok {
		return l
	}
	l := &listing{}
	if rel, err := filepath.Rel(c.root, resolved(dir)); err == nil && filepath.IsLocal(rel) {
		entries, _ := os.ReadDir(dir) // what cannot be read names nothing
		for _, e := range entries {
			l.names = append(l.names, e.Name())
		}
	}
	c.listed[dir] = l
	return l
}

// path covers the program in the folders of PATH, and everything in those that
// are inside the project: a later file there would be found first.
func (r *reach) path() error {
	for _, dir := range r.folderList("PATH") {
		for _, name := range r.list(dir).names {
			if err := r.add(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		for _, word := range r.program.Argv {
			if path := filepath.Join(dir, word); word != "" && filepath.IsLocal(word) && r.inside(path) {
				if err := r.add(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// folderList returns the folders of a variable, absolute.
func (r *reach) folderList(name string) []string {
	var out []string
	for _, dir := range filepath.SplitList(r.expand(r.valueOf(name))) {
		if dir == "" || !filepath.IsAbs(dir) {
			dir = filepath.Join(r.program.Dir, dir)
		}
		out = append(out, filepath.Clean(dir))
	}
	return out
}

func (r *reach) valueOf(name string) string {
	for _, entry := range slices.Concat(r.program.Env, r.program.Inherited) {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}
