//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/sandbox/launcher"
)

// The launcher gets the program, and the network that its profile allows.
func TestPlanOfAProgram(t *testing.T) {
	dir := tree(t, "work/", "link -> work")
	env := []string{"A=1", "TMPDIR=/elsewhere", "HTTP_PROXY=old", "http_proxy=old", "NO_PROXY=old", "PROXY=kept"}
	proxied := inSandbox([]string{"A=1", "PROXY=kept"}, proxyPort)
	direct := slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return entry == "TMPDIR=/elsewhere" })
	for _, c := range []struct {
		network  Network
		loopback bool
		listen   []int
		env      []string
		separate bool // a network namespace of its own
	}{
		{Network{}, true, nil, direct, true},
		{Network{Mode: NetworkNone}, false, nil, direct, true},
		{Network{Mode: NetworkAll, Hosts: []string{"localhost:1"}}, false, nil, direct, false},
		{Network{Mode: NetworkHosts, Hosts: []string{"a.example", "localhost:8080"}}, true, []int{proxyPort, 8080}, proxied, true},
	} {
		p := Profile{Write: []string{dir + "/work"}, Network: c.network}
		plan, err := newPlan(p, Program{Path: "/bin/x", Argv: []string{"x", "y"}, Env: env, Dir: dir + "/link"})
		if err != nil {
			t.Fatal(err)
		}
		want := &launcher.Plan{UID: os.Geteuid(), GID: os.Getegid(), Loopback: c.loopback, Listen: c.listen, Ops: plan.Ops, Rules: plan.Rules, Filter: filter(false),
			Dir: dir + "/work", Program: "/bin/x", Argv: []string{"x", "y"}, Env: c.env}
		if diff := cmp.Diff(want, plan); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.network, diff)
		}
		s, err := prepare(plan, c.network)
		if err != nil {
			t.Fatal(err)
		}
		attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_PIDFD}
		s.Attributes(attr)
		s.Close()
		flags := uintptr(unix.CLONE_PIDFD | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_VM | unix.CLONE_VFORK)
		if c.separate {
			flags |= unix.CLONE_NEWNET
		}
		if attr.Cloneflags != flags {
			t.Errorf("%+v: flags %#x, want %#x", c.network, attr.Cloneflags, flags)
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	plan, err := newPlan(Profile{Created: &Names{}}, Program{Path: "/bin/x", Folder: folder})
	if err != nil || !plan.Watched || !slices.Equal(plan.Filter, filter(true)) || slices.Equal(plan.Filter, filter(false)) || !plan.SameDir || plan.Dir != "/" {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestProgramsThatCannotBePlanned(t *testing.T) {
	for _, c := range []struct {
		program Program
		step    string
	}{
		{Program{Path: "/bin/x", Dir: "/missing"}, "finding the working directory"},
		{Program{Path: "/bin/x\x00"}, "writing the plan"},
		{Program{Path: "/bin/x", Argv: []string{"x", "\x00"}}, "writing the plan"},
		{Program{Path: "/bin/x", Env: []string{"\x00=x"}}, "writing the plan"},
	} {
		_, err := Prepare(Profile{}, c.program)
		var failed *Error
		if !errors.As(err, &failed) || failed.Step != c.step || !strings.HasPrefix(err.Error(), "setting up the sandbox: "+c.step+": ") {
			t.Errorf("%+v: %v", c.program, err)
		}
	}
}

// What the launcher reports becomes the result of the start; a launcher that says anything else is
// not trusted to have confined the program.
func TestReportsOfTheLauncher(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  []byte
		passing int    // files
		want    string // "" means the program runs
	}{
		{"started", launcher.Report{Kind: launcher.Started}.Encode(), 1, ""},
		{"started without a namespace", launcher.Report{Kind: launcher.Started}.Encode(), 0, ""},
		{"no such program", launcher.Report{Kind: launcher.Failed, Value: int(unix.ENOENT), Step: launcher.StepStart}.Encode(), 0, "no such file or directory"},
		{"a step", launcher.Report{Kind: launcher.Failed, Value: int(unix.EPERM), Step: "mounting /proc"}.Encode(), 0, "setting up the sandbox: mounting /proc: operation not permitted"},
		{"an end", nil, 0, "setting up the sandbox: waiting for the launcher: it has ended"},
		{"half a report", []byte{launcher.Started, 0}, 0, "setting up the sandbox: waiting for the launcher: it has ended"},
		{"ended at once", launcher.Report{Kind: launcher.Ended}.Encode(), 0, "setting up the sandbox: waiting for the launcher: an unknown report"},
		{"a port without a socket", launcher.Report{Kind: launcher.Listening, Value: proxyPort}.Encode(), 0, "setting up the sandbox: waiting for the launcher: an unknown report"},
		{"a port with something else", launcher.Report{Kind: launcher.Listening, Value: proxyPort}.Encode(), 1, "setting up the sandbox: starting the proxy: "},
		{"a port with two sockets", launcher.Report{Kind: launcher.Listening, Value: proxyPort}.Encode(), 2, "setting up the sandbox: waiting for the launcher: an unknown report"},
		{"a filter without a listener", launcher.Report{Kind: launcher.Watching}.Encode(), 0, "setting up the sandbox: waiting for the launcher: an unknown report"},
		{"a filter that nobody asked for", launcher.Report{Kind: launcher.Watching}.Encode(), 1, "setting up the sandbox: waiting for the launcher: an unknown report"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := prepare(&launcher.Plan{}, Network{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if c.name == "a filter without a listener" {
				s.created = &Names{}
			}
			theirs := int(s.Files[1].Fd())
			if c.report != nil {
				var rights []byte
				if c.passing > 0 {
					rights = unix.UnixRights(slices.Repeat([]int{int(s.Files[0].Fd())}, c.passing)...)
				}
				if err := unix.Sendmsg(theirs, c.report, rights, nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			err = s.Started()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err == nil && (s.mounts != nil) != (c.passing > 0) {
				t.Errorf("the namespace is %v", s.mounts)
			}
			if status, ok := s.Ended(); ok {
				t.Errorf("it ended with %d", status)
			}
		})
	}
}

// The end of the program is what the launcher reports of it, and nothing else.
func TestEndOfAProgram(t *testing.T) {
	for _, c := range []struct {
		report launcher.Report
		ok     bool
	}{{launcher.Report{Kind: launcher.Ended, Value: 256}, true}, {launcher.Report{Kind: launcher.Started, Value: 256}, false}} {
		s, err := prepare(&launcher.Plan{}, Network{})
		if err != nil {
			t.Fatal(err)
		}
		theirs := int(s.Files[1].Fd())
		for _, sent := range []struct {
			report launcher.Report
			rights []byte
		}{{launcher.Report{Kind: launcher.Started}, unix.UnixRights(int(s.Files[0].Fd()))}, {c.report, nil}} {
			if err := unix.Sendmsg(theirs, sent.report.Encode(), sent.rights, nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Started(); err != nil {
			t.Error(err)
		}
		if status, ok := s.Ended(); ok != c.ok || ok && status != 256 {
			t.Errorf("after %q it ended with %d, %v", c.report.Kind, status, ok)
		}
		s.Close()
		for { // another goroutine closes the namespace
			if _, err := s.mounts.Stat(); errors.Is(err, os.ErrClosed) {
				break
			}
			runtime.Gosched()
		}
	}
}

// The plan cannot be changed by the processes that get it.
func TestPlanIsSealed(t *testing.T) {
	f, err := memoryFile([]byte("plan"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, 5)
	if n, _ := f.ReadAt(data, 0); string(data[:n]) != "plan" {
		t.Errorf("it has %q", data[:n])
	}
	_, written := f.WriteAt([]byte("x"), 0)
	_, grown := f.WriteAt([]byte("x"), 100)
	_, unsealed := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE)
	for what, err := range map[string]error{"written": written, "grown": grown, "shrunk": f.Truncate(1), "unsealed": unsealed} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("it can be %s: %v", what, err)
		}
	}
}
