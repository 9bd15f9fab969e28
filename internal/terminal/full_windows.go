package terminal

import (
	"context"
	"errors"
	"os"
)

// A console has no place yet in what follows: [TTY.Full] fails.

func raw(*os.File) (restore func(), err error) { return nil, errors.ErrUnsupported }

func watchSize() (changed chan os.Signal, forget func()) { return nil, func() {} }

func stopSelf(context.Context) {}

type keyReader struct{ keys chan Key }

func newKeyReader(*os.File) (*keyReader, error) { return nil, errors.ErrUnsupported }

func (*keyReader) close() {}
