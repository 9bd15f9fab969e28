package agents

import (
	"path/filepath"
	"runtime"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

// reader finds the servers in the content of a file.
type reader = func(docs *document.Foreign, path string, data []byte) ([]imports.Server, []document.Problem)

// folders has the folders where programs store their files.
type folders struct {
	root string // project root
	home string // home folder; "" if unknown
	env  expand.Environ
}

func (w folders) project(read reader, path ...string) imports.File {
	return imports.File{Path: filepath.Join(append([]string{w.root}, path...)...), Project: true, Read: read}
}

// user returns a file below a folder of the user, without a path if the folder is unknown.
func (w folders) user(read reader, dir string, path ...string) imports.File {
	if !filepath.IsAbs(dir) {
		return imports.File{}
	}
	return imports.File{Path: filepath.Join(append([]string{dir}, path...)...), Read: read}
}

// named returns the folder in an environment variable, or else one in the home
// folder.
func (w folders) named(variable string, path ...string) string {
	if dir := w.env.Get(variable); filepath.IsAbs(dir) {
		return dir
	}
	if w.home == "" {
		return ""
	}
	return filepath.Join(append([]string{w.home}, path...)...)
}

// application returns the folder in which graphical programs store their settings.
func (w folders) application() string {
	switch runtime.GOOS {
	case "darwin":
		return w.named("", "Library", "Application Support")
	case "windows":
		return w.named("APPDATA", "AppData", "Roaming")
	}
	return w.named("XDG_CONFIG_HOME", ".config")
}

// config returns the folder in which some other programs store theirs; on Windows it is the same.
func (w folders) config(variable string) string {
	if runtime.GOOS == "windows" {
		return w.application()
	}
	return w.named(variable, ".config")
}
