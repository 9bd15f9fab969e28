package shell

import (
	"os"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
)

// birthOf returns when a process was started, together with the id of the boot.
// ok is false if the process has ended.
func birthOf(pid int) (birth string, ok bool) {
	start := process.Started(pid)
	if start == "" {
		return "", false
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil // use the ticks alone
	}
	return strings.TrimSpace(string(boot)) + ":" + start, true
}
