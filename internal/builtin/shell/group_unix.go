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
// log.
func detach(ctx context.Context, argv []string, dir string, env []string, log *os.File) (
	pid, group int, birth string, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, 0, "", err
	}
	defer null.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return 0, 0, "", err
	}
	defer said.Close()
	starter, err := os.StartProcess("/bin/sh", append([]string{"sh", "-c", detachScript, "sh"}, argv...), &os.ProcAttr{
		Dir: dir, Env: append([]string{}, env...), Files: []*os.File{null, log, log, say},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	say.Close()
	if err != nil {
		return 0, 0, "", err
	}
	reader := bufio.NewReader(said)
	line, readErr := reader.ReadString('\n')
	state, err := starter.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("its launcher exited with %v", state)
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(line))
	if err == nil && (readErr != nil || pid <= 1) {
		err = errors.New("its launcher reported no process")
	}
	process.GoesOn(starter.Pid)
	birth, _ = birthOf(pid) // "" if it has already ended, and then isAlive is false
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = said.SetReadDeadline(time.Now()) })
		defer stop()
		_, _ = io.Copy(io.Discard, reader) // it fails if ctx is done
	}
	return pid, starter.Pid, birth, err
}

// isAlive reports whether a process that detach started is still running. The id
// alone is not enough: it may belong to another process by now.
func isAlive(pid, group int, birth string) bool {
	if now, err := unix.Getpgid(pid); err != nil || now != group {
		return false
	}
	now, ok := birthOf(pid)
	return ok && now == birth
}

const killGrace = 2 * time.Second

// endGroup asks a group to exit, and kills it if it does not exit in time. A group that no
// longer exists is not an error.
func endGroup(group int, wait func(time.Duration)) error {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if !process.GroupIsAlive(group) {
			return nil
		}
		if err := unix.Kill(-group, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		const step = killGrace / 100
		for waited := time.Duration(0); waited < killGrace && process.GroupIsAlive(group); waited += step {
			wait(step)
		}
	}
	return nil
}

func signalNumber(name string) int { return int(unix.SignalNum(name)) }
