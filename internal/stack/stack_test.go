package stack

import (
	"log"
	"testing"
	"unsafe"
)

// TestMain runs on the main goroutine, whose stack is large from the beginning.
func TestMain(m *testing.M) {
	if moves(90) {
		log.Fatal("the stack of the main goroutine moved")
	}
	m.Run()
}

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
				moved <- moves(tt.deep)
			}()
			if got := <-moved; got != tt.want {
				t.Errorf("stack moved: %v, want %v", got, tt.want)
			}
		})
	}
}

// moves reports whether the stack of the calling goroutine moves when n KiB more of
// it are used.
func moves(n int) bool {
	var here byte
	before := uintptr(unsafe.Pointer(&here))
	descend(n)
	return uintptr(unsafe.Pointer(&here)) != before
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
