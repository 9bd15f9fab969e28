package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// splitCommands moves arguments that were written in a server's command, as in "npx -y foo", to its
// args, unless a file has that name. The server is then the same as if it had been written in two
// settings. Trust covers both readings, since the file may appear later.
func splitCommands(set *Settings, env expand.Environ) (out []registry.Diagnostic) {
	for i := range set.Servers {
		s := &set.Servers[i]
		words := table.CommandWords(s.Command)
		if words == nil || s.Err != nil || isCommandLine(set, s) || isProgram(s, set.ProjectRoot, env) {
			continue
		}
		s.Command, s.Args, s.Split = words[0], append(words[1:], s.Args...), true
		if s.IsOff() {
			continue
		}
		d := registry.Diagnostic{Severity: registry.SeverityInfo,
			Code: "command_split", Source: registry.MCPPrefix + s.Name,
			Message: fmt.Sprintf(
				"the command of server %q (%s) was split into words, because there is no file of that name",
				s.Name, s.Origin)}
		if args, err := json.Marshal(secret.Args(s.Args)); err == nil {
			d.Hint = fmt.Sprintf("write command: %s, args: %s", s.Command, args)
		}
		out = append(out, d)
	}
	return out
}

// isCommandLine reports whether the setting or flag of a server is a whole command line,
// which was split when it was read.
func isCommandLine(set *Settings, s *Server) bool {
	return s.Origin.Scope == ScopeFlag || s.Origin.Scope == ScopeEnv ||
		!slices.ContainsFunc(set.merged.Named(table.ServersKey), func(e Named) bool { return e.Name == s.Name })
}

// isProgram reports whether the whole command of a server is a file: any file at its path,
// or a program on its PATH.
func isProgram(s *Server, root string, env expand.Environ) bool {
	known := expandKnown(env)
	command, err := known(s.Command)
	if err != nil {
		return true // the error says which variable is missing
	}
	dir, err := known(s.Cwd)
	if err != nil {
		return true
	}
	dir = expand.From(root, dir)
	path, _ := env.Lookup("PATH")
	for _, p := range s.Env {
		if value, err := known(p.Value); err == nil && p.Name == "PATH" {
			path = value
		}
	}
	_, err = process.Spec{Argv: []string{command}, Dir: dir, Env: []string{"PATH=" + path}}.Program()
	return !errors.Is(err, fs.ErrNotExist)
}

// noteWindows reports entries that were written for Windows: those that run its command interpreter
// on another system, and those with %NAME% where no interpreter expands it.
func noteWindows(servers []Server) (out []registry.Diagnostic) {
	for i := range servers {
		s := &servers[i]
		if s.IsOff() || s.Err != nil || s.Command == "" {
			continue
		}
		note := func(hint, format string, args ...any) {
			out = append(out, registry.Warning("windows_entry", registry.MCPPrefix+s.Name,
				fmt.Sprintf("server %q (%s) ", s.Name, s.Origin)+fmt.Sprintf(format, args...), hint))
		}
		program := strings.TrimSuffix(strings.ToLower(s.Command), ".exe")
		isShell := program == "cmd" && len(s.Args) > 1 && strings.EqualFold(s.Args[0], "/c")
		if runtime.GOOS != "windows" {
			switch plain := cutExtension(s.Command); {
			case isShell:
				args, _ := json.Marshal(secret.Args(s.Args[2:])) // of strings, which cannot fail
				note(fmt.Sprintf("write command: %s, args: %s", s.Args[1], args), "runs cmd /c, which only Windows has")
			case isWindowsPath(s.Command):
				note("write the path that the program has on this machine",
					"runs %q, which is a path of Windows", s.Command)
			case plain != "":
				note("write command: "+plain, "runs %s, which is a name of Windows", s.Command)
			}
		}
		if isShell && runtime.GOOS == "windows" {
			continue // it expands them
		}
		if name := percentVariable(s); name != "" {
			note("write ${"+name+"}", "has %%%s%%, which is not expanded", name)
		}
	}
	return out
}

// cutExtension returns the name of a Windows program or script without its extension; "" for other
// commands.
func cutExtension(command string) string {
	for _, extension := range []string{".cmd", ".bat", ".exe"} {
		if n := len(command) - len(extension); n > 0 &&
			strings.EqualFold(command[n:], extension) && !strings.ContainsAny(command, `/\`) {
			return command[:n]
		}
	}
	return ""
}

// isWindowsPath reports whether a text begins with a drive and a backslash.
func isWindowsPath(s string) bool {
	return len(s) > 2 && s[1] == ':' && s[2] == '\\' && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
}

// percentVariable returns the name of the first variable that is written as %NAME%.
func percentVariable(s *Server) string {
	texts := append([]string{s.Command, s.Cwd}, s.Args...)
	for _, v := range s.Env {
		texts = append(texts, v.Value)
	}
	for _, text := range texts {
		if !strings.Contains(text, "%") {
			continue
		}
		if found := regexp.MustCompile(`(?i)%(APPDATA|LOCALAPPDATA|USERPROFILE|HOMEPATH|USERNAME|TEMP|TMP|PROGRAMDATA|PROGRAMFILES|PATH|SYSTEMROOT|[A-Z][A-Z0-9]*_[A-Z0-9_]+)%`).FindStringSubmatch(text); found != nil {
			return found[1]
		}
	}
	return ""
}
