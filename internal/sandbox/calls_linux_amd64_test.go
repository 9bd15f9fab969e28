package sandbox_test

import "golang.org/x/sys/unix"

// callsHere lists the older variants of calls on this architecture, and those
// of x32.
func callsHere() []call {
	return []call{
		{"chmod set-user-id", unix.SYS_CHMOD, [6]uintptr{0, 0o4755}, unix.EPERM},
		{"creat set-user-id", unix.SYS_CREAT, [6]uintptr{0, 0o4755}, unix.EPERM},
		{"open creating set-user-id", unix.SYS_OPEN, [6]uintptr{0, unix.O_CREAT, 0o4755}, unix.EPERM},
		{"iopl", unix.SYS_IOPL, [6]uintptr{3}, unix.EPERM},
		{"getpid of x32", 0x40000000 | unix.SYS_GETPID, [6]uintptr{}, unix.ENOSYS},
	}
}
