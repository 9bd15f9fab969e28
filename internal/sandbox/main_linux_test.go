//go:build amd64 || arm64

package sandbox_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// TestMain lets the test binary act as a confined program, or as a toolreg on a
// kernel without some features.
func TestMain(m *testing.M) {
	switch role := os.Getenv("SANDBOX_TEST_ROLE"); role {
	case "":
		process.Adopt()
		os.Exit(m.Run())
	case "calls":
		makeCalls()
	case "fetch":
		fetch()
	case "descriptors":
		printDescriptors()
	default:
		pretend(role)
	}
}

// needFull skips a test on systems that cannot fully confine programs.
func needFull(t *testing.T) {
	t.Helper()
	if support := sandbox.Probe(); !support.Full() {
		t.Skipf("this system cannot confine in full; missing: %s", strings.Join(support.Missing(), ", "))
	}
}

// place is a home with a workspace for one test.
type place struct{ home, workspace string }

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{home: t.TempDir(), workspace: t.TempDir()}
	p.write(t, ".ssh/id", "secret")
	p.write(t, ".gitconfig", "[user]\n")
	p.write(t, ".cargo/bin/tool", "#!/bin/sh\necho tool\n")
	p.write(t, ".cargo/credentials.toml", "secret")
	p.write(t, ".npm/entry", "cached")
	return p
}

// write writes a file of the home.
func (p place) write(t *testing.T, name, text string) {
	t.Helper()
	writeFile(t, p.home+"/"+name, text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(path[:strings.LastIndexByte(path, '/')], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (p place) environ() []string {
	return []string{"PATH=" + p.home + "/.cargo/bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + p.home}
}

func (p place) profile() sandbox.Profile {
	return sandbox.Default(sandbox.Place{Workspace: []string{p.workspace}, Home: p.home, Environ: p.environ()})
}

// shell runs a script in a sandbox and returns what it printed on both streams.
func (p place) shell(t *testing.T, profile sandbox.Profile, script string) string {
	t.Helper()
	o, err := process.Run(t.Context(), process.Spec{
		Argv: []string{"/bin/sh", "-c", script}, Env: p.environ(), Dir: p.workspace, Confine: &profile,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(o.Stdout) + string(o.Stderr)
}

// self runs the test binary in a sandbox, acting in a role.
func (p place) self(t *testing.T, profile sandbox.Profile, role string) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	profile.Read = append(profile.Read, binary)
	o, err := process.Run(t.Context(), process.Spec{
		Argv: []string{binary}, Env: append(p.environ(), "SANDBOX_TEST_ROLE="+role), Dir: p.workspace, Confine: &profile,
	})
	if err != nil || o.ExitCode != 0 {
		t.Fatalf("%v, exit code %d: %s", err, o.ExitCode, o.Stderr)
	}
	return string(o.Stdout)
}

// printDescriptors prints the descriptors that the program inherited.
func printDescriptors() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.Contains(to, "eventpoll") && !strings.Contains(to, "eventfd") {
			fmt.Println(e.Name())
		}
	}
}
