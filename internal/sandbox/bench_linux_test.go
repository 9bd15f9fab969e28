//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	osexec "os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// BenchmarkStart measures the time that a sandbox adds to /bin/true, in
// comparison with bubblewrap with the same folders. The three run alternately,
// and medians are reported, so that load on the machine affects all of them
// equally.
func BenchmarkStart(b *testing.B) {
	if support := sandbox.Probe(); !support.Full() {
		b.Skip("this system cannot confine in full")
	}
	wrapper, err := osexec.LookPath("bwrap")
	if err != nil {
		b.Skip("bubblewrap is not installed")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		b.Skip(err)
	}
	dir := b.TempDir()
	profile := sandbox.Default(sandbox.Place{Workspace: []string{dir}, Home: home, Environ: os.Environ()})
	program := func(confine *sandbox.Profile) func() error {
		return func() error {
			_, err := process.Run(b.Context(), process.Spec{Argv: []string{"/bin/true"}, Env: os.Environ(), Dir: dir, Confine: confine})
			return err
		}
	}
	arguments := append(wrapped(profile), "/bin/true")
	runs := []func() error{
		program(nil),
		program(&profile),
		func() error { return osexec.Command("/bin/true").Run() },
		func() error { return osexec.Command(wrapper, arguments...).Run() },
	}
	times := make([][]time.Duration, len(runs))
	for b.Loop() {
		for i, run := range runs {
			start := time.Now()
			if err := run(); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return times[i][len(times[i])/2].Seconds() * 1000
	}
	adds, theirs := median(1)-median(0), median(3)-median(2)
	b.ReportMetric(adds, "ms-added")
	b.ReportMetric(theirs, "ms-by-bubblewrap")
	b.ReportMetric(adds/theirs, "ratio")
}

// wrapped returns the arguments with which bubblewrap makes the same folders
// visible.
func wrapped(p sandbox.Profile) []string {
	out := []string{"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--new-session", "--die-with-parent",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/dev/shm", "--ro-bind", "/etc", "/etc"}
	show := func(option string, paths []string) {
		for _, path := range paths {
			info, err := os.Lstat(path)
			switch {
			case err != nil || len(path) > 5 && path[:5] == "/etc/":
			case info.Mode()&os.ModeSymlink != 0:
				to, _ := os.Readlink(path)
				out = append(out, "--symlink", to, path)
			default:
				out = append(out, option, path, path)
			}
		}
	}
	show("--ro-bind", append(slices.Clone(p.Read), p.Scratch...))
	show("--bind", p.Write)
	return out
}
