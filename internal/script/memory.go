package script

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/toolreg/toolreg/internal/memory"
)

// The memory of the engine is watched twice: by itself, because it knows which memory is only
// garbage, and by the process that started it, because the garbage collector stops every
// goroutine of the engine for as long as one operation of the script takes. So the engine
// collects garbage only when its memory has grown, and first reports the place that the
// script has reached.
const (
	looks = 2 * time.Millisecond
	// slack is what the engine may use beyond its limit before it is killed.
	slack = 256 << 20
)

// watchOwn calls exceeded when the memory of this process, without garbage, has grown by more
// than the limit. It calls collecting before it collects garbage. The returned function ends
// the watch.
func watchOwn(ctx context.Context, limit uint64, collecting, exceeded func()) (stop func()) {
	used, closeFile := resident("self")
	begin := used()
	if begin == 0 {
		closeFile()
		debug.SetGCPercent(100)
		ctx, stop := memory.Limit(ctx, limit)
		context.AfterFunc(ctx, exceeded)
		return stop
	}
	ctx, stop = context.WithCancel(ctx)
	grown := func() uint64 { return max(used(), begin) - begin }
	go func() {
		defer closeFile()
		debug.SetPanicOnFault(true) // collecting looks at a stack that may change
		next := limit / 2
		for ctx.Err() == nil {
			if grown() > next {
				collecting()
				for range 2 { // the first one does not find what became garbage meanwhile
					if debug.FreeOSMemory(); grown() <= next {
						break
					}
				}
				live := grown()
				if live > limit {
					exceeded()
					return
				}
				next = live + max((limit-live)/2, 1<<20)
			}
			time.Sleep(looks)
		}
	}()
	return stop
}

// watchOther calls exceeded when a process uses far more memory than its limit.
func watchOther(ctx context.Context, pid string, limit uint64, exceeded func()) {
	used, closeFile := resident(pid)
	go func() {
		defer closeFile()
		for ctx.Err() == nil {
			if used() > limit+slack {
				exceeded()
				return
			}
			time.Sleep(2 * looks)
		}
	}()
}
