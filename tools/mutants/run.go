package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// skipped are tests that run many lines in real shells, or compilers and package managers. They
// take longer than all others together.
const skipped = "TestShellsAgree|TestOptionsAreHarmless|TestBashAgrees|TestTools"

// A tester runs the tests of a package in binaries with changes. It is safe for concurrent use.
type tester struct {
	dir  string // the folder of the package in a tree that the tests may damage
	temp string
	cpu  int           // processor time of all tests, in seconds
	wall time.Duration // limit on the time of a run

	quick []string // the tests that together take a small part of the time

	mu    sync.Mutex
	first []string // the tests that noticed a change, the last one first
}

// newTester runs the tests once without a change. They must pass.
func newTester(dir, temp, binary string) (*tester, error) {
	t := &tester{dir: dir, temp: temp, wall: 30 * time.Minute}
	start := time.Now()
	cmd, out := t.run(binary, 600, "-test.skip=^("+skipped+")$", "-test.v")
	if cmd.ProcessState == nil || !cmd.ProcessState.Success() {
		return nil, fmt.Errorf("the tests fail without a change:\n%s", out)
	}
	t.wall = 10*time.Since(start) + 20*time.Second // the machine may be busy
	t.cpu = 1 + int((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	t.quick = quick(out)
	return t, nil
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((.*)s\)`)

// quick returns the quickest tests of a run, which take a fifth of its time.
func quick(out []byte) []string {
	type test struct {
		name string
		time float64
	}
	var tests []test
	total := 0.0
	for _, m := range passed.FindAllSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(string(m[2]), 64)
		tests = append(tests, test{string(m[1]), seconds})
		total += seconds
	}
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.time, b.time) })
	var names []string
	sum := 0.0
	for _, each := range tests {
		if sum += each.time; sum > total/5 {
			break
		}
		names = append(names, each.name)
	}
	return names
}

// run runs tests of a binary until one fails, with a limit on the seconds of processor time
// of each process.
func (t *tester) run(binary string, cpu int, flags ...string) (*exec.Cmd, []byte) {
	temp, err := os.MkdirTemp(t.temp, "")
	if err != nil {
		return &exec.Cmd{}, []byte(err.Error())
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeout(context.Background(), t.wall)
	defer cancel()
	// Limits, so that neither a loop without end nor a process that it leaves behind keeps
	// the machine busy.
	args := []string{"-c", fmt.Sprintf(`ulimit -t %d; ulimit -v 8000000; exec "$@"`, cpu), "sh",
		binary, "-test.short", "-test.failfast"}
	cmd := exec.CommandContext(ctx, "sh", append(args, flags...)...)
	cmd.Dir, cmd.WaitDelay = t.dir, time.Second
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "GOMAXPROCS=", "GOGC=400")
	out, _ := cmd.CombinedOutput()
	endAll(binary)
	return cmd, out
}

// endAll ends the processes of a binary that its tests left behind. With a change, each may start
// another before it is found, so it looks until there is none.
func endAll(binary string) {
	for again := true; again; {
		again = false
		links, _ := filepath.Glob("/proc/[0-9]*/exe") // none on other systems
		for _, link := range links {
			if target, err := os.Readlink(link); err != nil || target != binary {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			if p, err := os.FindProcess(pid); err == nil {
				again = p.Kill() == nil || again
			}
		}
	}
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// A verdict says what the tests made of a change.
type verdict int

const (
	missed verdict = iota
	noticed
	late // a test did not end, or used too much memory
)

// try runs the tests of a binary in which a change is selected: first those that noticed the
// last changes, which are probably close to this one, then the quick ones, then the others.
func (t *tester) try(binary string) (verdict, error) {
	t.mu.Lock()
	last := slices.Clone(t.first[:min(len(t.first), 2)])
	t.mu.Unlock()
	for _, part := range []struct {
		cpu   int
		tests string
	}{
		{1 + t.cpu, "-test.run=^(" + strings.Join(last, "|") + ")$"},
		{1 + t.cpu, "-test.run=^(" + strings.Join(t.quick, "|") + ")$"},
		{1 + 4*t.cpu, "-test.skip=^(" + strings.Join(append([]string{skipped}, t.quick...), "|") + ")$"},
	} {
		cmd, out := t.run(binary, part.cpu, part.tests)
		switch {
		case cmd.ProcessState == nil:
			return missed, fmt.Errorf("%s", out)
		case cmd.ProcessState.Success():
			continue
		case cmd.ProcessState.ExitCode() < 0:
			return late, nil
		}
		if m := failure.FindSubmatch(out); m != nil {
			t.mu.Lock()
			name := string(m[1])
			t.first = slices.Insert(slices.DeleteFunc(t.first, func(n string) bool { return n == name }), 0, name)
			t.mu.Unlock()
		}
		return noticed, nil
	}
	return missed, nil
}

// selectChange writes a copy of a binary in which a change is selected.
func selectChange(binary []byte, number int, path string) error {
	chosen := bytes.ReplaceAll(binary, []byte(mark), fmt.Appendf(nil, "%s%06d", mark[:len(mark)-6], number))
	return os.WriteFile(path, chosen, 0o755) // tests may run it as another user
}

// tryAll returns what the tests make of each change that compiles. Those that may be missed
// count as noticed if they are noticed twice, because a test can fail for another reason.
func (s *source) tryAll(changes []*change, may map[string]bool,
	tree, temp string, workers int) (map[*change]verdict, error) {
	woven := s.weave(changes)
	path := filepath.Join(temp, "tests")
	if err := s.buildTests(path, woven); err != nil {
		return nil, err
	}
	t, err := newTester(filepath.Join(tree, s.dir), temp, path)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(binary, []byte(mark)) {
		return nil, fmt.Errorf("no change can be selected in the tests")
	}
	verdicts, errs := make([]verdict, len(changes)), make([]error, len(changes))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				for range 2 {
					verdicts[i], errs[i] = s.try(t, changes[i], binary, filepath.Join(temp, fmt.Sprintf("tests-%d", i)))
					if verdicts[i] == missed || !may[changes[i].key] {
						break
					}
				}
				if verdicts[i] == missed {
					fmt.Fprintln(os.Stderr, "missed:", changes[i].key)
				}
			}
		})
	}
	for i, c := range changes {
		if !c.dead {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	out := map[*change]verdict{}
	for i, c := range changes {
		if errs[i] != nil {
			return nil, fmt.Errorf("%s: %w", c.key, errs[i])
		}
		if !c.dead {
			out[c] = verdicts[i]
		}
	}
	return out, nil
}

func (s *source) try(t *tester, c *change, binary []byte, path string) (verdict, error) {
	defer os.Remove(path)
	if c.alone {
		if err := s.buildTests(path, map[string][]byte{c.file: s.single(c)}); err != nil {
			return missed, err
		}
	} else if err := selectChange(binary, c.number, path); err != nil {
		return missed, err
	}
	return t.try(path)
}
