package process

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary act as a toolreg that starts a child and is
// then killed, and checks at the end that no goroutines were leaked.
func TestMain(m *testing.M) {
	if os.Getenv("PROCESS_TEST_PARENT") != "" {
		child, err := Start(Spec{Argv: []string{"/bin/sh", "-c", os.Getenv("PROCESS_TEST_SCRIPT")}, Env: os.Environ(), Guard: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(child.PID())
		<-child.Done()
		os.Exit(0)
	}
	Adopt()
	goleak.VerifyTestMain(m)
}
