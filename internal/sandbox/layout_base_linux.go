//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// hide returns the base path of a new empty folder or of an unreadable file.
func (l *layout) hide(isDir bool) string {
	l.counter++
	at := "hidden/" + strconv.Itoa(l.counter)
	if isDir {
		l.makeDir(at)
		return at
	}
	l.makeDir("hidden")
	l.op(launcher.Op{Kind: launcher.MakeFile, A: at})
	return at
}

// scratch returns the base path of folders for an overlay.
func (l *layout) scratch() string {
	l.counter++
	at := fmt.Sprintf("scratch/%d", l.counter)
	l.makeDir(at + "/upper")
	l.makeDir(at + "/work")
	return at
}

func (l *layout) op(op launcher.Op) { l.ops = append(l.ops, op) }

// makeDir makes a folder of the base and those above it.
func (l *layout) makeDir(at string) {
	if l.made[at] {
		return
	}
	if parent := filepath.Dir(at); parent != "." {
		l.makeDir(parent)
	}
	l.made[at] = true
	mode := 0o755
	if at == "root/tmp" || at == "root/var/tmp" || at == "root/dev/shm" {
		mode = 0o1777
	}
	l.op(launcher.Op{Kind: launcher.MakeDir, A: at, Flags: mode})
}

// makeFile creates an empty file in the base, on which another one is mounted.
func (l *layout) makeFile(at string) {
	l.makeDir(filepath.Dir(at))
	l.made[at] = true
	l.op(launcher.Op{Kind: launcher.MakeFile, A: at, Flags: 0o644})
}
