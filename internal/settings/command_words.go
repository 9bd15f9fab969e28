package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// splitCommands moves arguments that were written in a server's command, as in
// "npx -y foo", to its args, unless there is a file of that name. From then on the server
// is the same as if it had been written so. Consent covers both readings, since the file
// may appear later.
func (l *loader) splitCommands(set *Settings) {
	for i := range set.Servers {
		s := &set.Servers[i]
		words := table.CommandWords(s.Command)
		if words == nil || s.Err != nil || isCommandLine(set, s) || l.isProgram(s) {
			continue
		}
		s.Command, s.Args, s.Split = words[0], append(words[1:], s.Args...), true
		if s.IsOff() {
			continue
		}
		d := registry.Diagnostic{Severity: registry.SeverityInfo, Code: "command_split", Source: registry.MCPPrefix + s.Name,
			Message: fmt.Sprintf("the command of server %q (%s) was split into words, because there is no file of that name", s.Name, s.Origin)}
		if args, err := json.Marshal(s.Args); err == nil {
			d.Hint = fmt.Sprintf("write command: %s, args: %s", s.Command, args)
		}
		l.diags = append(l.diags, d)
	}
}

// isCommandLine reports whether the setting or flag of a server is a whole command line,
// which was split when it was read.
func isCommandLine(set *Settings, s *Server) bool {
	return s.Origin.Scope == ScopeFlag || s.Origin.Scope == ScopeEnv ||
		!slices.ContainsFunc(set.merged.named(serversKey), func(e Named) bool { return e.Name == s.Name })
}

// isProgram reports whether the whole command of a server is a file: any file at its path,
// or a program on its PATH.
func (l *loader) isProgram(s *Server) bool {
	command, err := l.expandKnown(s.Command)
	if err != nil {
		return true // the error says which variable is missing
	}
	dir, err := l.expandKnown(s.Cwd)
	if err != nil {
		return true
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(l.root, dir)
	}
	path, _ := l.env.Lookup("PATH")
	for _, p := range s.Env {
		if value, err := l.expandKnown(p.Value); err == nil && p.Name == "PATH" {
			path = value
		}
	}
	_, err = process.Spec{Argv: []string{command}, Dir: dir, Env: []string{"PATH=" + path}}.Program()
	return !errors.Is(err, fs.ErrNotExist)
}
