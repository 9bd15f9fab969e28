package ui

import (
	"context"
	"errors"
	"os"
)

// HasFull reports whether [TTY.Full] works on this system. It is not implemented for
// Windows consoles.
const HasFull = false

func makeRaw(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }

func watchSize() (changed chan os.Signal, forget func()) { return nil, func() {} }

func stopSelf(context.Context) {}

type keyReader struct{ keys chan Key }

func newKeyReader(*os.File) (*keyReader, error) { return nil, errors.ErrUnsupported }

func (*keyReader) close() {}
