// Package browsertest uses pages in headless Chromium, as a person would.
package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Observe opens a page that frames the page under test, uses it and calls done with
// the texts that it observed, which Observe returns. The probe is HTML; dir has the
// pages that it frames, and env is added to the environment of the browser. Without
// Chromium the test is skipped.
func Observe(t *testing.T, dir, probe string, env ...string) map[string]string {
	t.Helper()
	file := filepath.Join(dir, "probe.html")
	probe = `<script>const done = (seen) => { window.seen = JSON.stringify(seen); };</script>` + probe
	if err := os.WriteFile(file, []byte(probe), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := Open(t, "file://"+file, 1280, 1000, env...)
	tab.Wait("window.seen")
	var seen map[string]string
	if err := json.Unmarshal([]byte(tab.Eval("window.seen")), &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}
