package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// headroom is how much may be allocated between two garbage collections. Little
	// stays in memory, but decoding the messages of one call takes half a MiB, so without
	// headroom the collector would run every few calls.
	headroom = 16 << 20
	// leastPercent is the minimum growth of the heap between two collections. With
	// thousands of clients each collection takes longer and should run less often.
	leastPercent = 50
)

// CollectLater makes the garbage collector run after headroom was allocated. It adjusts
// the target after each collection. It does nothing if GOGC is set. For commands that go
// on until they are stopped.
func CollectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(leastPercent)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	live := m.NextGC * 100 / (100 + leastPercent)
	percent := headroom * 100 / max(live, 4<<20)
	debug.SetGCPercent(max(int(percent), leastPercent))
	marker := new(int)
	runtime.AddCleanup(marker, func(struct{}) { CollectLater() }, struct{}{})
}
