//go:build amd64 || arm64

package sandbox

import (
	"cmp"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// settingUp limits how long a launcher may take until the program runs. Only a hanging file
// system takes that long.
const settingUp = 30 * time.Second

// namespaces are the new namespaces of a sandboxed program.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET

// Start is the prepared start of a [Command].
type Start struct {
	Command
	status  *os.File // our end of the socket for reports
	mounts  *os.File // the mount namespace; nil before the program runs
	network Network
	proxy   *proxy
	created *Names
	broker  *broker
	watcher *watcher
}

// Prepare prepares the start of a program in a sandbox. The error is an *Error.
func Prepare(p Profile, prog Program) (*Start, error) {
	plan, err := newPlan(p, prog)
	if err != nil {
		return nil, err
	}
	b, err := newBroker(p)
	if err != nil {
		return nil, err
	}
	s, err := prepare(plan, p.Network)
	if err != nil {
		b.close()
		return nil, err
	}
	s.created, s.broker = p.Created, b
	return s, nil
}

func prepare(plan *launcher.Plan, network Network) (*Start, error) {
	file, err := memoryFile(plan.Encode())
	if err != nil {
		return nil, &Error{"writing the plan", err}
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = file.Close()
		return nil, &Error{"opening a socket for reports", err}
	}
	files := []*os.File{file, os.NewFile(uintptr(ends[1]), "status")}
	if network.Join != nil {
		files = append(files, network.Join)
	}
	return &Start{Command: Command{
		Path:  "/proc/self/exe", // resolved in the child, so it is our program even if the file was replaced
		Argv:  []string{launcher.Name},
		Env:   []string{"GOMAXPROCS=1", "GOGC=off"}, // for the launcher, not for the program
		Files: files,
	}, status: os.NewFile(uintptr(ends[0]), "status"), network: network}, nil
}

// memoryFile returns a file without a name that holds data and cannot be changed.
func memoryFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(launcher.Name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), launcher.Name)
	if _, err = f.Write(data); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Attributes sets further process attributes that the start needs. The
// capabilities are those of the new user namespace; the launcher gives them up
// before the program runs.
func (s *Start) Attributes(attr *syscall.SysProcAttr) {
	if s.network.Join != nil {
		return // the launcher creates them itself
	}
	attr.Cloneflags |= namespaces
	if s.network.Mode == NetworkAll {
		attr.Cloneflags &^= unix.CLONE_NEWNET
	}
	// Like other starts, which share our memory until they execute the program.
	// Package syscall omits these flags because it expects to map the user from
	// outside; the launcher maps it from inside, since our files in /proc
	// belong to root (process.Adopt).
	attr.Cloneflags |= unix.CLONE_VM | unix.CLONE_VFORK
	attr.AmbientCaps = launcher.Capabilities()
}

// Started waits until the program runs. If it does not start, the error is an *Error,
// or the system's error about the program itself.
func (s *Start) Started() error {
	closeFiles(s.Files)
	limit := unix.NsecToTimeval(settingUp.Nanoseconds())
	_ = unix.SetsockoptTimeval(s.fd(), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	for {
		r, passed, err := s.receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return &Error{"waiting for the launcher", os.ErrDeadlineExceeded}
		case err != nil:
			return &Error{"waiting for the launcher", err}
		case r.Kind == launcher.Started:
			s.mounts = passed
			_ = unix.SetsockoptTimeval(s.fd(), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
			return nil
		case r.Kind == launcher.Listening && passed != nil:
			if r.Value == proxyPort {
				s.proxy, err = serveProxy(passed, s.network.Hosts)
			} else {
				err = s.proxy.serveLocal(passed, r.Value)
			}
			if err != nil {
				return &Error{"starting the proxy", err}
			}
		case r.Kind == launcher.Networked && passed != nil:
			s.network.Share(passed)
		case r.Kind == launcher.Watching && passed != nil && s.created != nil:
			if s.watcher, err = watchNames(passed, s.created, s.broker); err != nil {
				return &Error{"watching for new files", err}
			}
		case r.Kind == launcher.Failed && r.Step == launcher.StepStart:
			return syscall.Errno(r.Value)
		case r.Kind == launcher.Failed:
			return &Error{r.Step, syscall.Errno(r.Value)}
		default:
			return &Error{"waiting for the launcher", errors.New("an unknown report")}
		}
	}
}

// Ended waits for the program to exit and returns its wait status. If ok is
// false, the launcher itself was killed.
func (s *Start) Ended() (status int, ok bool) {
	r, _, err := s.receive()
	return r.Value, err == nil && r.Kind == launcher.Ended
}

// Refused returns the connections that the proxy has refused.
func (s *Start) Refused() []string { return s.proxy.refusals() }

// Close releases what belongs to the start, and ends connections of the proxy. The kernel
// removes the mounts later by itself, which takes longer than the program took to start.
func (s *Start) Close() {
	closeFiles(s.Files)
	_ = s.status.Close()
	s.watcher.close()
	s.broker.close()
	s.proxy.close()
	if s.mounts != nil {
		go s.mounts.Close()
	}
}

func (s *Start) fd() int { return int(s.status.Fd()) }

// receive returns the next report, and a file if one came with it.
func (s *Start) receive() (launcher.Report, *os.File, error) {
	data, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, nrights, err := recvmsg(s.fd(), data, rights)
	if err != nil {
		return launcher.Report{}, nil, err
	}
	r, ok := launcher.DecodeReport(data[:n])
	if !ok {
		return launcher.Report{}, nil, errors.New("it has ended")
	}
	return r, PassedFile(rights[:nrights]), nil
}

// recvmsg is unix.Recvmsg, repeated when a signal interrupts it.
func recvmsg(fd int, data, rights []byte) (n, nrights int, err error) {
	for {
		n, nrights, _, _, err = unix.Recvmsg(fd, data, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return n, nrights, err
		}
	}
}

// PassedFile returns the file that came with a message of a Unix domain socket; nil if there is none or
// more than one. rights are the control messages.
func PassedFile(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "passed")
}

func newPlan(p Profile, prog Program) (*launcher.Plan, error) {
	ops, rules, err := layOut(p)
	if err != nil {
		return nil, err
	}
	dir, err := resolve(cmp.Or(prog.Dir, "/"))
	if err != nil {
		return nil, &Error{"finding the working directory", err}
	}
	port, listen := 0, []int(nil)
	if p.Network.Mode == NetworkHosts {
		port, listen = proxyPort, append([]int{proxyPort}, localPorts(p.Network.Hosts)...)
	}
	plan := &launcher.Plan{
		UID: os.Geteuid(), GID: os.Getegid(),
		Loopback: p.Network.Join == nil && (p.Network.Mode == NetworkLoopback || p.Network.Mode == NetworkHosts),
		Shared:   p.Network.Share != nil,
		Ops:      ops, Rules: rules, Filter: filter(p.Created != nil), Watched: p.Created != nil,
		Dir: dir.path, SameDir: prog.Folder != nil,
		Program: prog.Path, Argv: prog.Argv, Env: inSandbox(prog.Env, port), Listen: listen,
	}
	for _, s := range append(append([]string{plan.Dir, plan.Program}, plan.Argv...), plan.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, &Error{"writing the plan", errors.New("an argument, a variable or a path contains a NUL byte")}
		}
	}
	return plan, nil
}
