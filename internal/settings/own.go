package settings

import (
	"path/filepath"

	"github.com/toolreg/toolreg/internal/expand"
)

// OwnPaths returns the absolute paths, files and folders, where settings are
// looked for: no tool may change what is there, since settings decide what tools
// may do. files are those of --settings, relative to dir.
func (s *Settings) OwnPaths(environ []string, dir string, files []string) []string {
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

// UserDir returns the folder of the user's own settings and plugins, "" where
// the environment names none.
func UserDir(environ []string) string { return userDir(expand.NewEnviron(environ)) }
