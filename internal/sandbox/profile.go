package sandbox

// Profile describes what a sandboxed program can access. Paths are absolute and clean.
// Paths that do not exist and duplicates are ignored, except that a path in Write must
// exist. Symbolic links are followed when the program is started: both the link and its
// target are visible, with the rights of the entry.
//
// An earlier program can have changed a link within Write, so such links are not followed:
// entries of Read and Scratch that lead through one are ignored, and entries of Opened and
// Write that do are errors.
//
// Nothing else of the file system is visible. The program always has a private /tmp,
// /var/tmp and /dev/shm, which are removed when it ends, a small /dev, and a read-only
// /proc that shows only its own processes.
type Profile struct {
	// Read lists files and folders that the program can read and execute, except those
	// that Hide also lists.
	Read []string

	// Opened is like Read, for paths that the user has named: Hide does not apply to them.
	Opened []string

	// Write lists files and folders that the program can also change. Hide does not apply
	// to them.
	Write []string

	// Scratch lists folders that the program can read and write, but whose changes are
	// discarded. It is for caches, which programs outside the sandbox trust.
	Scratch []string

	// ReadOnly lists files and folders within Write that the program cannot change, remove
	// or rename. The kernel cannot prevent two things: a symbolic link can be replaced,
	// although its target is protected; and if another program renames a file over an
	// entry, the new file is not protected.
	ReadOnly []string

	// Fixed lists folders within Write that the program cannot remove or rename, although
	// their content may be changed. List a folder with entries of ReadOnly here if a
	// renamed folder could be replaced by another one of that name.
	Fixed []string

	// Hide lists files and folders that are never readable, even below an entry of another
	// list: the program sees an empty file or folder. Two exceptions are visible: an entry
	// of Opened or Write that is such a path, and entries of any list that are inside it.
	Hide []string

	// Created collects the names that the program gives to files; nil means that they are
	// not watched. It works on Linux only.
	Created *Names `json:"-"`

	// Network restricts what the program can connect to; the zero value is a private
	// loopback.
	Network Network
}

// Network describes what a confined program can connect to.
type Network struct {
	Mode NetworkMode

	// Hosts are the hosts of [NetworkHosts]: "host:port" or "*.domain:port", where the port
	// may be "*" and IPv6 addresses have brackets. Without a port, 80 and 443 are allowed.
	// "*.example.org" does not include example.org itself.
	Hosts []string
}

// NetworkMode is one of the modes of [Network].
type NetworkMode int

// The network modes.
const (
	NetworkLoopback NetworkMode = iota // a private loopback interface, never the machine's
	NetworkNone                        // nothing at all
	NetworkHosts                       // Network.Hosts, through a proxy in toolreg to which http_proxy and https_proxy point
	NetworkAll                         // unrestricted
)
