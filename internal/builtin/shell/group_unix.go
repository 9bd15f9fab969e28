//go:build unix

package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/process"
)

// detachScript starts "$@" in the background, prints its process id, and exits,
// so that init adopts the process and it outlives toolreg. The process closes the descriptor
// when it is ready; see [Keep].
const detachScript = `"$@" &
printf '%s\n' "$!" >&3
`

// detach starts argv, the keeper of a command, in a new session without a
// terminal, and returns when it is ready or ctx is done. The keeper's own output goes to
// log. detach sets the process ids of the record.
func detach(ctx context.Context, r *backgroundRecord, argv []string, dir string, env []string, log *os.File) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	starter, err := os.StartProcess("/bin/sh", append([]string{"sh", "-c", detachScript, "sh"}, argv...), &os.ProcAttr{
		Dir: dir, Env: append([]string{}, env...), Files: []*os.File{null, log, log, say},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	say.Close()
	if err != nil {
		return err
	}
	reader := bufio.NewReader(said)
	line, readErr := reader.ReadString('\n')
	state, err := starter.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("its launcher exited with %v", state)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	if err == nil && (readErr != nil || pid <= 1) {
		err = errors.New("its launcher reported no process")
	}
	process.GoesOn(starter.Pid)
	r.PID, r.Group = pid, starter.Pid
	r.Birth, _ = birthOf(pid) // "" if it has already ended, and then isAlive is false
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = said.SetReadDeadline(time.Now()) })
		defer stop()
		_, _ = io.Copy(io.Discard, reader) // it fails if ctx is done
	}
	return err
}

// isAlive reports whether the process of a record is still running. The id
// alone is not enough: it may belong to another process by now.
func isAlive(r *backgroundRecord) bool {
	group, err := unix.Getpgid(r.PID)
	if err != nil || group != r.Group {
		return false
	}
	birth, ok := birthOf(r.PID)
	return ok && birth == r.Birth
}

const killGrace = 2 * time.Second

// end asks the group of a running process to exit, and kills it if it does not
// exit in time.
func (b *backgroundStore) end(r *backgroundRecord, wait func(time.Duration)) error {
	if !b.state(r).running {
		return errEnded
	}
	if err := replaceFile(b.path(r.ID, "exit"), []byte("killed\n")); err != nil {
		return fmt.Errorf("ending %q: %w", r.ID, err)
	}
	if err := signalGroup(r.Group, unix.SIGTERM, wait); err != nil {
		return fmt.Errorf("ending %q: %w", r.ID, err)
	}
	if err := signalGroup(r.Group, unix.SIGKILL, wait); err != nil {
		return fmt.Errorf("ending %q: %w", r.ID, err)
	}
	if r.Mark != "" {
		process.EndStrays(r.Group, r.Mark)
	}
	return nil
}

// signalGroup signals a group and waits for it to exit. A group that no longer
// exists is not an error.
func signalGroup(group int, sig unix.Signal, wait func(time.Duration)) error {
	if !groupIsAlive(group) {
		return nil
	}
	if err := unix.Kill(-group, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for waited := time.Duration(0); waited < killGrace && groupIsAlive(group); waited += pollInterval {
		wait(pollInterval)
	}
	return nil
}

func signalNumber(name string) int { return int(unix.SignalNum(name)) }
