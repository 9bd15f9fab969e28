package todo

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// startOfRun corrects the time at which this process recorded its start with
// what the system knows: it may have waited long for a processor before. The
// process was started at that time or earlier.
func startOfRun(noted time.Time) time.Time {
	now := time.Now()
	data, err := os.ReadFile("/proc/self/schedstat")
	if err != nil {
		return noted
	}
	// The time that its first thread ran and waited for a processor, in nanoseconds.
	spent := time.Duration(0)
	for _, field := range strings.Fields(string(data))[:2] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return noted
		}
		spent += time.Duration(n)
	}
	if at := now.Add(-spent); at.Before(noted) {
		return at
	}
	return noted
}
