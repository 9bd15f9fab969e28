package trust

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/text"
)

// maxFolders limits the folders in which the files of one command are searched. A
// project with a command that names more folders cannot be trusted.
const maxFolders = 64

// Program is a command in the settings.
type Program struct {
	Argv      []string // expanded as far as possible; empty if only the environment matters
	Dir       string   // absolute path where it runs
	Env       []string // "NAME=value" from the settings; any value may name files
	Inherited []string // "NAME=value" from our environment; provides PATH and the variables in words
	Document  string   // absolute path of an OpenAPI document, which is read instead of run
}

// reach finds the files that one command may run.
//
// It interprets a word in every way that a shell, an interpreter or an option
// could, and searches every folder that the command names. Missing files are not
// recorded: each check searches again, and reports a file that has since been
// created as added.
type reach struct {
	*cover
	program Program
	words   []string // the words of the command, without quotes or duplicates
	folders []string // absolute folders from which relative words may be resolved
	runners []runner
	scanned map[string]bool // scripts that were searched for the files they load
}

// program covers the files that a command may run.
func (c *cover) program(p Program) error {
	if p.Document != "" {
		return c.document(p.Document)
	}
	r := &reach{cover: c, program: p, scanned: map[string]bool{}}
	for i, word := range p.Argv {
		switch {
		case !c.started:
			r.addWords(word)
		case i > 0 && p.Argv[i-1] == "-m":
			r.words = append(r.words, strings.ReplaceAll(word, ".", "/"))
		case i > 0 || strings.Contains(word, "/"):
			r.words = append(r.words, word)
		}
	}
	for _, entry := range p.Env {
		_, value, _ := strings.Cut(entry, "=")
		r.addWords(value)
	}
	switch {
	case c.started && len(p.Argv) > 0:
		r.addRunner(p.Argv[0])
	case !c.scripts:
		for _, word := range r.words {
			r.addRunner(word)
		}
	}
	r.folders = []string{p.Dir, c.root}
	for i := 0; i < len(r.folders); i++ { // folder may append to the list
		if i == maxFolders {
			return fmt.Errorf("covering %q: it names more than %d folders", strings.Join(p.Argv, " "), maxFolders)
		}
		if err := r.folder(r.folders[i]); err != nil {
			return err
		}
	}
	return errors.Join(r.path(), r.codeFolders(), r.local())
}

// addWords adds a word as a whole, the pieces into which a shell or an option may
// split it, and the word without its quotes.
func (r *reach) addWords(word string) {
	word = r.expand(word)
	bare := strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(word)
	for _, w := range slices.Concat([]string{word}, pieces(word), pieces(bare)) {
		for _, form := range forms(w) {
			if form != "" && !slices.Contains(r.words, form) {
				r.words = append(r.words, form)
			}
		}
	}
}

// These are compiled when a project is checked, not at every start.
var (
	processFolder = lazy.NewRegexp(`/proc/[^/\s]+/(?:task/[^/\s]+/)?(cwd|root)\b`)
	variable      = lazy.NewRegexp(`\$(?:\{(\w+)[^}]*\}|(\w+))|%(\w+)%`)
)

// expand replaces variables as a shell would, as far as they are known. An unknown
// variable becomes ".", so that it can stand for any folder that the command
// names.
func (r *reach) expand(word string) string {
	word = processFolder.Get().ReplaceAllStringFunc(word, func(m string) string {
		if strings.HasSuffix(m, "/root") {
			return ""
		}
		return r.program.Dir
	})
	return variable.Get().ReplaceAllStringFunc(word, func(m string) string {
		groups := variable.Get().FindStringSubmatch(m)
		switch name := cmp.Or(groups[1], groups[2], groups[3]); name {
		case "TOOLREG_PROJECT_ROOT":
			return r.root
		case "PWD":
			return r.program.Dir
		default:
			if value, ok := r.valueOf(name); ok {
				return value
			}
			return "."
		}
	})
}

// forms returns the possible meanings of a word: a file, the value after an option
// letter (-rFILE), a file of arguments (@FILE), or a module (a.b).
func forms(word string) []string {
	out := []string{word}
	if rest, ok := strings.CutPrefix(word, "@"); ok {
		out = append(out, rest)
	}
	if len(word) > 1 && word[0] == '-' && word[1] != '-' {
		word = word[2:]
		out = append(out, word)
	}
	if !strings.Contains(word, "/") && strings.Contains(strings.Trim(word, "."), ".") {
		var path string
		for name := range strings.SplitSeq(word, ".") { // importing a.b runs a first
			path = filepath.Join(path, name)
			out = append(out, path)
		}
	}
	return out
}

// folder covers the files in one folder that the words name, and adds the folders
// that they name.
func (r *reach) folder(dir string) error {
	for _, word := range r.words {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		} else if err := r.word(filepath.Join(dir, path)); err != nil {
			// The part before it may be unknown, as in $(pwd)/x.
			return err
		}
		if err := r.word(path); err != nil {
			return err
		}
	}
	return r.entries(dir)
}

// word covers the files that a path could mean: as written, with an extension, or
// as a pattern.
func (r *reach) word(path string) error {
	parent, base := filepath.Split(path)
	names := r.listDir(filepath.Clean(parent))
	for _, extension := range extensions() {
		if !slices.Contains(names, base+extension) {
			r.missing(path + extension)
		} else if err := r.file(path + extension); err != nil {
			return err
		}
	}
	if strings.ContainsAny(path, "*?") {
		matches, _ := filepath.Glob(path) // an invalid pattern matches nothing
		for _, m := range matches {
			if err := r.file(m); err != nil {
				return err
			}
		}
	}
	return r.file(path)
}

// file covers one file in the project, or adds a folder to search.
func (r *reach) file(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil: // a missing file cannot be run
		r.missing(path)
		return nil
	case info.IsDir():
		r.folders = text.AppendNew(r.folders, filepath.Clean(path))
		return nil
	case !r.inside(path):
		return nil
	}
	if err := r.add(path); err != nil {
		return err
	}
	if err := r.siblings(path); err != nil {
		return err
	}
	return r.loads(path)
}

// path covers the program in the folders of PATH. In folders of PATH that are
// inside the project it covers every file, because a file added there would be
// found first.
func (r *reach) path() error {
	r.onPath()
	for _, dir := range r.folderList("PATH") {
		for _, name := range r.listDir(dir) {
			if err := r.add(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		for _, word := range r.program.Argv {
			path := filepath.Join(dir, word)
			if _, err := os.Stat(path); err == nil && filepath.IsLocal(word) && r.inside(path) {
				if err := r.add(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// onPath records where PATH finds the program, if that is outside the project.
func (r *reach) onPath() {
	if r.scripts || len(r.program.Argv) == 0 {
		return
	}
	program := r.program.Argv[0]
	if filepath.Base(program) != program { // PATH is for names
		return
	}
	for _, dir := range r.folderList("PATH") {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if !r.inside(path) {
			name := program + mark + "on PATH"
			r.files[name] = File{Name: name, Path: path, Outside: true}
		}
		return
	}
}

// folderList returns the folders in a variable such as PATH, as absolute paths.
func (r *reach) folderList(name string) []string {
	var out []string
	value, _ := r.valueOf(name)
	for _, dir := range filepath.SplitList(r.expand(value)) {
		out = append(out, filepath.Clean(expand.From(r.program.Dir, dir)))
	}
	return out
}

func (r *reach) valueOf(name string) (string, bool) {
	return expand.Find(slices.Concat(r.program.Inherited, r.program.Env), name)
}

// maxScript is the size of the largest script that is searched for the files it
// loads.
const maxScript = 256 << 10

// Patterns for the files that scripts load by name: files that a shell script
// sources or passes to an interpreter, and relative imports in JavaScript. They
// find ordinary code. A script could also load files in hidden ways, but its
// author has no reason to, because the script itself is trusted.
var (
	sourced = lazy.NewRegexp(`(?m)(?:^|[;&|(){}!]|\b(?:if|then|else|do|while|until))[ \t]*(?:exec[ \t]+)?` +
		`(?:source|\.|(?:ba|da|z|k)?sh|python[0-9.]*|node|ruby|perl)[ \t]+([^\n;]+)`)
	imported = lazy.NewRegexp(`\b(?:from|import|require)\s*\(?\s*["'](\.\.?/[^"'\n]+)["']`)
)

// loads covers the files that a script loads by name, and recursively the files
// that those load.
func (r *reach) loads(path string) error {
	if r.scanned[path] {
		return nil
	}
	r.scanned[path] = true
	extension := filepath.Ext(path)
	isShell := extension == "" || slices.Contains(strings.Fields(shellScripts), extension)
	if !isShell && !slices.Contains(strings.Fields(javaScripts), extension) {
		return nil
	}
	script, err := Read(path, maxScript)
	if err != nil { // too large, or unreadable, so that it cannot run
		return nil
	}
	if isShell && bytes.HasPrefix(script.Data, []byte("#!")) {
		first, _, _ := bytes.Cut(script.Data, []byte("\n"))
		isShell = bytes.HasSuffix(bytes.TrimSpace(first), []byte("sh"))
	}
	dir := filepath.Dir(path)
	if !isShell {
		return r.modules(dir, imported.Get().FindAllSubmatch(script.Data, -1))
	}
	for _, match := range sourced.Get().FindAllSubmatch(script.Data, -1) {
		words := strings.NewReplacer(`"`, "", "'", "").Replace(r.expand(string(match[1])))
		for _, word := range pieces(words) {
			// Scripts often compute their own folder, as in $(dirname "$0")/x.
			for _, from := range []string{dir, r.program.Dir, r.root} {
				if err := r.addLoaded(filepath.Join(from, word)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// modules covers the modules that a JavaScript file imports.
func (r *reach) modules(dir string, names [][][]byte) error {
	for _, match := range names {
		path := filepath.Join(dir, string(match[1]))
		for _, file := range []string{path, strings.TrimSuffix(path, ".js") + ".ts",
			filepath.Join(path, "index"), filepath.Join(path, "package.json")} {
			if err := r.addLoaded(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLoaded covers a file, with or without an extension, and the files that it loads.
func (r *reach) addLoaded(path string) error {
	names := r.listDir(filepath.Dir(path))
	for _, extension := range append(extensions(), "") {
		name := path + extension
		if !slices.Contains(names, filepath.Base(name)) {
			r.missing(name)
			continue
		}
		if err := r.add(name); err != nil {
			return err
		}
		if err := r.loads(name); err != nil {
			return err
		}
	}
	return nil
}
