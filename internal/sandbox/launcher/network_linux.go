//go:build amd64 || arm64

package launcher

import (
	"syscall"
	"unsafe"
)

// raiseLoopback brings up the loopback interface of the net namespace.
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{name: [16]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd),
		syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	return errorOf(errno)
}

// listen opens a port on the loopback of the net namespace and passes the socket to toolreg,
// which accepts connections from outside the namespace.
func listen(port int) *failure {
	step := "opening port " + itoa(port) + " for the proxy"
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(step, err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fail(step, err)
	}
	if err := syscall.Listen(fd, 128); err != nil {
		return fail(step, err)
	}
	sendReport(Report{Kind: Listening, Value: port}, fd)
	return nil
}

// shareNetwork passes the net namespace to toolreg, for other sandboxes to join.
func shareNetwork() *failure {
	const step = "sharing the loopback interface"
	fd, err := openFile("/proc/self/ns/net")
	if err != nil {
		return fail(step, err)
	}
	defer syscall.Close(fd)
	sendReport(Report{Kind: Networked}, fd)
	return nil
}
