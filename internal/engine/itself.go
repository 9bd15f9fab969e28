package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
)

// shells are programs that run a line, and wrappers those that run a command among their
// arguments, on this machine.
const shells, wrappers = "sh bash dash ash zsh ksh fish cmd powershell pwsh", "env nice ionice nohup setsid stdbuf time timeout sudo doas " +
	"npx npm pnpx pnpm yarn bun bunx uvx uv pipx poetry go mise direnv"

// commands finds the commands of a shell line that have serve among their words.
var commands = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[;&|(])\s*(?:\w+=\S*\s+|exec\s+)*['"]?([^\s'";&|(]+)['"]?\s(?:[^;&|]*\s)?serve\b`)
})

// StartsToolreg reports whether a command line starts toolreg, as a server that would offer
// this registry to itself: the program is toolreg by name or a link to it, or it is a
// shell, a package runner or another wrapper that runs toolreg with serve among its words.
// Files of scripts are not read.
func StartsToolreg(argv []string, dir string, environ []string) bool {
	if len(argv) == 0 || argv[0] == "" {
		return false
	}
	if programName(argv[0]) == "toolreg" {
		return true
	}
	if !strings.Contains(strings.Join(argv, " "), "serve") {
		return false // without looking at files
	}
	self, err := os.Executable()
	if err != nil {
		self = "toolreg"
	}
	if path, err := (process.Spec{Argv: argv[:1], Dir: dir, Env: environ}).Program(); err == nil && sameFile(path, self) {
		return slices.Contains(argv, "serve")
	}
	isShell := slices.Contains(strings.Fields(shells), programName(argv[0]))
	if !isShell && !slices.Contains(strings.Fields(wrappers), programName(argv[0])) {
		return false
	}
	for i, word := range argv {
		if isToolreg(word, self) && slices.Contains(argv[i:], "serve") {
			return true
		}
		if !isShell {
			continue
		}
		for _, command := range commands().FindAllStringSubmatch(word, -1) {
			if isToolreg(command[1], self) {
				return true
			}
		}
	}
	return false
}

// isToolreg reports whether a word is the name of toolreg, with a version or without, or
// a path of this program.
func isToolreg(word, self string) bool {
	if i := strings.LastIndexByte(word, '@'); i > 0 {
		word = word[:i]
	}
	name := programName(word)
	return name == "toolreg" || name == programName(self) || filepath.IsAbs(word) && sameFile(word, self)
}

// programName returns the last part of a program's path, without .exe.
func programName(path string) string {
	return strings.TrimSuffix(strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:]), ".exe")
}

// sameFile reports whether two paths are the same file, after resolving links.
func sameFile(a, b string) bool {
	one, err := filepath.EvalSymlinks(a)
	if err != nil {
		return false
	}
	other, err := filepath.EvalSymlinks(b)
	return err == nil && one == other
}

// skipped returns why a server is not started, or "": it would be toolreg itself, or this
// run is inside a server that a toolreg started, whose list would contain itself without
// end. inside is [process.InsideServer].
func skipped(p *programs, inside func() (server string, ok bool), server *settings.Server) string {
	if name, ok := inside(); ok && name == "" {
		return "skipped: this toolreg runs inside a server of another"
	} else if ok {
		return fmt.Sprintf("skipped: this toolreg runs inside the server %q of another", name)
	}
	argv := append([]string{server.Command}, server.Args...)
	for i, word := range argv {
		if text, err := p.expander.Expand(word); err == nil {
			argv[i] = text
		}
	}
	if StartsToolreg(argv, folderIn(p.set.ProjectRoot, server.Cwd), p.environ) {
		return "skipped: it starts toolreg itself"
	}
	return ""
}
