// Package stack makes the stack of a goroutine large enough at once.
//
// The stack of a goroutine starts with 2 KiB and doubles each time it is full, and everything on it
// is copied. A goroutine with deep calls would copy it four to six times. Memory of a stack that is
// never touched is not used.
package stack

// The main goroutine goes deep when the schema library is initialized. Go initializes
// a package that imports nothing, as this one must, before the others.
var _ = reserveMore(0)

// Reserve makes the stack of the calling goroutine 32 KiB large.
func Reserve() { reserve(0) }

// ReserveMore makes it 128 KiB large, for recursion.
func ReserveMore() { reserveMore(0) }

// reserve returns before it touches the frame, whose size is all that matters.
//
//go:noinline
func reserve(i int) byte {
	if i == 0 {
		return 0
	}
	var frame [24 << 10]byte
	frame[i]++
	return frame[i/2]
}

//go:noinline
func reserveMore(i int) byte {
	if i == 0 {
		return 0
	}
	var frame [100 << 10]byte
	frame[i]++
	return frame[i/2]
}
