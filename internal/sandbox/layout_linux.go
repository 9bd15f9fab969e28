//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// kind is what a program may do with an entry of the layout. If several lists of a profile
// have the same path, the largest kind applies.
type kind int

const (
	hidden   kind = iota
	readable      // readable and executable
	shown         // visible, but only readable as far as the rules allow
	scratch
	private // a private folder of the sandbox
	fixed   // writable, and cannot be renamed
	writable
	brokered // read-only within a writable entry, with writable folders in it
	guarded  // read-only within a writable entry
)

// layout is the file system of a sandbox while it is being planned.
type layout struct {
	paths   resolver
	changes []string // what the program can change, without symbolic links
	entries map[string]entry
	links   map[string]string
	rules   []launcher.Rule

	ops     []launcher.Op
	made    map[string]bool // base paths that were created
	covers  []cover         // from the root to the current entry
	counter int             // of folders in the base
}

type entry struct {
	kind    kind
	isDir   bool
	missing bool // it does not exist outside of the sandbox
}

// cover is an entry that shows a path and everything below it.
type cover struct {
	path string
	kind kind
	base string // its path in the base; "" means not in the base
}

// systemFolder is a folder in which some files are readable by all programs and others by
// none. It is mounted as a whole, because mounting each file would take long; Landlock
// allows only the former.
const systemFolder = "/etc"

// layOut returns the steps and the rules for a profile.
func layOut(p Profile) ([]launcher.Op, []launcher.Rule, error) {
	l := newLayout()
	for _, folder := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		l.entries[folder] = entry{kind: private, isDir: true}
	}
	l.changes = l.paths.resolveAll(p.Write)
	var brokers, open []string
	for _, b := range p.Brokered {
		brokers, open = append(brokers, b.Path), append(open, joinAll([]string{b.Path}, b.Open...)...)
	}
	for _, list := range []struct {
		kind  kind
		named bool
		paths []string
	}{{hidden, false, p.Hide}, {readable, false, p.Read}, {readable, true, p.Opened},
		{scratch, false, p.Scratch}, {fixed, false, p.Fixed}, {writable, true, slices.Concat(p.Write, open)},
		{brokered, false, brokers}, {guarded, false, p.ReadOnly}} {
		for _, path := range list.paths {
			if err := l.add(path, list.kind, list.named); err != nil {
				return nil, nil, &Error{"opening " + path + " for the program", err}
			}
		}
	}
	l.devices()
	l.arrange()
	return l.ops, append(l.rules, ownRules()...), nil
}

func newLayout() *layout {
	return &layout{paths: resolver{}, entries: map[string]entry{},
		links: map[string]string{}, made: map[string]bool{"root": true}}
}

// emptyLayout returns the steps that every sandbox needs.
func emptyLayout() []launcher.Op {
	l := newLayout()
	l.devices()
	return l.ops
}

// ownRules grants access to what every sandbox contains.
func ownRules() []launcher.Rule {
	return []launcher.Rule{
		{Path: "/", Access: launcher.ReadDir}, // names, where visible
		{Path: "/dev", Access: launcher.ReadDir | launcher.ReadFile | launcher.WriteFile | launcher.IoctlDev},
		{Path: "/dev/shm", Access: launcher.Write},
		{Path: "/proc", Access: launcher.ReadDir | launcher.ReadFile},
		{Path: "/tmp", Access: launcher.Write},
		{Path: "/var/tmp", Access: launcher.Write},
	}
}

// add resolves a path and records its entry. A path that does not exist is skipped unless
// it should be writable. A path that was not explicitly named does not open anything that
// is hidden.
func (l *layout) add(path string, k kind, named bool) error {
	if !filepath.IsAbs(path) {
		return errors.New("the path is not absolute")
	}
	r, err := l.paths.resolve(path)
	if err != nil {
		if k == scratch && errors.Is(err, fs.ErrNotExist) {
			l.addMissing(path)
			return nil
		}
		if k != writable &&
			(errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR)) {
			return nil
		}
		return err
	}
	opens := k == readable || k == scratch || k == writable
	if link, ok := r.linkIn(l.changes); ok && opens {
		if named {
			return fmt.Errorf(
				"it leads through the link %s, which programs in the sandbox can change; name a path without it", link)
		}
		return nil
	}
	switch {
	case r.path == "/":
		return errors.New("the root folder cannot be opened; name the folders in it")
	case isWithin(r.path, "/proc"), r.path == "/dev", r.path == "/dev/pts":
		return errors.New("the program has a private one")
	}
	if opens {
		maps.Copy(l.links, r.links)
	}
	if k == scratch && !r.isDir {
		k = readable
	}
	if k == readable && isWithin(r.path, systemFolder) {
		l.rules = append(l.rules, launcher.Rule{Path: r.path, Access: launcher.Read, IsFile: !r.isDir})
		k, r.path, r.isDir = shown, systemFolder, true
	}
	old, ok := l.entries[r.path]
	if ok && old.kind == hidden && !named {
		return nil
	}
	if !ok || old.kind < k {
		l.entries[r.path] = entry{kind: k, isDir: r.isDir}
	}
	return nil
}

// addMissing adds a private folder for a cache that does not exist yet: programs would
// fail because they cannot create it.
func (l *layout) addMissing(path string) {
	rest := ""
	for at := filepath.Clean(path); at != "/"; at = filepath.Dir(at) {
		rest = filepath.Join(filepath.Base(at), rest)
		r, err := l.paths.resolve(filepath.Dir(at))
		if err != nil {
			continue
		}
		if _, ok := r.linkIn(l.changes); ok {
			return
		}
		maps.Copy(l.links, r.links)
		if at = filepath.Join(r.path, rest); l.entries[at].kind <= scratch {
			l.entries[at] = entry{kind: private, isDir: true, missing: true}
		}
		return
	}
}

// devices adds a small /dev and the mount point of /proc.
func (l *layout) devices() {
	l.makeDir("root/proc")
	l.op(launcher.Op{Kind: launcher.MountPro, A: "/proc"})
	l.makeDir("root/dev/pts")
	l.op(launcher.Op{Kind: launcher.MountPTS, A: "/dev/pts"})
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		l.makeFile("root/dev/" + name)
		l.op(launcher.Op{Kind: launcher.Bind, A: "/dev/" + name,
			B: "/dev/" + name, Flags: launcher.NoSuid | launcher.NoExec})
	}
	for _, name := range []string{"keys", "key-users"} { // they list the keys of the whole machine
		l.op(launcher.Op{
			Kind:  launcher.Bind,
			A:     "/dev/null",
			B:     "/proc/" + name,
			Flags: launcher.ReadOnly | launcher.NoExec,
			Skip:  true,
		})
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
		"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		l.op(launcher.Op{Kind: launcher.MakeLink, A: target, B: "root/dev/" + name})
	}
}

// arrange converts the entries to steps, parents first. Everything in the base is created
// before the first mount.
func (l *layout) arrange() {
	paths := slices.SortedFunc(maps.Keys(l.entries), func(a, b string) int { return strings.Compare(a+"/", b+"/") })
	l.covers = []cover{{path: "/", kind: hidden, base: "root"}}
	for _, path := range paths {
		l.place(path, l.entries[path])
	}
	l.addLinks()
	slices.SortStableFunc(l.ops, func(a, b launcher.Op) int { return mountPhase(a) - mountPhase(b) })
}

// mountPhase separates what is created in the base from what is mounted.
func mountPhase(op launcher.Op) int {
	switch op.Kind {
	case launcher.MakeDir, launcher.MakeFile:
		return 0
	case launcher.MakeLink:
		return 1
	}
	return 2
}

// coverOf removes the covers that do not contain a path and returns the last one that does.
func (l *layout) coverOf(path string) cover {
	for !isWithin(path, l.covers[len(l.covers)-1].path) {
		l.covers = l.covers[:len(l.covers)-1]
	}
	return l.covers[len(l.covers)-1]
}

// place adds one entry, unless its cover already has the same effect.
func (l *layout) place(path string, e entry) {
	parent := l.coverOf(path)
	if isCovered(parent.kind, e.kind) || e.missing && parent.base == "" {
		return
	}
	c := cover{path: path, kind: e.kind}
	if parent.base != "" {
		at := parent.base + strings.TrimPrefix(path, strings.TrimSuffix(parent.path, "/"))
		if e.isDir {
			l.makeDir(at)
		} else {
			l.makeFile(at)
		}
		if e.kind == private {
			c.base = at
		}
	}
	const restricted = launcher.NoSuid | launcher.NoDev
	op := launcher.Op{Kind: launcher.Bind, A: path, B: path, Flags: restricted}
	switch e.kind {
	case hidden:
		c.base = l.hide(e.isDir)
		op.Kind, op.A, op.Flags = launcher.BindBase, c.base, restricted|launcher.ReadOnly
	case private:
		op.Kind, op.A = launcher.BindBase, c.base
	case readable, shown, brokered, guarded:
		op.Flags |= launcher.ReadOnly
		op.Skip = e.kind < writable
	case scratch:
		op.Kind, op.C = launcher.Overlay, l.scratch()
	}
	l.op(op)
	l.grant(path, e)
	l.covers = append(l.covers, c)
}

// isCovered reports whether an entry below another one has no further effect.
func isCovered(parent, k kind) bool {
	switch k {
	case hidden:
		return parent == hidden
	case readable, shown:
		return parent != hidden && parent != private && parent != shown
	case scratch:
		return parent == scratch || parent == writable || parent == fixed || parent == brokered
	case writable:
		return parent == writable || parent == fixed
	case brokered: // a linked worktree's is not within the workspace
		return parent == readable || parent == brokered || parent == guarded
	case fixed, guarded:
		return parent != writable && parent != fixed
	}
	return false
}

func (l *layout) grant(path string, e entry) {
	rule := launcher.Rule{Path: path, Access: launcher.Read, IsFile: !e.isDir}
	switch e.kind {
	case hidden, shown:
		return
	case private, scratch, fixed, writable:
		rule.Access = launcher.Write
	}
	l.rules = append(l.rules, rule)
}

// addLinks creates the symbolic links that are in the base.
func (l *layout) addLinks() {
	for _, at := range slices.Sorted(maps.Keys(l.links)) {
		parent := l.coverIn(at)
		if parent.base == "" {
			continue // its cover contains the link
		}
		base := parent.base + strings.TrimPrefix(at, strings.TrimSuffix(parent.path, "/"))
		if l.made[base] {
			continue
		}
		l.makeDir(filepath.Dir(base))
		l.made[base] = true
		l.op(launcher.Op{Kind: launcher.MakeLink, A: l.links[at], B: base})
	}
}

// coverIn returns the cover of a path after all entries were placed.
func (l *layout) coverIn(path string) cover {
	best := cover{path: "/", base: "root"}
	for p, e := range l.entries {
		if isWithin(path, p) && len(p) > len(best.path) {
			best = cover{path: p, kind: e.kind}
			if e.kind == private {
				best.base = "root" + p
			}
		}
	}
	return best
}

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
