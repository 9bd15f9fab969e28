package sandbox

// Profile says what a confined program can reach. Paths are absolute and clean;
// missing ones and duplicates are ignored, except that a path in Write that is
// missing is an error. Symbolic links are followed when the program is started:
// both the link and what it leads to are visible, with the rights of the entry.
//
// Nothing else of the file system is visible. The program always has a /tmp,
// /var/tmp and /dev/shm of its own, which vanish with it, a small /dev, and a
// read-only /proc that shows only its own processes.
type Profile struct {
	// Read lists files and folders that the program can read and execute.
	Read []string

	// Write lists files and folders that the program can also change.
	Write []string

	// Scratch lists folders that the program reads as they are and may write to;
	// what it writes is not kept. Caches are such: programs that run outside
	// trust them.
	Scratch []string

	// ReadOnly lists files and folders within Write that the program cannot
	// change, remove or rename. Two things are beyond the kernel: a symbolic link
	// can be replaced, while what it leads to is protected; and if somebody outside
	// renames another file over an entry, the new one is not protected.
	ReadOnly []string

	// Fixed lists folders within Write that the program cannot remove or rename,
	// while what they hold may be changed. A folder that holds entries of
	// ReadOnly belongs here if renaming it would give its name to another.
	Fixed []string

	// Hide lists files and folders that are never readable, even below an entry
	// of Read, Write or Scratch: the program sees an empty file or folder. An
	// entry of these lists that is such a path or lies in it is visible all the
	// same.
	Hide []string

	// Network is what the program can connect to; the zero value is a loopback
	// of its own.
	Network Network
}

// Network says what a confined program can connect to.
type Network struct {
	Mode NetworkMode

	// Hosts are what [NetworkHosts] opens: "host:port" or "*.domain:port", where
	// the port may be "*" and an address of IPv6 has brackets. Without a port,
	// 80 and 443 are open. "*.example.org" does not include example.org itself.
	Hosts []string
}

// NetworkMode is one of the modes of [Network].
type NetworkMode int

// The modes.
const (
	NetworkLoopback NetworkMode = iota // a private loopback, never the machine's
	NetworkNone                        // nothing at all
	NetworkHosts                       // Network.Hosts, by a proxy of toolreg's that http_proxy and https_proxy name
	NetworkAll                         // as the machine itself
)
