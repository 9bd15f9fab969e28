package audit

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/state"
)

const (
	runs       = 50
	callsEach  = 100
	stormSize  = 64 << 10
	stormKeeps = 200
)

// TestMain lets the test binary act as one of many concurrent runs of toolreg,
// which share only the log files.
func TestMain(m *testing.M) {
	player := os.Getenv("AUDIT_TEST_PLAYER")
	if player == "" {
		goleak.VerifyTestMain(m)
		return
	}
	dir, err := state.OpenDir(os.Getenv("AUDIT_TEST_DIR"))
	if err == nil {
		log := &Log{Dir: dir, MaxSize: stormSize, Keep: stormKeeps}
		dir.Wait = 5 * time.Minute
		for i := 0; i < callsEach && err == nil; i++ {
			err = log.Add(context.Background(), Entry{Time: time.Now(), Tool: fmt.Sprintf("%s-%d", player, i), Source: "builtin", Outcome: OK})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
