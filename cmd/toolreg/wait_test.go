package main

import "time"

// waitFor polls until done, at most 30 s, and says whether it came about. An
// end of the process that is watched, if any, ends the wait.
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
			ended <- err // for whoever waits for the end
			return done()
		case <-limit:
			return false
		case <-tick.C:
		}
	}
}
