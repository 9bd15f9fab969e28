package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// projectFolder is the folder that marks a project root and contains its settings.
const projectFolder = ".toolreg"

// UserFolder returns the folder of the user's own settings and plugins, or "" if
// the environment does not determine one.
func UserFolder(environ []string) string { return userFolder(expand.NewEnviron(environ)) }

func userFolder(e expand.Environ) string {
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

func systemFolder(e expand.Environ) string {
	if dir := e.Get("PROGRAMDATA"); runtime.GOOS == "windows" && filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolreg")
	}
	return filepath.FromSlash("/etc/toolreg")
}

// fileIn returns the settings file in a folder, or "" if there is none. Two
// formats in one folder are a problem, because it would be unclear which one
// applies.
func fileIn(dir string) (string, *document.Problem) {
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
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		default:
			return "", &document.Problem{File: path, Message: "cannot be inspected: " + text.Cause(err).Error()}
		}
	}
	if len(found) > 1 {
		return "", &document.Problem{File: found[1],
			Message: "exists next to " + filepath.Base(found[0]), Hint: "keep one of them"}
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0], nil
}

// findRoot returns the nearest folder from dir upwards that contains .toolreg/
// or .git, or dir itself. Above dir it stops at the home folder, at file system
// boundaries, and at markers that another user may have created. In the last case
// note says why; otherwise it is empty.
func findRoot(dir, home string) (root, note string) {
	start, err := os.Stat(dir)
	if err != nil {
		return dir, ""
	}
	home = trust.Real(home)
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil || trust.Device(info) != trust.Device(start) ||
			at != dir && home != "" && trust.Real(at) == home {
			return dir, ""
		}
		if marker := markerIn(at); marker != "" {
			if reason := trust.Foreign(marker); reason != "" {
				return dir, fmt.Sprintf("%s does not make a project root: %s", marker, reason)
			}
			return at, ""
		}
		if filepath.Dir(at) == at {
			return dir, ""
		}
	}
}

// markerIn returns the path of the marker that makes a folder a project root, or
// "" if it has none. In a linked worktree .git is a file.
func markerIn(dir string) string {
	path := filepath.Join(dir, projectFolder)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return path
	}
	path = filepath.Join(dir, ".git")
	if _, err := os.Lstat(path); err == nil {
		return path
	}
	return ""
}

// PlaceState is what happened to a file that may contain settings.
type PlaceState string

// The states of a [Place].
const (
	PlaceRead    PlaceState = "read"    // its settings apply
	PlaceAbsent  PlaceState = "absent"  // it does not exist
	PlaceSkipped PlaceState = "skipped" // it exists and is ignored
	PlaceRefused PlaceState = "refused" // it exists and cannot be used
)

// Place is a file, or a pattern of names, where toolreg looked for settings.
type Place struct {
	Scope  Scope      `json:"scope"`
	Path   string     `json:"path"` // absolute
	State  PlaceState `json:"state"`
	Reason string     `json:"reason,omitempty"` // why it is ignored
}

// expandKnown returns a function that expands a word as when a program is run.
func expandKnown(env expand.Environ) func(string) (string, error) {
	return func(s string) (string, error) { return expand.Word(s, env.Lookup) }
}

// FileIn returns the settings file in a folder, or "" if there is none. Two of
// them in one folder are a [*document.Error].
func FileIn(dir string) (string, error) {
	path, problem := fileIn(dir)
	if problem != nil {
		return "", document.NewError([]document.Problem{*problem})
	}
	return path, nil
}

// notTrusted is why a file of an untrusted project is left out.
const notTrusted = "not trusted; see `toolreg trust status`"

// NothingImportedError reports that --import found no server of a program.
type NothingImportedError struct {
	Program imports.Program
	Looked  []Place // where its servers would be
	grant   string  // the command that trusts the project
}

func (e *NothingImportedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no MCP servers of %s were found", e.Program.Title)
	for i, p := range e.Looked {
		sep := "; looked at "
		if i > 0 {
			sep = ", "
		}
		b.WriteString(sep + document.Visible(p.Path))
		switch {
		case p.State == PlaceAbsent:
			b.WriteString(" (absent)")
		case p.State == PlaceRead:
			b.WriteString(" (names none)")
		default:
			b.WriteString(" (" + p.Reason + ")")
		}
	}
	return b.String()
}

// Hint says what to do if a file of the project is left out.
func (e *NothingImportedError) Hint() string {
	if slices.ContainsFunc(e.Looked, func(p Place) bool { return p.Reason == notTrusted }) {
		return e.grant + ", or --trust-project for one run"
	}
	return ""
}
