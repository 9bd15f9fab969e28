package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere lists the system calls of this architecture alone.
func refusedHere() []uint32 {
	return []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
		unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	}
}

// filterHere filters the older spellings of calls.
func (a *assembler) filterHere() {
	a.refuseBits(unix.SYS_CHMOD, 1, setIDs)
	a.refuseBits(unix.SYS_MKNOD, 1, setIDs)
	a.refuseBits(unix.SYS_CREAT, 1, setIDs)
	a.refuseCreating(unix.SYS_OPEN, 1, 2)
}
