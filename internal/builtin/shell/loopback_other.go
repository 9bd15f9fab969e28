//go:build !linux || (!amd64 && !arm64)

package shell

import "os"

// loopback returns nothing: where there are no net namespaces, confined commands share the loopback
// interface of the machine.
func (b *backgroundStore) loopback(scope) (namespace *os.File, socket string) { return nil, "" }

func (b *backgroundStore) startAlone() (end func(), err error) { return func() {}, nil }

func shareNetwork(_ string, namespace *os.File) (end func(), err error) {
	return func() { _ = namespace.Close() }, nil
}

func receiveNamespace(string) (*os.File, error) { return nil, os.ErrNotExist }
