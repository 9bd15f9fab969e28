package cli

import (
	"context"
	"io"
)

// untilDone returns what read returns, or the cause of ctx if that is done first: stdin
// or a named pipe may never provide data. An abandoned read ends with the process.
func untilDone(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	got := make(chan outcome, 1)
	go func() {
		data, err := read()
		got <- outcome{data, err}
	}()
	select {
	case o := <-got:
		return o.data, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// cancellable returns a reader whose reads end with ctx.
func cancellable(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		data, err := untilDone(ctx, func() ([]byte, error) {
			own := make([]byte, len(b)) // b must not be used once ctx is done
			n, err := r.Read(own)
			return own[:n], err
		})
		return copy(b, data), err
	})
}
