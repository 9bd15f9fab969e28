package providers_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersionNamesTheSDKs compares what version --json says of the SDKs with
// the modules that these tests are built with, and with docs/providers.md.
func TestVersionNamesTheSDKs(t *testing.T) {
	var printed struct {
		Providers struct {
			AsOf string `json:"asOf"`
			SDKs []struct{ Module, Version string }
		}
	}
	out, err := exec.Command(filepath.Join(shared.dir, "toolreg"), "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &printed); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "as of "+printed.Providers.AsOf+":") {
		t.Errorf("version --json says that the SDKs are as of %q, docs/providers.md says another day", printed.Providers.AsOf)
	}
	if n := len(printed.Providers.SDKs); n != 5 {
		t.Errorf("version --json names %d SDKs, want 5", n)
	}
	for _, sdk := range printed.Providers.SDKs {
		version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", sdk.Module).Output()
		if err != nil || strings.TrimSpace(string(version)) != sdk.Version {
			t.Errorf("version --json names %s %s, the tests use %s (%v)", sdk.Module, sdk.Version, version, err)
		}
		if !strings.Contains(string(page), sdk.Version) {
			t.Errorf("docs/providers.md does not name %s %s", sdk.Module, sdk.Version)
		}
	}
}
