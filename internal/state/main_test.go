//go:build unix

package state

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary act as one of many runs of toolreg: real processes that
// share only the files.
func TestMain(m *testing.M) {
	role := os.Getenv("STATE_TEST_ROLE")
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := play(role, os.Getenv("STATE_TEST_DIR")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role, path string) error {
	dir, err := OpenDir(path)
	if err != nil {
		return err
	}
	dir.Wait = long
	switch role {
	case "count":
		for range updatesEach {
			if err := dir.Update(background, "counter", increment); err != nil {
				return err
			}
		}
		return nil
	case "append":
		for i := range updatesEach {
			if err := dir.Append(background, "log", []byte(strings.Repeat(strconv.Itoa(i%10), 1000))); err != nil {
				return err
			}
		}
		return nil
	case "storm": // until it is killed
		for {
			if err := dir.Update(background, "value", flip); err != nil {
				return err
			}
		}
	case "full":
		return onFullDisk(dir)
	}
	return errors.New("no such role")
}

func increment(old []byte) ([]byte, error) {
	n := 0
	if len(old) > 0 {
		var err error
		if n, err = strconv.Atoi(string(old)); err != nil {
			return nil, err
		}
	}
	return []byte(strconv.Itoa(n + 1)), nil
}

// flip replaces a large value that repeats one letter by one that repeats the other
// letter.
func flip(old []byte) ([]byte, error) {
	letter := "a"
	if strings.HasPrefix(string(old), "a") {
		letter = "b"
	}
	return []byte(strings.Repeat(letter, stormSize)), nil
}

// onFullDisk writes with a file size limit of 4 KiB.
func onFullDisk(dir *Dir) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	full := syscall.Rlimit{Cur: 4096, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return err
	}
	err := dir.Update(background, "value", flip)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("update on a full disk: %w", err)
	}
	a := dir.Appender("log")
	for range 5 {
		_, err = a.Append(background, []byte(strings.Repeat("x", 1000)))
	}
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("append on a full disk: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	_, err = a.Append(background, []byte("again")) // when there is space again
	return errors.Join(err, a.Close())
}
