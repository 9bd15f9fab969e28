package sandbox

import (
	"fmt"
	"os"
)

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
	// entry, the kernel does not protect the new file. If Created is set, it is protected
	// all the same, unless the program changes the path of a call while it is made.
	ReadOnly []string

	// Removable lists folders within Write from which the program can remove everything,
	// even what ReadOnly or Fixed lists, if Created is set.
	Removable []string

	// Brokered lists folders within Write in which names are protected, whatever files
	// other programs give these names to meanwhile. It needs Created.
	Brokered []Brokered `json:"-"`

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

// Brokered is a folder that the kernel shows the program read-only. toolreg makes the changes in it
// that the program asks for, unless they are refused: it creates, opens, renames and removes files
// and folders, and changes their modes. It works on Linux only.
type Brokered struct {
	Path string   // absolute, without symbolic links
	Open []string // folders, relative to Path, that the program changes itself

	// Refuses reports whether the program must not make a change to a file or folder, relative
	// to Path. made reports whether the program itself has created a folder. nil refuses nothing.
	Refuses func(rel string, change Change, made func(folder string) bool) bool

	// Rewritten are files, relative to Path, that programs replace as git does: they create a file with
	// ".lock" after the name, write to it and rename it. They may, if Accepts allows the content.
	Rewritten []string
	Accepts   func(rel, before, after string) bool
}

// Change is a kind of change to a file or folder.
type Change int

// The kinds of changes.
const (
	Writes  Change = iota // it is created, opened for writing or gets another name, or its mode changes
	Removes               // it is removed
	Moves                 // it is renamed, with everything in it
)

// Network describes what a confined program can connect to.
type Network struct {
	Mode NetworkMode

	// Hosts are the hosts of [NetworkHosts]: "host:port" or "*.domain:port", where the port
	// may be "*" and IPv6 addresses have brackets. Without a port, 80 and 443 are allowed.
	// "*.example.org" does not include example.org itself.
	Hosts []string

	// Join is the net namespace of another program, whose loopback interface this one shares; it is
	// closed at the start. Share gets that of this program, and must close it. Both are for
	// NetworkLoopback on Linux, and nil if nothing is shared.
	Join  *os.File           `json:"-"`
	Share func(net *os.File) `json:"-"`
}

// NetworkMode is one of the modes of [Network].
type NetworkMode int

// The network modes.
const (
	NetworkLoopback NetworkMode = iota // a private loopback interface, never the machine's
	NetworkNone                        // nothing at all
	// NetworkHosts allows the hosts in Network.Hosts, through a proxy in toolreg to which
	// http_proxy and https_proxy point.
	NetworkHosts
	NetworkAll // unrestricted
)

// Error reports that a program could not be confined and therefore did not run.
type Error struct {
	Step string // what failed, such as "mounting /proc"
	Err  error
}

// Error names the step and the reason in one line.
func (e *Error) Error() string { return fmt.Sprintf("setting up the sandbox: %s: %v", e.Step, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Support describes how far the system supports the sandbox.
type Support struct {
	Parts []Part
}

// Part is one requirement of the sandbox.
type Part struct {
	Name   string // such as "user namespaces" or "Landlock"
	OK     bool
	Detail string // such as "ABI 7", or why it is missing: "operation not permitted"
}

// Full reports whether the system fully supports the sandbox.
func (s Support) Full() bool { return len(s.Parts) > 0 && len(s.Missing()) == 0 }

// Missing lists the requirements that the system does not meet, such as "user namespaces
// (operation not permitted)".
func (s Support) Missing() []string {
	var out []string
	for _, p := range s.Parts {
		if p.OK {
			continue
		}
		if p.Detail == "" {
			out = append(out, p.Name)
		} else {
			out = append(out, p.Name+" ("+p.Detail+")")
		}
	}
	return out
}

// Program is what [Prepare] confines.
type Program struct {
	Path   string // of the executable, absolute
	Argv   []string
	Env    []string
	Dir    string   // working directory, absolute
	Folder *os.File // Dir as an open folder: the start fails if Dir is now a different one; nil means not checked
}

// Command is what the caller of [Prepare] starts. First it calls the Attributes of [Start]. If the
// start succeeds, it calls Started and Ended, once each and in this order. In any case it calls
// Close at the end.
type Command struct {
	Path  string
	Argv  []string
	Env   []string
	Files []*os.File // descriptors 3 and following
}
