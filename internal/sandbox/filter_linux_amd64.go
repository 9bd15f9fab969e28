package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere lists refused system calls that only this architecture has.
func refusedHere() []uint32 {
	return []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
		unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	}
}

// creatingHere returns the same as creating for older variants of the calls.
func creatingHere() map[uint32][]pathArgument {
	return map[uint32][]pathArgument{
		unix.SYS_OPEN: {{-1, 0, false}}, unix.SYS_CREAT: {{-1, 0, false}}, unix.SYS_MKNOD: {{-1, 0, false}}, unix.SYS_MKDIR: {{-1, 0, false}}, unix.SYS_SYMLINK: {{-1, 1, false}},
		unix.SYS_LINK: {{-1, 0, false}, {-1, 1, false}}, unix.SYS_RENAME: {{-1, 0, true}, {-1, 1, true}},
	}
}

// filterHere filters older variants of the calls.
func (a *assembler) filterHere() {
	a.refuseBits(unix.SYS_CHMOD, 1, setIDs)
	a.refuseMode(unix.SYS_MKNOD, 1)
	a.refuseMode(unix.SYS_CREAT, 1)
	a.refuseCreating(unix.SYS_OPEN, 1, 2)
}
