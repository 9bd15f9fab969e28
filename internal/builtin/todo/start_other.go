//go:build !linux

package todo

import "time"

// startOfRun returns the time at which this process recorded its start.
func startOfRun(noted time.Time) time.Time { return noted }
