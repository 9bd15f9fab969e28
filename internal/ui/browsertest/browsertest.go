// Package browsertest uses pages in headless Chromium, as a person would.
package browsertest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Observe opens a page that frames the page under test, uses it and calls done with
// the texts that it observed, which Observe returns. The probe is HTML; dir has the
// pages that it frames, and env is added to the environment of the browser. Without
// Chromium the test is skipped.
func Observe(t *testing.T, dir, probe string, env ...string) map[string]string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed; make page installs it")
	}
	probe = `<body><script>const done = (seen) => { document.body.textContent = "SEEN" + JSON.stringify(seen) + "END"; };</script>` + probe
	if err := os.WriteFile(filepath.Join(dir, "probe.html"), []byte(probe), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"),
		"--virtual-time-budget=10000", "--dump-dom", "file://"+filepath.Join(dir, "probe.html"))
	cmd.Env = append(os.Environ(), env...)
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("running chromium: %v", err)
	}
	_, rest, _ := strings.Cut(string(dom), "SEEN")
	text, _, ok := strings.Cut(rest, "END")
	var seen map[string]string
	if err := json.Unmarshal([]byte(text), &seen); !ok || err != nil {
		t.Fatalf("%v in %s", err, dom)
	}
	return seen
}
