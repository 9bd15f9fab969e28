package git

import (
	"cmp"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/text"
)

// maxConfigs limits how many git configuration files are read to check one
// file.
const maxConfigs = 50

// Uses reports whether git reads a file in a folder as configuration, or runs it or files in
// it because of its configuration: core.hooksPath, core.fsmonitor, filters. It checks the
// folder, the repositories that contain the file and the user's own configuration.
// Configuration files that cannot be read are skipped.
func (u User) Uses(file, folder string) bool {
	for top := filepath.Dir(file); ; top = filepath.Dir(top) {
		_, err := os.Lstat(filepath.Join(top, ".git"))
		if (err == nil || top == folder) && u.usesIn(top, file) {
			return true
		}
		if top == filepath.Dir(top) {
			return false
		}
	}
}

// usesIn is like Uses, for the repository whose working tree is top.
func (u User) usesIn(top, file string) bool {
	for _, dir := range Folders(top) {
		if isHook(file, filepath.Join(dir, "hooks")) {
			return true
		}
	}
	is := false
	all := u.eachNamed(top, func(key, path string) bool {
		is = isNamedBy(path, file, top) || (key == "core.hookspath" || key == "init.templatedir") && isHook(file, path)
		return !is
	})
	return is || !all
}

// eachNamed calls visit with the absolute path of each file that the configuration
// of a repository may refer to, until visit returns false. It returns false if
// there are too many configuration files to read them all.
func (u User) eachNamed(top string, visit func(key, path string) bool) (all bool) {
	configs := u.Configs()
	for _, dir := range Folders(top) {
		configs = append(configs, filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree"))
	}
	home, _ := u.Folders()
	for i := 0; i < len(configs); i++ {
		for s := range Settings(string(ReadFile(configs[i]))) {
			paths, base := pathsIn(s.Value), top
			switch s.Name {
			case "include.path", "includeif.path":
				paths, base = []string{s.Value}, filepath.Dir(configs[i])
				configs = text.AppendNew(configs, From(base, expand.Home(s.Value, home)))
			case "core.hookspath", "init.templatedir":
				paths = []string{s.Value}
			case "safe.directory", "maintenance.repo", "gui.recentrepo",
				"core.worktree", "remote.url", "remote.pushurl", "submodule.url":
				paths = nil // these refer to repositories
			}
			for _, path := range paths {
				if !visit(s.Name, From(base, expand.Home(path, home))) {
					return true
				}
			}
		}
		if i > maxConfigs {
			return false
		}
	}
	return true
}

// pathsIn returns the words of a value that may be paths. The value may be a
// shell command.
func pathsIn(value string) []string {
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`!();&|<>=", r) })
	return slices.DeleteFunc(append(words, value), func(word string) bool { return !strings.ContainsAny(word, "./") })
}

// isNamedBy reports whether file is path or below it, by name or through links.
// A folder that contains the whole working tree does not count.
func isNamedBy(path, file, top string) bool {
	if LiesIn(file, path) && !LiesIn(top, path) {
		return true
	}
	real := ResolveLinks(path)
	return LiesIn(file, real) && !LiesIn(top, real)
}

// ResolveLinks resolves the links in the existing part of an absolute path, and dangling links.
func ResolveLinks(path string) string { return FollowLinks(path, func(string) {}) }

// FollowLinks is ResolveLinks, and calls visit with each link on the way, whose folder has no links in its path.
func FollowLinks(path string, visit func(link string)) string {
	const maxLinks = 40 // as in Linux
	if !filepath.IsAbs(path) {
		return path
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := root, filepath.ToSlash(path[len(root):])
	for links := 0; rest != ""; {
		name, after, _ := strings.Cut(rest, "/")
		next := filepath.Join(at, name) // behind a link, ".." is the parent of its target
		info, err := os.Lstat(next)
		if err != nil && !strings.Contains("/"+rest+"/", "/../") {
			return filepath.Join(at, rest)
		}
		at, rest = next, after
		if err != nil || info.Mode().Type() != fs.ModeSymlink || links == maxLinks {
			continue
		}
		target, err := os.Readlink(next)
		if err != nil { // it was removed meanwhile
			continue
		}
		visit(next)
		links++
		if at = filepath.Dir(next); filepath.IsAbs(target) {
			at, target = root, target[len(filepath.VolumeName(target)):]
		}
		rest = filepath.ToSlash(target) + "/" + rest
	}
	return at
}

// isHook reports whether a folder of hooks contains a link to file.
func isHook(file, hooks string) bool {
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	entries, _ := os.ReadDir(hooks) // the folder may not exist
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		hook, err := os.Stat(filepath.Join(hooks, e.Name()))
		return err == nil && os.SameFile(hook, info)
	})
}

// Top returns the folder with a .git that is an absolute path or the nearest one above; "" if there is none.
func Top(path string) string {
	for ; ; path = filepath.Dir(path) {
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			return path
		}
		if path == filepath.Dir(path) {
			return ""
		}
	}
}

// Folders returns the absolute paths of the git folders of a working tree:
// .git or the folder it refers to, and the one shared with other working trees.
func Folders(top string) []string {
	dir := filepath.Join(top, ".git")
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeType == 0 {
		target, _ := strings.CutPrefix(readLine(dir), "gitdir:")
		dir = From(top, strings.TrimSpace(target))
	}
	if common := readLine(filepath.Join(dir, "commondir")); common != "" {
		return []string{dir, From(dir, common)}
	}
	return []string{dir}
}

// From returns the path that a name in a folder leads to, which may be absolute.
func From(dir, name string) string {
	return filepath.Clean(expand.From(dir, name))
}

// Named returns the paths that the configuration of one repository refers to,
// and the hooks that are links.
func (u User) Named(top string) []string {
	var out []string
	hooks := func(dir string) {
		entries, _ := os.ReadDir(dir) // the folder may not exist
		for _, e := range entries {
			if e.Type() == fs.ModeSymlink {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, dir := range Folders(top) {
		hooks(filepath.Join(dir, "hooks"))
	}
	u.eachNamed(top, func(key, path string) bool {
		out = append(out, path)
		if key == "core.hookspath" {
			hooks(path)
		}
		return true
	})
	return out
}

// LinkedWorktree returns the git folder of a linked worktree and the one that it
// shares with others, links resolved, or "" if top is not a linked worktree. Both
// must refer to each other, because any program can write a file .git that names a
// folder.
func LinkedWorktree(top string) (folder, common string) {
	if info, err := os.Lstat(filepath.Join(top, ".git")); err != nil || !info.Mode().IsRegular() {
		return "", ""
	}
	folders := Folders(top)
	if len(folders) != 2 {
		return "", ""
	}
	folder, common = ResolveLinks(folders[0]), ResolveLinks(folders[1])
	for _, name := range []string{"HEAD", "objects", "refs", "config"} {
		if _, err := os.Stat(filepath.Join(common, name)); err != nil {
			return "", ""
		}
	}
	if filepath.Dir(folder) != filepath.Join(common, "worktrees") ||
		Worktree(folder) != ResolveLinks(filepath.Join(top, ".git")) {
		return "", ""
	}
	return folder, common
}

// Worktree returns the path of the file .git of the linked worktree that a git folder belongs to, links
// resolved.
func Worktree(folder string) string {
	return ResolveLinks(From(folder, readLine(filepath.Join(folder, "gitdir"))))
}

// readLine returns the content of a file of one line; "" if it cannot be read.
func readLine(path string) string { return strings.TrimSpace(string(ReadFile(path))) }

// maxFile limits how much of a file is read, in bytes.
const maxFile = 1 << 20

// ReadFile returns the content of a regular file by its absolute path; nil if it cannot be
// read. It does not wait for the other end of a named pipe.
func ReadFile(path string) []byte {
	if !filepath.IsAbs(path) {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|OpenNonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return data
}

// LiesIn reports whether file is folder or below it, ignoring case.
func LiesIn(file, folder string) bool {
	file, folder = text.Folded(file), text.Folded(folder)
	return file == folder || strings.HasPrefix(file, folder+"/")
}

// User is where the settings of the user are. "" means the user's home, and
// $XDG_CONFIG_HOME or .config in the home.
type User struct{ Home, ConfigHome string }

// Configs returns the git configuration files that apply to all repositories.
func (u User) Configs() []string {
	home, config := u.Folders()
	if global, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok && u.Home == "" {
		return []string{"/etc/gitconfig", global}
	}
	return []string{"/etc/gitconfig", filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
}

// Folders returns the user's home and configuration folder.
func (u User) Folders() (home, config string) {
	home, config = u.Home, u.ConfigHome
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	config = cmp.Or(config, os.Getenv("XDG_CONFIG_HOME"))
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	return home, config
}

// Setting is one setting in a git configuration file.
type Setting struct {
	Header string // the text in the brackets of its section
	Key    string // in lower case
	Name   string // section.key in lower case, without the subsection
	Value  string
}

// Settings returns the settings in a git configuration file.
func Settings(text string) iter.Seq[Setting] {
	return func(yield func(Setting) bool) {
		text, section, header := strings.ReplaceAll(text, "\r\n", "\n"), "", ""
		for {
			text = strings.TrimLeft(text, "\ufeff \t\r\n")
			switch {
			case text == "":
				return
			case text[0] == '#' || text[0] == ';':
				_, text, _ = strings.Cut(text, "\n")
				continue
			case text[0] == '[':
				section, header, text = configSection(text[1:])
				continue
			}
			end := strings.IndexAny(text, "=\n")
			if end < 0 {
				text += "\n"
				end = len(text) - 1
			}
			key, value := text[:end], ""
			if text = text[end:]; text[0] == '=' {
				value, text = configValue(text[1:])
			}
			key = strings.ToLower(strings.TrimSpace(key))
			if !yield(Setting{header, key, section + "." + key, value}) {
				return
			}
		}
	}
}

// configSection parses a section header after its bracket.
func configSection(text string) (name, header, rest string) {
	quoted, end := false, len(text)
	for i := 0; i < len(text) && end == len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			end = i
		}
	}
	name, header = text[:end], text[:end]
	if i := strings.IndexAny(name, "\". \t"); i >= 0 {
		name = name[:i]
	}
	return strings.ToLower(name), header, text[min(end+1, len(text)):]
}

// configValue parses a value up to the end of its line. It removes quotes, escapes
// and a comment.
func configValue(text string) (value, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return strings.TrimSpace(b.String()), text[i:]
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\n' { // otherwise the value continues on the next line
				b.WriteByte(text[i])
			}
		case (c == '#' || c == ';') && !quoted:
			_, rest, _ = strings.Cut(text[i:], "\n")
			return strings.TrimSpace(b.String()), rest
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String()), ""
}
