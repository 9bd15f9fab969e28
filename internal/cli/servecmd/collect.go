package servecmd

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// headroom is how much is allocated between two garbage collections. Little stays
	// in memory, but decoding the messages of one call takes half a MiB: without
	// headroom the collector would run for every few calls.
	headroom = 16 << 20
	// leastPercent is the least growth of memory between two collections: with
	// thousands of clients each collection takes longer.
	leastPercent = 50
)

// collectLater sets the collector to headroom, again after each collection, unless
// GOGC says how it should run.
func collectLater() {
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
	runtime.AddCleanup(marker, func(struct{}) { collectLater() }, struct{}{})
}
