package sandbox

import (
	"net"
	"os"
	"syscall"
)

// sandboxExec is the program that applies Seatbelt profiles.
const sandboxExec = "/usr/bin/sandbox-exec"

// Probe reports whether sandbox-exec exists.
func Probe() Support {
	info, err := os.Stat(sandboxExec)
	return Support{Parts: []Part{{Name: "Seatbelt", OK: err == nil && info.Mode().IsRegular(), Detail: sandboxExec}}}
}

// Start is the prepared start of a [Command].
type Start struct {
	Command
	tmp   string // a folder of the program's own, removed by Close
	proxy *proxy
}

// Prepare prepares the start of a program in a sandbox. The error is an *Error.
func Prepare(p Profile, prog Program) (*Start, error) {
	tmp, err := os.MkdirTemp("", "toolreg-sandbox-")
	if err != nil {
		return nil, &Error{"creating a folder for temporary files", err}
	}
	s := &Start{Command: Command{Path: sandboxExec}, tmp: tmp}
	port, err := s.startProxy(p.Network)
	if err != nil {
		s.Close()
		return nil, &Error{"starting the proxy", err}
	}
	s.Argv = append([]string{"sandbox-exec", "-p", seatbelt(p, tmp, port), prog.Path}, prog.Argv[1:]...)
	s.Env = append(inSandbox(prog.Env, port), "TMPDIR="+tmp)
	return s, nil
}

// startProxy starts the proxy if the network needs one, and returns its port.
func (s *Start) startProxy(n Network) (int, error) {
	if n.Mode != NetworkHosts {
		return 0, nil
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer listener.Close() // the proxy has a copy
	file, err := listener.File()
	if err != nil {
		return 0, err
	}
	s.proxy, err = serveProxy(file, n.Hosts)
	return listener.Addr().(*net.TCPAddr).Port, err
}

// Attributes sets further process attributes that the start needs.
func (*Start) Attributes(*syscall.SysProcAttr) {}

// Started waits until the program runs.
func (*Start) Started() error { return nil }

// Ended returns nothing: the process itself reports how it ended.
func (*Start) Ended() (status int, ok bool) { return 0, false }

// Refused returns the connections that the proxy has refused.
func (s *Start) Refused() []string { return s.proxy.refusals() }

// Close releases what belongs to the start, and ends connections of the proxy.
func (s *Start) Close() {
	s.proxy.close()
	_ = os.RemoveAll(s.tmp) // otherwise the system cleans it up
}
