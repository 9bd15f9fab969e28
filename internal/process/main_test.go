package process

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets the test binary play a toolreg that starts a child and is then
// killed, and checks at the end that no goroutine was left behind.
func TestMain(m *testing.M) {
	if role := os.Getenv("PROCESS_TEST_PARENT"); role != "" {
		child, err := Start(Spec{Argv: []string{"/bin/sh", "-c", os.Getenv("PROCESS_TEST_SCRIPT")}, Env: os.Environ()})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if role == "guarded" {
			awaitGuard(child)
		}
		fmt.Println(child.PID())
		<-child.Done()
		os.Exit(0)
	}
	Adopt()
	goleak.VerifyTestMain(m)
}

// awaitGuard returns when the child has its guard, for a toolreg that a test is
// going to kill.
func awaitGuard(c *Child) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		c.launched.mu.Lock()
		guarded := c.launched.guard != nil
		c.launched.mu.Unlock()
		if guarded {
			return
		}
	}
}
