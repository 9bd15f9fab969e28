package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/paths"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// projectDir is the folder that marks a project root and contains its settings.
const projectDir = ".toolreg"

// ProtectedPaths returns the absolute paths, files and folders, where toolreg
// looks for settings. No tool may change them, since settings decide what tools
// may do. files are those of --settings, relative to dir.
func (s *Settings) ProtectedPaths(environ []string, dir string, files []string) []string {
	env := expand.NewEnviron(environ)
	out := []string{filepath.Join(s.ProjectRoot, ".toolreg"), systemDir(env)}
	if user := userDir(env); user != "" {
		out = append(out, user)
	}
	out = append(out, s.importPaths...)
	for _, f := range files {
		if !filepath.IsAbs(f) {
			f = filepath.Join(dir, f)
		}
		out = append(out, f)
	}
	return out
}

// UserDir returns the folder of the user's own settings and plugins, "" if the
// environment names none.
func UserDir(environ []string) string { return userDir(expand.NewEnviron(environ)) }

func userDir(e expand.Environ) string {
	if dir := e.Get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolreg")
	}
	if dir := e.Get("APPDATA"); runtime.GOOS == "windows" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolreg")
	}
	if home := e.Home(); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "toolreg")
	}
	return ""
}

func systemDir(e expand.Environ) string {
	if dir := e.Get("PROGRAMDATA"); runtime.GOOS == "windows" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolreg")
	}
	return filepath.FromSlash("/etc/toolreg")
}

// FileIn returns the settings file of a folder, "" if there is none. Two of
// them in one folder are an [*Error].
func FileIn(dir string) (string, error) {
	path, problem := findFile(dir)
	if problem != nil {
		return "", NewError([]document.Problem{*problem})
	}
	return path, nil
}

// findFile returns the settings file of a folder, "" if there is none. Two
// formats in one folder are a problem, because it would be unclear which one
// applies.
func findFile(dir string) (string, *document.Problem) {
	if dir == "" {
		return "", nil
	}
	var found []string
	for _, name := range []string{"settings.yaml", "settings.yml", "settings.json"} {
		path := filepath.Join(dir, name)
		_, err := os.Lstat(path)
		switch {
		case err == nil:
			found = append(found, path)
		case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
		default:
			return "", &document.Problem{File: path, Message: "cannot be inspected: " + document.PlainError(err)}
		}
	}
	if len(found) > 1 {
		return "", &document.Problem{File: found[1], Message: "exists next to " + filepath.Base(found[0]), Hint: "keep one of them"}
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0], nil
}

// isNotDir reports that a part of the path is a file: nothing can be below it.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// foundRoot is the result of looking for the project root.
type foundRoot struct {
	dir    string // absolute
	marked bool   // it contains .toolreg/ or .git
	note   string // why a marked folder was skipped; may be empty
}

// findRoot returns the nearest folder from dir upwards that contains .toolreg/
// or .git, or dir itself. Above dir it stops at the home folder, at file system
// boundaries, and at markers that somebody else may have created.
func findRoot(dir, home string) foundRoot {
	start, err := os.Stat(dir)
	if err != nil {
		return foundRoot{dir: dir}
	}
	home = paths.Real(home)
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil || trust.Device(info) != trust.Device(start) || at != dir && home != "" && paths.Real(at) == home {
			return foundRoot{dir: dir}
		}
		if marker := markerIn(at); marker != "" {
			if reason := trust.Foreign(marker); reason != "" {
				return foundRoot{dir: dir, note: fmt.Sprintf("%s does not make a project root: %s", marker, reason)}
			}
			return foundRoot{dir: at, marked: true}
		}
		if filepath.Dir(at) == at {
			return foundRoot{dir: dir}
		}
	}
}

// markerIn returns the path of what makes a folder a project root; "" if
// nothing does. In a linked work tree .git is a file.
func markerIn(dir string) string {
	path := filepath.Join(dir, projectDir)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	path = filepath.Join(dir, ".git")
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	return ""
}
