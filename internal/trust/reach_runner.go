package trust

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// addRunner adds the runner that a word may refer to.
func (r *reach) addRunner(word string) {
	name := runnerName(word)
	if strings.HasPrefix(name, "node") && !slices.Contains(r.words, "--run") {
		return // it runs the file that it is given
	}
	r.runners = append(r.runners, runnersOf(name)...)
}

// entries covers the files in a folder that determine what a runner runs there.
func (r *reach) entries(dir string) error {
	if dir == r.root && dir != r.program.Dir && !slices.Contains(r.words, dir) {
		return nil // applies only if a word names the root
	}
	var names []string
	for _, known := range r.runners {
		names = append(names, strings.Fields(known.entries)...)
		if known.code != "" {
			if err := r.code(dir, known.code); err != nil {
				return err
			}
		}
	}
	if dir != r.program.Dir && dir != r.root || slices.Contains(r.words, ".") { // a folder that the command names
		for name := range strings.FieldsSeq(folderEntries) {
			if path := filepath.Join(dir, name); r.inside(path) {
				if err := r.entry(path); err != nil {
					return err
				}
			}
		}
	}
	for _, at := range r.upTo(dir) {
		for _, name := range names {
			if err := r.entry(filepath.Join(at, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// upTo returns a folder and its parents up to the project root; nil if the folder
// is outside the project.
func (r *reach) upTo(dir string) []string {
	var out []string
	for at := dir; r.inside(at); at = filepath.Dir(at) {
		if out = append(out, at); r.real(at) == r.root {
			return out
		}
	}
	return out
}

// entry covers a file that a runner reads and, for a package.json, the files that
// it names.
func (r *reach) entry(path string) error {
	if err := r.addFile(path, r.started); err != nil || filepath.Base(path) != "package.json" {
		return err
	}
	for _, word := range packageWords(path) {
		for _, name := range append(pieces(word), word) {
			if r.started && !strings.Contains(filepath.ToSlash(path), "/node_modules/") {
				if err := r.installed(filepath.Dir(path), name); err != nil {
					return err
				}
			}
			if err := r.word(filepath.Join(filepath.Dir(path), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// packageWords returns the strings in a package.json that may name files to run.
func packageWords(path string) []string {
	f, err := Read(path, maxBytes)
	var all map[string]any
	if err != nil || json.Unmarshal(f.Data, &all) != nil { // node cannot read it either
		return nil
	}
	var out []string
	var take func(any)
	take = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case map[string]any:
			for _, member := range v {
				take(member)
			}
		case []any:
			for _, item := range v {
				take(item)
			}
		}
	}
	for _, name := range []string{"main", "module", "bin", "exports", "imports", "scripts"} {
		take(all[name])
	}
	return out
}

// siblings covers the files next to a script that an interpreter would load before
// those of its own library.
func (r *reach) siblings(path string) error {
	for _, known := range r.runners {
		if slices.Contains(strings.Fields(known.code), filepath.Ext(path)) {
			if err := r.code(filepath.Dir(path), known.code); err != nil {
				return err
			}
		}
	}
	return nil
}

// code covers the files in a folder with one of the extensions, and the Python
// packages in it.
func (r *reach) code(dir, extensions string) error {
	if r.scripts {
		return nil
	}
	for _, name := range r.listDir(dir) {
		path := filepath.Join(dir, name)
		if !slices.Contains(strings.Fields(extensions), filepath.Ext(name)) {
			path = filepath.Join(path, "__init__.py")
		}
		if err := r.add(path); err != nil {
			return err
		}
	}
	return nil
}

// codeFolders covers the contents of all folders that environment variables name
// as locations of code.
func (r *reach) codeFolders() error {
	for _, name := range expand.CodeFolders() {
		if !slices.ContainsFunc(r.program.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			continue
		}
		for _, dir := range r.folderList(name) {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() || !r.inside(dir) {
				continue
			}
			if err := r.tree(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// local covers programs installed in the project, which some runners prefer to
// others of the same name.
func (r *reach) local() error {
	if !slices.ContainsFunc(r.runners, func(known runner) bool { return known.local }) {
		return nil
	}
	for _, dir := range r.folders {
		for _, at := range r.upTo(dir) {
			for _, word := range r.words {
				if err := r.installed(at, word); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// installed covers the package or program with this name that is installed in a
// folder.
func (r *reach) installed(dir, word string) error {
	if i := strings.LastIndex(word, "@"); i > 0 {
		word = word[:i] // remove the version
	}
	if !filepath.IsLocal(word) {
		return nil
	}
	name := filepath.Base(word) // of @scope/name
	for _, path := range []string{
		"node_modules/.bin/" + name, ".venv/bin/" + name, "venv/bin/" + name, "vendor/bin/" + name,
	} {
		if err := r.addFile(filepath.Join(dir, path), r.started); err != nil {
			return err
		}
	}
	return r.entry(filepath.Join(dir, "node_modules", word, "package.json"))
}
