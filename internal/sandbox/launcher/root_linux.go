//go:build amd64 || arm64

package launcher

import "syscall"

// base is where the tmpfs for everything new is mounted while the root is built:
// a folder that always exists and has nothing that a plan binds. No other
// process sees it, because the mount namespace is our own.
const base = "/proc"

// builder builds the root that the program sees.
type builder struct {
	proc int // a mount of the new /proc
	root int // a path descriptor of the new root
}

// buildRoot builds the file system that the program sees and makes it the root.
func buildRoot(ops []Op) *failure {
	var b builder
	defer syscall.Umask(syscall.Umask(0)) // the plan has the exact modes
	if f := b.prepare(); f != nil {
		return f
	}
	for _, op := range ops {
		if err := b.do(op); err != nil && !(op.Skip && isUnreachable(err)) {
			return fail(op.describe(), err)
		}
	}
	return b.enter()
}

// prepare mounts the tmpfs and makes its folder "root" a mount.
func (b *builder) prepare() *failure {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fail("separating its mounts", err)
	}
	var err error
	if b.proc, err = newMount("proc", ReadOnly|NoSuid|NoDev|NoExec); err != nil {
		return fail("mounting /proc", err)
	}
	const step = "mounting a root folder"
	tmpfs, err := newMount("tmpfs", NoSuid|NoDev, option{"mode", "0755"})
	if err != nil {
		return fail(step, err)
	}
	defer syscall.Close(tmpfs)
	place, err := openPlainly(atFDCWD, base)
	if err != nil {
		return fail(step, err)
	}
	defer syscall.Close(place)
	if err := attach(tmpfs, place); err != nil {
		return fail(step, err)
	}
	if err := syscall.Mkdir(base+"/root", 0o755); err != nil {
		return fail(step, err)
	}
	b.root, err = b.rootMount()
	return fail(step, err)
}

// rootMount mounts the folder "root" over itself.
func (b *builder) rootMount() (int, error) {
	place, err := openPlainly(atFDCWD, base+"/root")
	if err != nil {
		return 0, err
	}
	defer syscall.Close(place)
	tree, err := clone(place)
	if err != nil {
		return 0, err
	}
	return tree, attach(tree, place)
}

func (b *builder) do(op Op) error {
	switch op.Kind {
	case MakeDir:
		return syscall.Mkdir(base+"/"+op.A, uint32(op.Flags))
	case MakeFile:
		fd, err := syscall.Open(base+"/"+op.A,
			syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_CLOEXEC, uint32(op.Flags))
		if err == nil {
			syscall.Close(fd)
		}
		return err
	case MakeLink:
		return syscall.Symlink(op.A, base+"/"+op.B)
	case Bind:
		return b.bind(op.A, op.B, op.Flags)
	case BindBase:
		return b.bind(base+"/"+op.A, op.B, op.Flags)
	case Overlay:
		return b.overlay(op)
	case MountPTS:
		pts, err := newMount("devpts", NoSuid|NoExec, option{"newinstance", ""},
			option{"ptmxmode", "0666"}, option{"mode", "0620"})
		if err != nil {
			return err
		}
		return b.put(pts, op.A)
	case MountPro:
		return b.put(b.proc, op.A)
	}
	return syscall.EINVAL
}

// bind makes a path visible at a target.
func (b *builder) bind(path, target string, attributes int) error {
	place, err := openPlainly(atFDCWD, path)
	if err != nil {
		return err
	}
	defer syscall.Close(place)
	tree, err := clone(place)
	if err != nil {
		return err
	}
	if err := setAttributes(tree, attributes, true); err != nil {
		return err
	}
	return b.put(tree, target)
}

// overlay makes a folder visible at a target and redirects writes to a folder
// of the tmpfs. If the kernel or the file system does not support that, the
// folder is read-only, which is more restrictive.
func (b *builder) overlay(op Op) error {
	upper := base + "/" + op.C
	tree, err := newMount("overlay", op.Flags, option{"lowerdir+", op.A}, option{"upperdir", upper + "/upper"},
		option{"workdir", upper + "/work"}, option{"userxattr", ""}, option{"volatile", ""})
	if err != nil {
		return b.bind(op.A, op.B, op.Flags|ReadOnly)
	}
	return b.put(tree, op.B)
}

// put attaches a tree of mounts at a target and closes it.
func (b *builder) put(tree int, target string) error {
	defer syscall.Close(tree)
	place, err := openPlainly(b.root, "."+target)
	if err != nil {
		return err
	}
	defer syscall.Close(place)
	return attach(tree, place)
}

// enter makes the new root the root and drops the old one.
func (b *builder) enter() *failure {
	const step = "entering the root folder"
	if err := setAttributes(b.root, ReadOnly, false); err != nil {
		return fail(step, err)
	}
	if err := syscall.Fchdir(b.root); err != nil {
		return fail(step, err)
	}
	syscall.Close(b.root)
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fail(step, err)
	}
	return fail(step, syscall.Unmount(".", syscall.MNT_DETACH))
}

// isUnreachable reports whether a path does not exist or is not accessible.
func isUnreachable(err error) bool { return err == syscall.ENOENT || err == syscall.EACCES }

// describe describes the step in an error message.
func (op Op) describe() string {
	switch op.Kind {
	case MountPro:
		return "mounting /proc"
	case MountPTS:
		return "mounting " + op.A
	case MakeLink, Bind, BindBase, Overlay:
		return "showing " + op.B
	}
	return "creating " + op.A
}
