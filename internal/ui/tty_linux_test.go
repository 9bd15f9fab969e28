package ui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/process"
)

func TestMain(m *testing.M) {
	if os.Getenv("TERMINAL_TEST_OPEN") != "" { // see TestNoTerminal
		_, err := OpenTTY()
		fmt.Print(err)
		return
	}
	_, forget := watchContinued() // the first one starts a goroutine, which must not be in a bubble of synctest
	forget()
	goleak.VerifyTestMain(m)
}

// TestNoTerminal opens the terminal in a process that has none.
func TestNoTerminal(t *testing.T) {
	out, err := process.Run(t.Context(), process.Spec{Argv: []string{os.Args[0]}, Env: []string{"TERMINAL_TEST_OPEN=1"}})
	if err != nil || !strings.HasPrefix(string(out.Stdout), "opening the terminal: open /dev/tty") {
		t.Errorf("%s %s, %v", out.Stdout, out.Stderr, err)
	}
}

func TestScanLine(t *testing.T) {
	for in, want := range map[string]string{"y\nrest": "y", "y\rrest": "y", " y \n": "y", strings.Repeat("a", 9000) + "\n": strings.Repeat("a", maxAnswer)} {
		if got, err := scanLine(strings.NewReader(in)); got != want || err != nil {
			t.Errorf("%.20q: %.20q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "y", "y\x03\n", "\x04", "y\x1a\n"} {
		if got, err := scanLine(strings.NewReader(in)); !errors.Is(err, io.EOF) || got != "" {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
