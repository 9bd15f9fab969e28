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

// watchedHere returns older variants of watchedCalls, which only this architecture has.
func watchedHere() map[uint32]watchedCall {
	one, two := []pathArgument{{-1, 0}}, []pathArgument{{-1, 0}, {-1, 1}}
	return map[uint32]watchedCall{
		unix.SYS_OPEN:    {does: opening, paths: one, flags: 1, mode: 2},
		unix.SYS_CREAT:   {does: opening, paths: one, mode: 1, always: unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC},
		unix.SYS_MKNOD:   {does: makingNode, paths: one, mode: 1},
		unix.SYS_MKDIR:   {does: makingFolder, paths: one, mode: 1},
		unix.SYS_SYMLINK: {does: symlinking, paths: []pathArgument{{-1, 1}}},
		unix.SYS_LINK:    {does: linking, paths: two},
		unix.SYS_RENAME:  {does: renaming, paths: two},
		unix.SYS_UNLINK:  {does: removing, paths: one},
		unix.SYS_RMDIR:   {does: removing, paths: one, always: unix.AT_REMOVEDIR},
		unix.SYS_CHMOD:   {does: changingMode, paths: one, mode: 1},
	}
}
