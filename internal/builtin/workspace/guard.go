package workspace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Guarded reports whether a path relative to the workspace is one through
// which a tool could loosen its own leash or make other programs run
// something: git's folder, toolreg's settings and lock, the settings of other
// agents, start-up files of shells. Writing there is always asked about, even
// where everything else is allowed. Case and, as on Windows, dots and spaces
// at the end of a name do not count.
func Guarded(rel string) bool {
	parts := strings.Split(strings.ToLower(filepath.ToSlash(path.Clean(rel))), "/")
	for i, part := range parts {
		parts[i] = plainName(part)
	}
	for i, part := range parts {
		switch part {
		case ".git", ".toolreg", ".gemini", ".claude", ".cursor", ".codex":
			return true
		case ".vscode", ".zed", ".windsurf":
			// Tasks, servers and settings that these editors act upon.
			return i+1 < len(parts)
		}
	}
	return slices.Contains(guardedNames(), parts[len(parts)-1])
}

func guardedNames() []string {
	return []string{
		".envrc", "toolreg.lock", ".mcp.json", "mcp.json", "opencode.json",
		".gitmodules", ".gitconfig", ".gitattributes",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc", ".login",
	}
}

// plainName takes off what some file systems ignore in a name: dots and spaces
// at the end, a stream suffix, and characters without width.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name)
	if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
		return trimmed
	}
	return name
}

// SubjectPaths lists what a call on the path given as name touches, for policy
// rules: the path as written, the real one behind its links, and the name
// under which a guarded folder is known when the file system takes another
// name for it.
func (w *Dir) SubjectPaths(names ...string) ([]string, error) {
	var out []string
	add := func(p string) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, name := range names {
		rel, err := w.resolve(name)
		if err != nil {
			return nil, err
		}
		add(rel)
		if written, err := w.relative(name); err == nil {
			add(written)
		}
		for _, folder := range []string{".git", ".toolreg"} {
			if below, ok := w.within(rel, folder); ok {
				add(path.Join(folder, below))
			}
		}
	}
	return out, nil
}

// within reports whether rel is folder or lies in it by identity of the file
// system's objects, and what is left of rel behind it.
func (w *Dir) within(rel, folder string) (string, bool) {
	root, err := w.Root()
	if err != nil {
		return "", false
	}
	want, err := root.Stat(folder)
	if err != nil {
		return "", false
	}
	for at, below := rel, ""; at != "."; at, below = path.Dir(at), path.Join(path.Base(at), below) {
		if info, err := root.Stat(at); err == nil && os.SameFile(info, want) {
			return below, true
		}
	}
	return "", false
}

// Protect refuses rel when it is one of toolreg's own files, or lies in one of
// its folders: by name, whatever the case, and by identity.
func (w *Dir) Protect(rel string) error {
	root, err := w.Root()
	if err != nil {
		return err
	}
	for _, own := range w.protected {
		if w.named(rel, own) || w.identical(root, rel, own) {
			return &refusal{rel, "belongs to toolreg itself and is never changed by a tool"}
		}
	}
	return nil
}

// named compares by text, for files that do not exist yet.
func (w *Dir) named(rel, own string) bool {
	for _, base := range []string{w.dir, w.real} {
		at := filepath.Join(base, filepath.FromSlash(rel))
		if below, err := filepath.Rel(strings.ToLower(own), strings.ToLower(at)); err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return false
}

func (w *Dir) identical(root *os.Root, rel, own string) bool {
	var want fs.FileInfo
	want, err := os.Stat(own)
	if err != nil {
		return false
	}
	for at := rel; ; at = path.Dir(at) {
		if info, err := root.Stat(at); err == nil && os.SameFile(info, want) {
			return true
		}
		if at == "." {
			return false
		}
	}
}
