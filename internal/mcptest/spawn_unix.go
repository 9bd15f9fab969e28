//go:build unix

package mcptest

import (
	"os"
	"os/signal"
	"syscall"
)

// startSleeper starts a child in our own process group that sleeps for an hour
// and returns its pid.
func startSleeper() (int, error) {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "3600"}, &os.ProcAttr{})
	if err != nil {
		return 0, err
	}
	return p.Pid, nil
}

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP) }
