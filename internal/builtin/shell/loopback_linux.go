//go:build amd64 || arm64

package shell

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// A confined command has a loopback interface of its own. While one runs in the background, those
// that the same caller starts later in the same workspace share its interface, so that they
// reach its servers. Its keeper passes the net namespace on through a socket in the state
// folder, which no confined program sees. The kernel removes the namespace when the
// last of these commands has ended.

// loopbackWait limits how long a keeper may take to answer.
const loopbackWait = 5 * time.Second

// loopback returns the net namespace of the confined commands that run in the background, and the
// socket that it came from; nil if there are none.
func (b *backgroundStore) loopback(of scope) (namespace *os.File, socket string) {
	of.person = false // what clients of serve started is not the person's
	records, err := b.list(of)
	if err != nil {
		return nil, ""
	}
	for _, r := range records {
		socket := b.path(r.ID, "net")
		if namespace, err := receiveNamespace(socket); err == nil {
			return namespace, socket
		}
	}
	return nil, ""
}

// startAlone returns when no other command starts in the background, until end is called: of two that
// start at once, the second shares the interface of the first.
func (b *backgroundStore) startAlone() (end func(), err error) {
	f, err := os.OpenFile(filepath.Join(b.dir, "starting.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return func() { _ = f.Close() }, err
		}
	}
}

// inFolder calls do with a path for a socket's path that is not too long for the system.
func inFolder(path string, do func(*net.UnixAddr) error) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	short := "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) + "/" + filepath.Base(path)
	return do(&net.UnixAddr{Net: "unix", Name: short})
}

// shareNetwork passes a net namespace to whoever connects to a socket, until end is called.
func shareNetwork(path string, namespace *os.File) (end func(), err error) {
	var l *net.UnixListener
	err = inFolder(path, func(a *net.UnixAddr) error {
		l, err = net.ListenUnix("unix", a)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its path is that of a closed descriptor
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return // closed
			}
			_, _, _ = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(namespace.Fd())), nil) // fits into the buffer
			_ = conn.Close()
		}
	}()
	return func() {
		_ = l.Close()
		<-done
		_ = os.Remove(path)
		_ = namespace.Close()
	}, nil
}

// receiveNamespace returns the net namespace that a keeper shares.
func receiveNamespace(path string) (*os.File, error) {
	var conn *net.UnixConn
	err := inFolder(path, func(a *net.UnixAddr) (err error) {
		conn, err = net.DialUnix("unix", nil, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(loopbackWait)); err != nil {
		return nil, err
	}
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(data, rights)
	if err != nil {
		return nil, err
	}
	namespace := sandbox.PassedFile(rights[:n])
	if namespace == nil {
		return nil, fmt.Errorf("%s passed no namespace", path)
	}
	unix.CloseOnExec(int(namespace.Fd()))
	return namespace, nil
}
