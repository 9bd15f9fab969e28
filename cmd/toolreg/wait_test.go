//go:build unix

package main

import "time"

// waitFor polls until done returns true, at most 30 s, and reports whether it did. If
// ended is not nil, the end of that process ends the wait.
func waitFor(done func() bool, ended chan error) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
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
