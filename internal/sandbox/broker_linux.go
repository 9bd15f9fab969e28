//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// broker makes changes for programs that the kernel does not let them make themselves. A mount
// protects one file, and another program can put an unprotected one in its place. So the folders of
// Profile.Brokered are read-only for the whole program, and the broker decides by name. What it
// does not do itself is left to the kernel, so a program that changes the arguments of a call
// meanwhile gains nothing.
//
// It also keeps the program from changing what has taken the place of an entry of Profile.ReadOnly.
// Here the kernel makes the call, so the protection is not certain if a program changes a path at
// the same moment.
type broker struct {
	roots     []*root
	readOnly  []string // without symbolic links
	removable []string
}

// root is a folder of Profile.Brokered.
type root struct {
	Brokered
	dir  *os.File
	made map[string]bool // identities of the folders in it that the program has created

	rewrites map[string]rewrite // under way, by the file of Rewritten
}

// rewrite is new content that the program is writing for a file of Rewritten. It goes to a file
// without a name, so that the program cannot change what was accepted.
type rewrite struct {
	lock    *os.File // with the name that ends in ".lock", as other programs expect; empty
	content *os.File
}

// outcome says how a call ends: the kernel runs it, it returns a file, or it returns an error,
// which is 0 for success.
type outcome struct {
	kernel bool
	err    unix.Errno
	opened bool
	fd     int // of the file, if opened
}

// target is a place in a folder of a broker.
type target struct {
	*root
	at   *os.File // the folder, as toolreg sees it: it can be changed
	rel  string   // relative to the root
	name string
}

func newBroker(p Profile) (*broker, error) {
	known := resolver{}
	b := &broker{readOnly: known.resolveAll(p.ReadOnly), removable: known.resolveAll(p.Removable)}
	for _, brokered := range p.Brokered {
		fd, err := openFolderAt(unix.AT_FDCWD, brokered.Path, unix.RESOLVE_NO_SYMLINKS)
		if err != nil {
			b.close()
			return nil, &Error{"opening " + brokered.Path, err}
		}
		b.roots = append(b.roots,
			&root{brokered, os.NewFile(uintptr(fd), brokered.Path), map[string]bool{}, map[string]rewrite{}})
	}
	return b, nil
}

func (b *broker) close() {
	if b == nil {
		return
	}
	for _, r := range b.roots {
		for file, w := range r.rewrites {
			_ = unix.Unlinkat(int(r.dir.Fd()), file+lockSuffix, 0)
			closeFiles([]*os.File{w.lock, w.content})
		}
		_ = r.dir.Close()
	}
}

// runCall makes the change of a call at places, or decides that the kernel makes it.
func (b *broker) runCall(n notification, c watchedCall, places []place) outcome {
	byKernel := outcome{kernel: true}
	if b == nil {
		return byKernel
	}
	var at []*target
	for _, p := range places {
		t, err := b.findTarget(p)
		if err != 0 {
			return outcome{err: err}
		}
		if t != nil {
			defer t.at.Close()
			at = append(at, t)
		}
	}
	switch {
	case len(at) == 0:
		return b.guard(n, c, places)
	case len(at) < len(places), at[0].root != at[len(at)-1].root:
		return byKernel // they are on different mounts
	}
	flags := c.flagsOf(n)
	if file, ok := strings.CutSuffix(at[0].rel, lockSuffix); ok &&
		slices.Contains(at[0].Rewritten, file) && !isForeign(at[0]) {
		if o := at[0].rewrite(n, c, file, at[len(at)-1]); !o.kernel {
			return o
		}
	}
	for i, t := range at {
		refuses := func(change Change) bool { return b.refuses(t, change) }
		if slices.ContainsFunc(c.changes(i, flags), refuses) || isForeign(t) {
			return byKernel // for which it is read-only
		}
	}
	return at[0].change(n, c, at[len(at)-1])
}

// refuses reports whether the program must not make a change.
func (b *broker) refuses(t *target, change Change) bool {
	path := filepath.Join(t.Path, t.rel)
	if change == Writes && isWithinAny(path, b.readOnly) {
		return true // such as another name of a protected file
	}
	around := func(protected string) bool { return isWithin(protected, path) || isWithin(path, protected) }
	if change == Moves && slices.ContainsFunc(b.readOnly, around) {
		return true
	}
	if change != Writes && slices.ContainsFunc(t.Open, func(open string) bool { return isWithin(open, t.rel) }) {
		return true
	}
	return t.Refuses != nil && t.Refuses(t.rel, change, t.hasMade)
}

// changes returns what a call does at its i-th place.
func (c watchedCall) changes(i, flags int) []Change {
	switch {
	case c.does == removing:
		return []Change{Removes}
	case c.does == renaming && flags&unix.RENAME_EXCHANGE != 0:
		return []Change{Moves, Writes}
	case c.does == renaming && i == 0:
		return []Change{Moves}
	}
	return []Change{Writes}
}

// findTarget returns the target of a place; nil if it is in no folder of the broker.
func (b *broker) findTarget(p place) (*target, unix.Errno) {
	i := slices.IndexFunc(b.roots, func(r *root) bool { return isWithin(p.path, r.Path) })
	if i < 0 {
		return nil, 0
	}
	r := b.roots[i]
	rel, _ := filepath.Rel(r.Path, p.path)
	if isWithinAny(rel, r.Open) {
		return nil, 0
	}
	fd, err := openFolderAt(int(r.dir.Fd()), rel, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, errno(err)
	}
	t := &target{r, os.NewFile(uintptr(fd), p.path), filepath.Join(rel, p.name), p.name}
	if idOf(t.at) != idOf(p.folder) { // another program has replaced the folder
		_ = t.at.Close()
		return nil, unix.EROFS
	}
	return t, 0
}

// hasMade reports whether the program has created a folder, relative to the root.
func (r *root) hasMade(rel string) bool {
	return r.made[(&target{at: r.dir, name: rel}).identity()]
}

// isForeign reports whether toolreg may change something only because it runs as root, which
// the program does not.
func isForeign(t *target) bool {
	if os.Geteuid() != 0 {
		return false
	}
	var folder, file unix.Stat_t
	if unix.Fstat(int(t.at.Fd()), &folder) != nil || folder.Uid != 0 {
		return true
	}
	return unix.Fstatat(int(t.at.Fd()), t.name, &file, unix.AT_SYMLINK_NOFOLLOW) == nil && file.Uid != 0
}

// change makes the change of a call from one place to another, which are the same if it has
// only one.
func (t *target) change(n notification, c watchedCall, to *target) outcome {
	at, flags := int(t.at.Fd()), c.flagsOf(n)
	mode := uint32(n.args[c.mode]) // meaningless if the call has no mode
	switch c.does {
	case opening:
		return t.open(flags, mode&^umaskOf(n.pid))
	case makingFolder:
		err := unix.Mkdirat(at, t.name, mode&^umaskOf(n.pid))
		if err == nil {
			t.made[t.identity()] = true
		}
		return outcome{err: errno(err)}
	case symlinking:
		return outcome{err: errno(unix.Symlinkat(readPath(int(n.pid), uintptr(n.args[0])), at, t.name))}
	case linking:
		return outcome{err: errno(unix.Linkat(at, t.name, int(to.at.Fd()), to.name, 0))}
	case renaming:
		return outcome{err: errno(unix.Renameat2(at, t.name, int(to.at.Fd()), to.name, uint(flags)))}
	case removing:
		delete(t.made, t.identity()) // another file can get its number
		return outcome{err: errno(unix.Unlinkat(at, t.name, flags))}
	case changingMode:
		return outcome{err: errno(unix.Fchmodat(at, t.name, mode, unix.AT_SYMLINK_NOFOLLOW))}
	}
	return outcome{kernel: true}
}

// lockSuffix is what git appends to the name of a file to write its new content.
const lockSuffix = ".lock"

// rewrite makes a change that is a step of replacing a file of Rewritten; t is its lock.
func (t *target) rewrite(n notification, c watchedCall, file string, to *target) outcome {
	at, w := int(t.at.Fd()), t.rewrites[file]
	flags := c.flagsOf(n)
	switch {
	case c.does == opening && flags&exclusive == exclusive:
		lock, err := unix.Openat(at, t.name, exclusive|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return outcome{err: errno(err)}
		}
		w.lock = os.NewFile(uintptr(lock), t.name)
		fd, err := unix.MemfdCreate(t.name, unix.MFD_CLOEXEC)
		if err == nil {
			w.content = os.NewFile(uintptr(fd), t.name)
			fd, err = unix.Dup(fd)
		}
		t.rewrites[file] = w
		return outcome{err: errno(err), opened: err == nil, fd: fd}
	case w.lock == nil:
		return outcome{kernel: true}
	case c.does == changingMode:
		return outcome{} // it gets that of the old file
	case c.does == renaming && to.rel == file && flags == 0:
		err := t.replace(w, file, to)
		if err == nil {
			t.forget(file)
		}
		return outcome{err: errno(err)}
	case c.does == removing:
		t.forget(file)
		return outcome{err: errno(unix.Unlinkat(at, t.name, 0))}
	}
	return outcome{kernel: true}
}

func (r *root) forget(file string) {
	w := r.rewrites[file]
	closeFiles([]*os.File{w.lock, w.content})
	delete(r.rewrites, file)
}

// maxRewritten limits the size of a file of Rewritten, in bytes.
const maxRewritten = 1 << 20

// replace puts the content of a rewrite in place of its file, if that is accepted.
func (t *target) replace(w rewrite, file string, to *target) error {
	fd, err := unix.Openat(int(to.at.Fd()), to.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	old := os.NewFile(uintptr(fd), to.name)
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return unix.EROFS
	}
	before, failed := io.ReadAll(io.LimitReader(old, maxRewritten+1))
	after, err := io.ReadAll(io.NewSectionReader(w.content, 0, maxRewritten+1))
	if errors.Join(failed, err) != nil || len(before) > maxRewritten ||
		len(after) > maxRewritten || !t.Accepts(file, string(before), string(after)) {
		return unix.EROFS
	}
	if _, err := w.lock.Write(after); err != nil {
		return unix.ENOSPC
	}
	if err := w.lock.Chmod(info.Mode().Perm()); err != nil {
		return unix.EIO
	}
	return unix.Renameat(int(t.at.Fd()), t.name, int(to.at.Fd()), to.name)
}

// identity returns the identity of the file at the place; "0:0" if there is none.
func (t *target) identity() string {
	var st unix.Stat_t
	_ = unix.Fstatat(int(t.at.Fd()), t.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return identity(&st)
}

// open opens a regular file, which it creates if the flags say so.
func (t *target) open(flags int, mode uint32) outcome {
	var st unix.Stat_t
	exists := unix.Fstatat(int(t.at.Fd()), t.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	if flags&(unix.O_PATH|unix.O_DIRECTORY) != 0 || exists && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return outcome{kernel: true}
	}
	// O_NONBLOCK, in case something else is in its place by now.
	fd, err := unix.Openat(int(t.at.Fd()), t.name,
		flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, mode)
	if err != nil {
		return outcome{err: errno(err)}
	}
	if flags&unix.O_NONBLOCK == 0 {
		_ = unix.SetNonblock(fd, false)
	}
	return outcome{opened: true, fd: fd}
}

// guard refuses a call that would change what has taken the place of a read-only file or folder,
// and removes what the program may remove although it is read-only.
func (b *broker) guard(n notification, c watchedCall, places []place) outcome {
	for _, p := range places {
		path := filepath.Join(p.path, p.name)
		if c.does == removing && isWithinAny(path, b.removable) {
			return b.remove(p, c.flagsOf(n))
		}
		if isWithinAny(path, b.readOnly) && !p.isReadOnly() {
			return outcome{err: unix.EROFS}
		}
	}
	return outcome{kernel: true}
}

// remove removes what is at a place outside of the program's mounts.
func (b *broker) remove(p place, flags int) outcome {
	fd, err := openFolderAt(unix.AT_FDCWD, p.path, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return outcome{err: errno(err)}
	}
	folder := os.NewFile(uintptr(fd), p.path)
	defer folder.Close()
	t := &target{at: folder, name: p.name}
	if idOf(folder) != idOf(p.folder) || isForeign(t) {
		return outcome{err: unix.EROFS}
	}
	err = unix.Unlinkat(fd, p.name, flags)
	if path := filepath.Join(p.path, p.name); err == nil {
		b.readOnly = slices.DeleteFunc(b.readOnly, func(protected string) bool { return protected == path })
	}
	return outcome{err: errno(err)}
}

func idOf(f *os.File) string {
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st)
	return identity(&st)
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // closing twice is a harmless error
	}
}

// errno returns the number of a system call's error; 0 for nil.
func errno(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if number, ok := err.(unix.Errno); ok {
		return number
	}
	return unix.EIO
}

// umaskOf returns the mode bits that a process does not give to new files.
func umaskOf(pid uint32) uint32 {
	const usual = 0o22
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(int(pid)) + "/status")
	_, rest, _ := strings.Cut(string(status), "\nUmask:\t")
	text, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return usual
	}
	return uint32(mask)
}
