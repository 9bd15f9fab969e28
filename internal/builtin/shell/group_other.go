//go:build !unix

package shell

import (
	"context"
	"errors"
	"os"
	"time"
)

// detach always fails, because this system has no process groups.
func detach(context.Context, []string, string, []string, *os.File) (pid, group int, birth string, err error) {
	return 0, 0, "", errors.New(
		"background commands need process groups, which this system does not have; run the command without background")
}

func isAlive(pid, group int, birth string) bool { return false }

func endGroup(int, func(time.Duration)) error { return nil }

const killGrace = 2 * time.Second

func signalNumber(string) int { return 0 }

// Keep is not available without process groups.
func Keep(context.Context, []string) error {
	return errors.New("background commands need process groups, which this system does not have")
}
