package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// builtServer is a variable with the path of the server, for systems without the go command.
const builtServer = "MCPTEST_SERVER"

// Build builds the server as the program mcp-testserver in a new folder, which the caller
// removes. It starts much faster than a test binary that acts as the server, above all one
// with the race detector.
func Build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "mcptest"); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "mcp-testserver")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if built := os.Getenv(builtServer); built != "" {
		data, err := os.ReadFile(built)
		if err != nil {
			return "", err
		}
		return dir, os.WriteFile(program, data, 0o700)
	}
	build := exec.Command("go", "build", "-o", program, "github.com/toolreg/toolreg/testdata/clients/testserver")
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("building mcp-testserver: %w\n%s", err, out)
	}
	return dir, nil
}
