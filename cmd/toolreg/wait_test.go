//go:build unix

package main

import "time"

// patience is longer than anything takes on a busy machine. It only bounds a failure.
const patience = 3 * time.Minute

// waitFor polls until done returns true, as long as patience lasts, and reports whether it did. If
// ended is not nil, the end of that process ends the wait.
func waitFor(done func() bool, ended chan error) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		if done() {
			return true
		}
		select {
		case err := <-ended:
			ended <- err // another receiver may wait for it
			return done()
		case <-limit:
			return false
		case <-tick.C:
		}
	}
}
