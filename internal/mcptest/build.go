package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the server as the program mcp-testserver in a new folder, which the caller
// removes. It starts much faster than a test binary that acts as the server, above all one
// with the race detector.
func Build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "mcptest"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "mcp-testserver"), "github.com/toolreg/toolreg/testdata/clients/testserver")
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("building mcp-testserver: %w\n%s", err, out)
	}
	return dir, nil
}
