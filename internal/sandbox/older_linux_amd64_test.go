package sandbox

import "testing"

// The older variants of the calls that create names take no descriptor of a folder.
func TestOlderCallsUseTheWorkingFolder(t *testing.T) {
	for call, c := range watchedHere() {
		for _, p := range c.paths {
			if p.folder >= 0 {
				t.Errorf("call %d: the folder is argument %d", call, p.folder)
			}
		}
	}
}
