package trust

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxScript is the size of the largest script that is searched for the files it
// loads.
const maxScript = 256 << 10

// Patterns for the files that scripts load by name: files that a shell script
// sources or passes to an interpreter, and relative imports in JavaScript. They
// find ordinary code. A script could also load files in hidden ways, but its
// author has no reason to, because the script itself is trusted.
var (
	sourced = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)(?:^|[;&|(){}!]|\b(?:if|then|else|do|while|until))[ \t]*(?:exec[ \t]+)?` +
			`(?:source|\.|(?:ba|da|z|k)?sh|python[0-9.]*|node|ruby|perl)[ \t]+([^\n;]+)`)
	})
	imported = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:from|import|require)\s*\(?\s*["'](\.\.?/[^"'\n]+)["']`)
	})
)

const (
	shellScripts = ".sh .bash .zsh .ksh"
	javaScripts  = ".js .cjs .mjs .ts .cts .mts .jsx .tsx"
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
		return r.modules(dir, imported().FindAllSubmatch(script.Data, -1))
	}
	for _, match := range sourced().FindAllSubmatch(script.Data, -1) {
		words := strings.NewReplacer(`"`, "", "'", "").Replace(r.expand(string(match[1])))
		for _, word := range pieces(words) {
			// Scripts often compute their own folder, as in $(dirname "$0")/x.
			for _, from := range []string{dir, r.program.Dir, r.root} {
				if err := r.load(filepath.Join(from, word)); err != nil {
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
			if err := r.load(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// load covers a file, with or without an extension, and the files that it loads.
func (r *reach) load(path string) error {
	names := r.list(filepath.Dir(path)).names
	for _, extension := range append(extensions(), "") {
		name := path + extension
		if !slices.Contains(names, filepath.Base(name)) {
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
