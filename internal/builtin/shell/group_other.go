//go:build !unix

package shell

import (
	"context"
	"errors"
	"os"
	"time"
)

// detach always fails, because this system has no process groups.
func detach(context.Context, *backgroundRecord, []string, string, []string, *os.File) error {
	return errors.New(
		"background commands need process groups, which this system does not have; run the command without background")
}

func isAlive(*backgroundRecord) bool { return false }

// birthOf reports every process as ended.
func birthOf(int) (birth string, ok bool) { return "", false }

func groupIsAlive(int) bool { return false }

func (b *backgroundStore) end(*backgroundRecord, func(time.Duration)) error { return errEnded }

const killGrace = 2 * time.Second

func signalNumber(string) int { return 0 }
