package keep

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer returns an error unless the process at the other end belongs to this user.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if failed == nil && int(peer.Uid) != os.Getuid() {
		return errNotOurs
	}
	return failed
}
