package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/webaddr"
)

// host is one entry of Network.Hosts.
type host struct {
	name   string // in lower case; without the "*." of a suffix
	suffix bool
	port   int // 0 means every port, and unset means 80 and 443
}

// unset is the port of an entry without one.
const unset = -1

// proxyPort is the port of the proxy for sandboxed programs on Linux. The loopback
// interface is the program's own. The port is outside the range that systems assign
// to connections, and servers do not commonly use it.
const proxyPort = 61080

// parseHost reads an entry of [Network].
func parseHost(entry string) (host, error) {
	h := host{name: entry, port: unset}
	if strings.HasPrefix(entry, "[") || strings.Count(entry, ":") == 1 {
		name, port, err := net.SplitHostPort(entry)
		if err != nil {
			return host{}, fmt.Errorf("cannot parse %q as a host with a port", entry)
		}
		if h.name, h.port = name, 0; port != "*" {
			if h.port, err = strconv.Atoi(port); err != nil || h.port < 1 || h.port > 65535 {
				return host{}, fmt.Errorf("%q is not a port", port)
			}
		}
	}
	h.name, h.suffix = strings.CutPrefix(h.name, "*.")
	h.name = webaddr.CanonicalHost(h.name)
	switch {
	case h.name == "":
		return host{}, errors.New("the host is empty")
	case strings.ContainsAny(h.name, "*/@ \t"):
		return host{}, fmt.Errorf("%q is not a host; a pattern is written *.example.org", entry)
	}
	return h, nil
}

func (h host) matches(name string, port int) bool {
	switch {
	case h.port == unset && port != 80 && port != 443, h.port > 0 && port != h.port:
		return false
	case h.suffix:
		return strings.HasSuffix(name, "."+h.name)
	}
	return name == h.name
}

// isLocal reports whether the entry is this machine.
func (h host) isLocal() bool {
	addr, err := netip.ParseAddr(h.name)
	return !h.suffix && (h.name == "localhost" || err == nil && addr.Is4() && addr.IsLoopback())
}

// localPorts returns the ports of this machine that entries name. They are open on the
// program's own loopback too, because many programs connect to localhost without a proxy.
func localPorts(entries []string) []int {
	var out []int
	for _, entry := range entries {
		h, err := parseHost(entry)
		switch {
		case err != nil || !h.isLocal() || h.port == proxyPort:
		case h.port == unset:
			out = append(out, 80, 443)
		case h.port > 0:
			out = append(out, h.port)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mayReach reports whether a connection to a host that matches the entry may go to an
// address. The owner of the name chooses the address. Therefore a pattern allows only
// public addresses, a name also allows private networks, and only an entry that explicitly
// names this machine allows it.
func (h host) mayReach(addr netip.Addr) bool {
	addr = addr.Unmap()
	if literal, err := netip.ParseAddr(h.name); err == nil {
		return literal == addr
	}
	switch {
	case addr.IsLoopback():
		return h.name == "localhost" && !h.suffix
	case h.suffix:
		return webaddr.IsPublic(addr)
	}
	return webaddr.IsPublic(addr) || addr.IsPrivate()
}

// maxNames limits how many names are collected. A program that exceeds it gains
// nothing: files that it creates afterwards are reported instead of removed.
const maxNames = 1 << 18

// Renamed comes before the name of a file or folder that was renamed, which is also collected
// without it.
const Renamed = "/"

// Names collects the names under which programs have tried to create, write, rename or link
// files, folders and links, each with the folder. A name is added before the kernel acts on
// it. The zero value is empty. Names is safe for concurrent use.
//
// A program with several threads can hide a name by changing it between the check and the
// use.
type Names struct {
	// Log is where each new name is appended as "FOLDER/NAME" and a NUL byte, see Has. If it
	// is nil, names are kept only in memory.
	Log *os.File

	mu  sync.Mutex
	all map[string]struct{}
}

// Has reports whether a program has used a name in a folder, which is identified by its
// device and inode number as DEVICE:INODE. If a program has named a folder in a way that can
// mean several, such as through a link, the name counts for all folders.
func (n *Names) Has(folder, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, in := n.all[folder+"/"+name]
	_, anywhere := n.all["/"+name]
	return in || anywhere
}

// beat changes the time of the log.
func (n *Names) beat() { _, _ = n.Log.WriteString("\x00") }

// add adds a name in a folder; "" stands for all folders.
func (n *Names) add(folder, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]struct{}{}
	}
	if entry := folder + "/" + name; len(n.all) < maxNames {
		if _, known := n.all[entry]; !known && n.Log != nil {
			_, _ = n.Log.WriteString(entry + "\x00") // a full disk must not stop the program
		}
		n.all[entry] = struct{}{}
	}
}

// Logged returns the names in the content of a log.
func Logged(log []byte) *Names {
	n := &Names{all: map[string]struct{}{}}
	for entry := range strings.SplitSeq(string(log), "\x00") {
		n.all[entry] = struct{}{}
	}
	return n
}
