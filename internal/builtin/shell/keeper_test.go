//go:build unix

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// A log keeps the end of what was written, in two files of bounded size, and
// the total number of bytes, for writes of any size.
func TestRotatingLog(t *testing.T) {
	for _, write := range []int{1, 7, 64, 1000, 5000} {
		const segment = 256
		l := &rotatingLog{path: filepath.Join(t.TempDir(), "x.log"), segment: segment}
		store := &backgroundStore{dir: filepath.Dir(l.path)}
		var all strings.Builder
		for i := 0; all.Len() < 5000; i++ {
			part := strings.Repeat(fmt.Sprintf("%d\n", i), 1+write)[:write]
			all.WriteString(part)
			if n, err := l.Write([]byte(part)); n != write || err != nil {
				t.Fatal(n, err)
			}
		}
		l.close()
		end, size, err := store.logEnd(l.path, segment)
		if err != nil || size != int64(all.Len()) || string(end) != all.String()[all.Len()-segment:] {
			t.Errorf("writes of %d: %d of %d bytes, %v, end %q", write, size, all.Len(), err, end)
		}
		for _, name := range []string{l.path, l.path + ".1"} {
			if info, err := os.Stat(name); err != nil || info.Size() > segment {
				t.Errorf("writes of %d: %s: %v, %v", write, name, info, err)
			}
		}
	}
}

// The log of a command that prints forever stays within bounds, and its end is
// shown.
func TestBackgroundLogIsBounded(t *testing.T) {
	opts, dir := shellPlace(t, nil)
	opts.MaxOutput = 1 << 16
	id := start(t, opts, "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end; touch done; exit 5")
	waitFor(t, filepath.Join(dir, "done"))
	r := processes(t, opts, "wait", id)
	if !strings.Contains(r.Text(), "ended with exit code 5") || !strings.Contains(r.Text(), "of 4.8 MiB:") || !strings.HasSuffix(r.Text(), "\nthe end\n") {
		t.Errorf("%.200s … %q", r.Text(), r.Text()[max(0, len(r.Text())-50):])
	}
	files, err := filepath.Glob(filepath.Join(opts.StateDir, backgroundFolder, id+".log*"))
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 2*opts.MaxOutput+100 {
		t.Errorf("%v hold %d bytes", files, total)
	}
}

// If a command leaves processes running, it is reported as ended, they keep
// running, and their output is kept.
func TestBackgroundCommandLeavesProcessesRunning(t *testing.T) {
	opts, dir := shellPlace(t, nil)
	id := start(t, opts, "(until [ -e go ]; do sleep 0.02; done; echo late; touch gone) & echo first; exit 4")
	if r := processes(t, opts, "wait", id); !strings.Contains(r.Text(), id+": ended with exit code 4\n") || !strings.HasSuffix(r.Text(), "\nfirst\n") {
		t.Errorf("wait: %q", r.Text())
	}
	tooltest.Put(t, filepath.Join(dir, "go"), "")
	waitFor(t, filepath.Join(dir, "gone"))
	r := processes(t, opts, "log", id)
	for end := time.Now().Add(20 * time.Second); !strings.HasSuffix(r.Text(), "\nlate\n") && time.Now().Before(end); { // the keeper has to read it first
		r = processes(t, opts, "log", id)
	}
	if !strings.HasSuffix(r.Text(), "\nfirst\nlate\n") {
		t.Errorf("log: %q", r.Text())
	}
}

func TestKeepReportsItsOwnErrors(t *testing.T) {
	if err := Keep(t.Context(), []string{"a", "b", "3", ""}); err == nil {
		t.Error("no program")
	}
	if err := Keep(t.Context(), []string{"a", "b", "x", "", "/bin/true"}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("no number: %v", err)
	}
	dir := t.TempDir()
	if err := Keep(t.Context(), []string{filepath.Join(dir, "log"), filepath.Join(dir, "exit"), "100", "", filepath.Join(dir, "absent")}); err != nil {
		t.Error(err)
	}
	if log, code := tooltest.TextIn(t, filepath.Join(dir, "log")), tooltest.TextIn(t, filepath.Join(dir, "exit")); !strings.Contains(log, "no such file") || code != "127\n" {
		t.Errorf("%q %q", log, code)
	}
}

// Processes that left the process group of a background command are stopped
// with it.
func TestBackgroundKillStopsProcessesOutsideTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes that left the group cannot be found on this system")
	}
	opts, dir := shellPlace(t, nil)
	id := start(t, opts, "setsid sh -c 'echo $$ > pid; mv pid left; exec sleep 600' & sleep 600")
	waitFor(t, filepath.Join(dir, "left"))
	pid, err := strconv.Atoi(strings.TrimSpace(tooltest.TextIn(t, filepath.Join(dir, "left"))))
	if err != nil {
		t.Fatal(err)
	}
	if r := processes(t, opts, "kill", id); r.IsError {
		t.Error(r.Text())
	}
	if _, alive := birthOf(pid); alive {
		t.Errorf("%d is still running", pid)
	}
}
