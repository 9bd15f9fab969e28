// peak prints the most memory that a command had, in MiB, as the kernel keeps it
// while the command runs: what is left of it at its end counts its children too.
//
//	peak COMMAND ARG…
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	kilobytes := 0.0
	for {
		select {
		case err := <-ended:
			fmt.Printf("%.0f\n", kilobytes/1024)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case <-time.After(time.Millisecond):
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmHWM:") {
				fmt.Sscanf(line, "VmHWM: %f", &kilobytes)
			}
		}
	}
}
