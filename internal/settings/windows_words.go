package settings

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// noteWindows tells of entries that were written for the command interpreter of Windows: those that
// run it elsewhere, and those with %NAME%, which nothing expands where the interpreter is not run.
func (l *loader) noteWindows(set *Settings) {
	for i := range set.Servers {
		s := &set.Servers[i]
		if s.IsOff() || s.Err != nil || s.Command == "" {
			continue
		}
		note := func(hint, format string, args ...any) {
			l.diags = append(l.diags, registry.Diagnostic{Severity: registry.SeverityWarning, Code: "windows_entry", Source: registry.MCPPrefix + s.Name,
				Message: fmt.Sprintf("server %q (%s) ", s.Name, s.Origin) + fmt.Sprintf(format, args...), Hint: hint})
		}
		program := strings.TrimSuffix(strings.ToLower(s.Command), ".exe")
		isShell := program == "cmd" && len(s.Args) > 1 && strings.EqualFold(s.Args[0], "/c")
		if runtime.GOOS != "windows" {
			switch plain := cutExtension(s.Command); {
			case isShell:
				args, _ := json.Marshal(s.Args[2:]) // of strings, which cannot fail
				note(fmt.Sprintf("write command: %s, args: %s", s.Args[1], args), "runs cmd /c, which only Windows has")
			case isWindowsPath(s.Command):
				note("write the path that the program has on this machine", "runs %q, which is a path of Windows", s.Command)
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
}

// cutExtension returns the name of a program that is a script or program of Windows without its
// extension; "" for any other.
func cutExtension(command string) string {
	for _, extension := range []string{".cmd", ".bat", ".exe"} {
		if n := len(command) - len(extension); n > 0 && strings.EqualFold(command[n:], extension) && !strings.ContainsAny(command, `/\`) {
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
