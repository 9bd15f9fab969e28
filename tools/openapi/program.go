package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// program is toolreg with a home of its own, so that nothing is read from or left on the
// machine.
type program struct {
	path string
	home string
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = filepath.Join(p.home, "work")
	cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_CONFIG_HOME="+filepath.Join(p.home, "config"),
		"XDG_STATE_HOME="+filepath.Join(p.home, "state"),
		"XDG_CACHE_HOME="+filepath.Join(p.home, "cache"), "XDG_RUNTIME_DIR="+filepath.Join(p.home, "run"))
	return cmd
}

// usage is what a process needed.
type usage struct {
	CPU    time.Duration
	Memory int64 // the most, in bytes
}

// measureArg makes this program run another one and report what it needed.
const measureArg = "measure"

// measure runs a program and writes what it needed to the file 3. Between this program, which
// may have needed much memory, and the other one there is a process that has not: the most that
// a process has had counts for those that it starts.
func measure(argv []string) int {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	used := usage{CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		used.Memory = r.Maxrss * 1024
	}
	if err := json.NewEncoder(os.NewFile(3, "usage")).Encode(used); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// run returns stdout. An exit code other than 0 and those in allowed is an error with
// stderr in it.
func (p program) run(ctx context.Context, allowed []int, args ...string) ([]byte, usage, error) {
	var used usage
	self, err := os.Executable()
	if err != nil {
		return nil, used, err
	}
	report, writer, err := os.Pipe()
	if err != nil {
		return nil, used, err
	}
	defer report.Close()
	cmd := p.command(ctx, args...)
	cmd.Args = append([]string{self, measureArg, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.ExtraFiles = self, []*os.File{writer}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	writer.Close()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && slices.Contains(allowed, exit.ExitCode())) {
		return nil, used, fmt.Errorf("toolreg %v: %w\n%s", args, err, head(errOut.String(), 2000))
	}
	return out.Bytes(), used, json.NewDecoder(report).Decode(&used)
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// session is a running toolreg rpc.
type session struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// rpcError is the error of a request. Code is that of --json.
type rpcError struct {
	Message string
	Data    struct{ Code string }
}

func (e *rpcError) Error() string { return e.Message }

func (p program) session(ctx context.Context, args ...string) (*session, error) {
	s := &session{cmd: p.command(ctx, append([]string{"rpc", "--yes"}, args...)...)}
	s.cmd.Stderr = io.Discard
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = s.request("initialize",
		map[string]any{"client": map[string]any{"name": "documents", "version": "1"}, "capabilities": map[string]any{}})
	return s, err
}

// request sends a request and returns its result. Notifications are skipped.
func (s *session) request(method string, params any) (json.RawMessage, error) {
	s.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var answer struct {
			ID     int
			Method string
			Result json.RawMessage
			Error  *rpcError
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return nil, fmt.Errorf("reading %q: %w", head(string(line), 200), err)
		}
		switch {
		case answer.Method != "" || answer.ID != s.id:
		case answer.Error != nil:
			return nil, answer.Error
		default:
			return answer.Result, nil
		}
	}
}

func (s *session) close() error {
	s.in.Close()
	return s.cmd.Wait()
}
