package cli

import (
	"context"
	"io"

	"github.com/toolreg/toolreg/internal/ui"
)

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// cancellable returns a reader whose reads end with ctx.
func cancellable(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		data, err := ui.UntilDone(ctx, func() ([]byte, error) {
			own := make([]byte, len(b)) // b must not be used once ctx is done
			n, err := r.Read(own)
			return own[:n], err
		})
		return copy(b, data), err
	})
}
