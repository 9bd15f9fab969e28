//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// long is a time that no test should have to wait for.
const long = time.Minute

func sh(script string) Spec {
	return Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Linger: long, Grace: long}
}

// gone reports whether no process with that id is running; a zombie is not.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// Processes that left the group are killed too, however they left, and whether
// or not they hold a pipe.
func TestRunContains(t *testing.T) {
	tests := map[string]string{
		"setsid":            `setsid sh -c 'echo $$; exec sleep 600' & while :; do sleep 0.01; done`,
		"a daemon":          `(setsid sh -c 'sh -c "echo \$\$; exec sleep 600 >/dev/null 2>&1" &' &); while :; do sleep 0.01; done`,
		"one after another": `setsid sh -c 'setsid sh -c "echo \$\$; exec sleep 600" & exec sleep 600' & while :; do sleep 0.01; done`,
	}
	for name, script := range tests {
		ctx, cancel := context.WithCancel(t.Context())
		spec := sh(script)
		spec.Grace, spec.Linger = time.Millisecond, time.Millisecond
		spec.Output = func(int, []byte) { cancel() }
		out, err := Run(ctx, spec)
		cancel()
		pid, convErr := strconv.Atoi(strings.TrimSpace(string(out.Stdout)))
		if convErr != nil {
			t.Fatalf("%s: %q, %v", name, out.Stdout, err)
		}
		if !gone(t, pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("%s: %d is still there", name, pid)
		}
	}
}

func TestRunReportsHowAProgramExited(t *testing.T) {
	tests := []struct {
		name   string
		script string
		stdin  []byte
		want   Outcome
	}{
		{"success", "echo out; echo err >&2", nil, Outcome{Stdout: []byte("out\n"), Stderr: []byte("err\n")}},
		{"nothing printed", "true", nil, Outcome{}},
		{"exit code", "exit 3", nil, Outcome{ExitCode: 3}},
		{"exit code that looks like a signal", "exit 143", nil, Outcome{ExitCode: 143}},
		{"signal", "kill -TERM $$", nil, Outcome{ExitCode: -1, Signal: "SIGTERM"}},
		{"signal without a name", "kill -34 $$", nil, Outcome{ExitCode: -1, Signal: "SIG34"}},
		{"stdin arrives completely and is closed", "cat", []byte(`{"a":1}`), Outcome{Stdout: []byte(`{"a":1}`)}},
		{"empty stdin", "cat", []byte{}, Outcome{}},
		{"no stdin is /dev/null", "test -t 0 || cat", nil, Outcome{}},
		{"stdin is not read", "exit 0", bytes.Repeat([]byte("x"), 4<<20), Outcome{}},
		{"stdin is closed by the program", "exec <&-; echo ok", bytes.Repeat([]byte("x"), 4<<20), Outcome{Stdout: []byte("ok\n")}},
		{"waits for the last holder of stdout", "(sleep 0.2; echo late) & echo now", nil, Outcome{Stdout: []byte("now\nlate\n")}},
		{"bytes are unchanged", `printf 'a\000\377\r\n'`, nil, Outcome{Stdout: []byte("a\x00\xff\r\n")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := sh(tt.script)
			spec.Stdin = tt.stdin
			got, err := Run(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.StdoutBytes, tt.want.StderrBytes = int64(len(tt.want.Stdout)), int64(len(tt.want.Stderr))
			tt.want.StdoutHead, tt.want.StderrHead = len(tt.want.Stdout), len(tt.want.Stderr)
			if got.PID <= 0 {
				t.Errorf("PID = %d", got.PID)
			}
			got.PID = 0
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunIsolatesSessionAndDescriptors(t *testing.T) {
	t.Setenv("PROCESS_TEST_SECRET", "hunter2")
	spec := sh(`set -- $(cat /proc/$$/stat); echo "pid $1 group $5 session $6 tty $7"; env; echo descriptors:; ls /proc/self/fd`)
	spec.Env = append(spec.Env, "A=1", "A=2")
	stray, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer stray.Close()
	got, err := Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out := string(got.Stdout)
	pid := strconv.Itoa(got.PID)
	for _, want := range []string{"group " + pid + " session " + pid + " tty 0\n", "A=2\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	for _, leak := range []string{"hunter2", "A=1"} {
		if strings.Contains(out, leak) {
			t.Errorf("the child sees %q", leak)
		}
	}
	// 0, 1, 2 and the descriptor of ls itself.
	if _, fds, _ := strings.Cut(out, "descriptors:\n"); fds != "0\n1\n2\n3\n" {
		t.Errorf("descriptors of the child: %q", fds)
	}
}

func TestRunWithoutEnvironmentIsEmpty(t *testing.T) {
	got, err := Run(t.Context(), Spec{Argv: []string{"/usr/bin/env"}})
	if err != nil || !strings.HasPrefix(string(got.Stdout), MarkVariable+"=") || strings.Count(string(got.Stdout), "\n") != 1 {
		t.Errorf("environment %q, %v", got.Stdout, err)
	}
}

func TestRunKillsAtTheOutputLimit(t *testing.T) {
	for _, stream := range []string{"1", "2"} {
		spec := sh("exec >&" + stream + "; while :; do echo 0123456789; done")
		spec.MaxOutput = 1000
		got, err := Run(t.Context(), spec)
		if !errors.Is(err, ErrOutputLimit) {
			t.Fatalf("stream %s: error %v", stream, err)
		}
		kept := got.Stdout
		if stream == "2" {
			kept = got.Stderr
		}
		if len(kept) != 1000 || !bytes.HasPrefix(kept, []byte("0123456789\n")) || got.Signal != "SIGKILL" {
			t.Errorf("stream %s: kept %d bytes, signal %q", stream, len(kept), got.Signal)
		}
	}
}

func TestRunOutputLimitIsExact(t *testing.T) {
	for n, want := range map[int]error{999: nil, 1000: nil, 1001: ErrOutputLimit} {
		spec := sh("head -c " + strconv.Itoa(n) + " /dev/zero")
		spec.MaxOutput = 1000
		got, err := Run(t.Context(), spec)
		if !errors.Is(err, want) || len(got.Stdout) != min(n, 1000) {
			t.Errorf("%d bytes: %v, kept %d", n, err, len(got.Stdout))
		}
	}
}

func TestRunKeepsHeadAndTail(t *testing.T) {
	spec := sh("seq 1 200000")
	spec.MaxOutput, spec.Keep = -1, 1001
	got, err := Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	head, tail := string(got.Stdout[:got.StdoutHead]), string(got.Stdout[got.StdoutHead:])
	if !got.Truncated || len(head) != 500 || len(tail) != 501 || got.StdoutBytes != 1288895 {
		t.Errorf("truncated %v, head %d, tail %d, of %d", got.Truncated, len(head), len(tail), got.StdoutBytes)
	}
	if !strings.HasPrefix(head, "1\n2\n3\n") || !strings.HasSuffix(tail, "\n199999\n200000\n") {
		t.Errorf("head %.10q…, tail …%q", head, tail[len(tail)-20:])
	}
}

// A child that floods its output, a child that ignores SIGTERM and a grandchild
// that does are all gone when Run returns.
func TestRunCanceledLeavesNoProcesses(t *testing.T) {
	tests := []struct {
		name   string
		script string
		grace  time.Duration
		signal string
		stdout string
	}{
		{"a program that obeys", "echo ready; sleep 600", long, "SIGTERM", "ready\n"},
		{"a program that cleans up", "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.02; done", long, "", "ready\nbye\n"},
		{"a program that ignores it", "trap '' TERM; echo ready; while :; do sleep 0.02; done", time.Millisecond, "SIGKILL", "ready\n"},
		{"a grandchild that ignores it", "(trap '' TERM; echo ready; while :; do sleep 0.02; done) & wait", time.Millisecond, "", "ready\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cause := errors.New("the person pressed a key")
			ctx, cancel := context.WithCancelCause(t.Context())
			spec := sh(tt.script)
			spec.Grace = tt.grace
			spec.Output = func(_ int, p []byte) {
				if bytes.Contains(p, []byte("ready")) {
					cancel(cause)
				}
			}
			got, err := Run(ctx, spec)
			if !errors.Is(err, cause) {
				t.Errorf("error %v", err)
			}
			if tt.signal != "" && got.Signal != tt.signal || string(got.Stdout) != tt.stdout {
				t.Errorf("signal %q, stdout %q", got.Signal, got.Stdout)
			}
			if err := syscall.Kill(-got.PID, 0); err == nil && !onlyZombies(t, got.PID) {
				t.Errorf("the group %d lives on", got.PID)
			}
		})
	}
}

// onlyZombies reports whether every process of the group is dead and waits for
// an init to reap it.
func onlyZombies(t *testing.T, group int) bool {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		stat, err := os.ReadFile(e)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" {
			return false
		}
	}
	return true
}

func TestRunWithACanceledContextStartsNothing(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	cause := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := Run(ctx, sh("touch "+marker)); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(marker); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the program ran")
	}
}

// The program exits at once, but a descendant holds stdout: Run stops waiting
// and returns the output so far.
func TestRunDoesNotWaitForHoldersOfPipes(t *testing.T) {
	t.Run("in the group: killed", func(t *testing.T) {
		spec := sh("sleep 600 & echo $!")
		spec.Linger = time.Millisecond
		got, err := Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(got.Stdout)))
		if err != nil {
			t.Fatal(err)
		}
		if !gone(t, pid) {
			t.Errorf("sleep %d lives on", pid)
		}
	})
	t.Run("outside the group: killed too", func(t *testing.T) {
		left := filepath.Join(t.TempDir(), "left") // tells that the other process is outside
		if err := syscall.Mkfifo(left, 0o600); err != nil {
			t.Fatal(err)
		}
		spec := sh("setsid sh -c 'echo $$; echo >" + left + "; exec sleep 600' & read -r line <" + left + "; echo done")
		spec.Linger = time.Millisecond
		got, err := Run(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		pid, rest, _ := strings.Cut(string(got.Stdout), "\n")
		if rest != "done\n" {
			t.Errorf("stdout %q", got.Stdout)
		}
		if n, err := strconv.Atoi(pid); err != nil {
			t.Error(err)
		} else if !gone(t, n) {
			_ = syscall.Kill(n, syscall.SIGKILL)
			t.Errorf("sleep %d lives on", n)
		}
	})
}

func TestRunPassesOutputOnInOrder(t *testing.T) {
	var mu sync.Mutex
	var seen bytes.Buffer
	streams := map[int]int{}
	spec := sh("seq 1 20000; seq 1 100 >&2")
	spec.Output = func(stream int, p []byte) {
		if !mu.TryLock() {
			t.Error("two calls at once")
			return
		}
		defer mu.Unlock()
		streams[stream] += len(p)
		if stream == 1 {
			seen.Write(p)
		}
	}
	got, err := Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(seen.Bytes(), got.Stdout) || streams[2] != len(got.Stderr) {
		t.Errorf("passed on %d and %d bytes of %d and %d", seen.Len(), streams[2], len(got.Stdout), len(got.Stderr))
	}
}

func TestRunConcurrentlyLeaksNoDescriptors(t *testing.T) {
	EndOrphans() // which this process adopted in other tests
	fds := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if _, err := Run(t.Context(), sh("true")); err != nil { // lets the runtime open its own descriptors
		t.Fatal(err)
	}
	before := fds()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			spec := sh("cat; exit 1")
			spec.Stdin = []byte(strconv.Itoa(i))
			got, err := Run(t.Context(), spec)
			if err != nil || string(got.Stdout) != strconv.Itoa(i) || got.ExitCode != 1 {
				t.Errorf("run %d: %q, %d, %v", i, got.Stdout, got.ExitCode, err)
			}
			if _, err := Run(t.Context(), Spec{Argv: []string{"/absent"}}); err == nil {
				t.Error("an absent program ran")
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(long); ; runtime.Gosched() { // a guard may still be on its way out
		children, _ := os.ReadFile("/proc/thread-self/children")
		after := fds()
		if len(bytes.TrimSpace(children)) == 0 && after <= before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors before, %d after, children left: %s", before, after, children)
		}
	}
}

func BenchmarkRunTrue(b *testing.B) {
	for b.Loop() {
		if _, err := Run(b.Context(), Spec{Argv: []string{"/bin/true"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCaptureTail(b *testing.B) {
	chunk := make([]byte, 32<<10)
	c := newCapture(-1, 10<<20)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		c.add(chunk)
	}
}
