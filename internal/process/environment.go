package process

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// BaseEnv selects the variables that programs need from environ ("K=V"
// entries): PATH, HOME, USER, LANG, TMPDIR, XDG_*, proxies, SSL_*, LOGNAME,
// SHELL, TZ, LANGUAGE and LC_*, and on Windows the variables without which
// programs do not start. It keeps the order.
func BaseEnv(environ []string) []string {
	out := make([]string, 0, 16)
	for _, entry := range environ {
		if name, _, ok := strings.Cut(entry, "="); ok && isBase(name) {
			out = append(out, entry)
		}
	}
	return out
}

func isBase(name string) bool {
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
		if isWindowsBase(name) {
			return true
		}
	}
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR":
		return true
	}
	for _, prefix := range []string{"XDG_", "SSL_", "LC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch strings.ToLower(name) {
	case "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy":
		return true
	}
	return false
}

func isWindowsBase(name string) bool {
	return slices.Contains([]string{
		"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
		"COMMONPROGRAMFILES", "ALLUSERSPROFILE", "PUBLIC", "USERPROFILE", "USERNAME", "USERDOMAIN",
		"HOMEDRIVE", "HOMEPATH", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
		"TEMP", "TMP", "OS", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS",
	}, name)
}

// DepthVariable is the variable that contains the number of tool runs that
// enclose a child. Inside a tool's run, toolreg does not ask the user or grant
// trust, because a tool must not approve itself.
const DepthVariable = "TOOLREG_DEPTH"

// Depth returns the number of tool runs that enclose a process with this
// environment. A value that is not a number means 1.
func Depth(environ []string) int {
	v, ok := expand.Find(environ, DepthVariable)
	if !ok || v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 1
	}
	return n
}

// InsideTool reports whether this process is part of a tool's run: its
// environment says so, or it is a descendant of a toolreg process, which a tool
// cannot hide.
func InsideTool(environ []string) bool {
	return Depth(environ) > 0 || hasAncestor(programName)
}

// programName is the name of toolreg's processes, see [Adopt].
const programName = "toolreg"

// ServerVariable is the variable that contains the name of the MCP server that toolreg
// started, for the server and what it starts.
const ServerVariable = "TOOLREG_SERVER"

// InsideServer returns the name of the MCP server, started by toolreg, of which this
// process is a part: its environment or that of an ancestor says so. A program between
// them may have passed on only some variables. If it passed on none and replaced itself by
// this process, the name is "".
func InsideServer(environ []string) (name string, ok bool) {
	if name, ok = expand.Find(environ, ServerVariable); ok {
		return name, true
	}
	if !hasAncestor(programName) { // its parents' environments need not be read
		return "", false
	}
	if name, ok = ancestorVariable(ServerVariable); ok {
		return name, true
	}
	return "", Depth(environ) == 0 && parentHasSameName() && ParentFeedsStdin()
}

// ChildDepth returns the environment entry with the depth of children of a
// process with this environment. It distinguishes runs by a tool from runs by
// the user.
func ChildDepth(environ []string) string {
	return DepthVariable + "=" + strconv.Itoa(Depth(environ)+1)
}

// ChildEnviron returns an environment with the depth of a child.
func ChildEnviron(environ []string) []string {
	return append(slices.Clone(environ), ChildDepth(environ))
}

// absolutePATH returns an environment without the relative and empty entries of its PATH,
// which would find programs in the child's working directory. The result is never nil.
func absolutePATH(environ []string) []string {
	out := make([]string, len(environ))
	for i, entry := range environ {
		name, path, ok := expand.Cut(entry)
		if out[i] = entry; !ok || expand.Key(name) != expand.Key("PATH") {
			continue
		}
		dirs := filepath.SplitList(path)
		kept := slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return !filepath.IsAbs(dir) })
		switch {
		case len(kept) == len(dirs) && path != "":
		case len(kept) == 0: // an empty PATH would be the current folder
			out[i] = name + "=" + noProgram
		default:
			out[i] = name + "=" + strings.Join(kept, string(filepath.ListSeparator))
		}
	}
	return out
}

// noProgram is a PATH with which no program is found.
const noProgram = "/nonexistent"
