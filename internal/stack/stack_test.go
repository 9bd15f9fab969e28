package stack

import (
	"testing"
	"unsafe"
)

// After the reservation a goroutine can go deep without a move of its stack.
func TestReserve(t *testing.T) {
	for name, tt := range map[string]struct {
		reserve func()
		deep    int // KiB
		want    bool
	}{
		"nothing":     {func() {}, 20, true},
		"Reserve":     {Reserve, 20, false},
		"ReserveMore": {ReserveMore, 90, false},
	} {
		t.Run(name, func(t *testing.T) {
			moved := make(chan bool)
			go func() {
				tt.reserve()
				var here byte
				before := uintptr(unsafe.Pointer(&here))
				descend(tt.deep)
				moved <- uintptr(unsafe.Pointer(&here)) != before
			}()
			if got := <-moved; got != tt.want {
				t.Errorf("stack moved: %v, want %v", got, tt.want)
			}
		})
	}
}

// descend uses n KiB of the stack.
//
//go:noinline
func descend(n int) byte {
	var kib [1 << 10]byte
	kib[n]++
	if n > 0 {
		kib[0] = descend(n - 1)
	}
	return kib[0]
}
