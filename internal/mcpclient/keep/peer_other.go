//go:build !linux && !darwin

package keep

import "net"

// checkPeer relies on the folder of the socket, which only this user can enter.
func checkPeer(net.Conn) error { return nil }
