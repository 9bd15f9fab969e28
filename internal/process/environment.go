package process

import (
	"runtime"
	"slices"
	"strings"
)

// BaseEnv selects from environ ("K=V" entries) the minimum that a program
// needs: PATH, HOME, USER, LANG, TMPDIR, XDG_*, proxies, SSL_* (spec section
// 4), the related LOGNAME, SHELL, TZ, LANGUAGE and LC_*, and on Windows the
// variables without which programs do not start. It keeps the order.
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
