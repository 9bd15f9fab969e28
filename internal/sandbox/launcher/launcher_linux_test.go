//go:build amd64 || arm64

package launcher

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be the launcher, by its init function, and the program that a
// launcher starts.
func TestMain(m *testing.M) {
	switch os.Getenv("LAUNCHER_TEST_ROLE") {
	case "":
		if os.Args[0] == Name {
			os.Exit(2) // it should be a launcher
		}
		os.Exit(m.Run())
	case "hello":
		fmt.Println("hello")
	case "rights":
		printRights()
	case "connect":
		conn, err := net.Dial(os.Getenv("NETWORK"), os.Getenv("ADDRESS"))
		if err == nil {
			_, err = conn.Write([]byte("hello"))
		}
		fmt.Println(err)
	}
}

// patience is longer than any step of a test takes.
const patience = time.Minute

// allow is a filter that allows every system call: what fails then fails without it.
var allow = instruction(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ALLOW)

func instruction(op uint16, yes, no byte, k uint32) []byte {
	return []byte{byte(op), byte(op >> 8), yes, no, byte(k), byte(k >> 8), byte(k >> 16), byte(k >> 24)}
}

// newPlan returns the plan for a script that sees the system's programs, and a folder of the test
// as /inside, in which it starts.
func newPlan(t *testing.T, script string) (p *Plan, work string) {
	t.Helper()
	work = folder(t)
	p = &Plan{
		UID: os.Getuid(), GID: os.Getgid(), Filter: allow, Dir: "/inside",
		Program: "/bin/sh", Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Rules: []Rule{{Path: "/", Access: Read}, {Path: "/dev", Access: Read | WriteFile}, {Path: "/inside", Access: Write}},
	}
	for _, dir := range []string{"root/proc", "root/dev", "root/dev/pts", "root/usr", "root/inside"} {
		p.Ops = append(p.Ops, Op{Kind: MakeDir, A: dir, Flags: 0o755})
	}
	p.Ops = append(p.Ops, Op{Kind: MakeFile, A: "root/dev/null"}, Op{Kind: MountPro, A: "/proc"}, Op{Kind: MountPTS, A: "/dev/pts"},
		Op{Kind: Bind, A: "/dev/null", B: "/dev/null", Flags: NoSuid | NoExec}, Op{Kind: Bind, A: work, B: "/inside", Flags: NoSuid | NoDev})
	p.show("/usr", ReadOnly|NoSuid|NoDev)
	for _, name := range []string{"/bin", "/lib", "/lib64"} {
		if to, err := os.Readlink(name); err == nil {
			p.Ops = append(p.Ops, Op{Kind: MakeLink, A: to, B: "root" + name})
		} else if _, err := os.Stat(name); err == nil {
			p.Ops = append(p.Ops, Op{Kind: MakeDir, A: "root" + name, Flags: 0o755})
			p.show(name, ReadOnly|NoSuid|NoDev)
		}
	}
	return p, work
}

func (p *Plan) show(path string, flags int) {
	p.Ops = append(p.Ops, Op{Kind: Bind, A: path, B: path, Flags: flags})
}

// role makes the plan start the test binary, which acts in a role.
func (p *Plan) role(t *testing.T, role string, env ...string) {
	t.Helper()
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Ops = append(p.Ops, Op{Kind: MakeFile, A: "root/test"}, Op{Kind: Bind, A: program, B: "/test", Flags: ReadOnly})
	p.Program, p.Argv, p.Env = "/test", []string{"test"}, append(env, "LAUNCHER_TEST_ROLE="+role)
}

// folder returns the path of a new folder, without links.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A launched is a launcher that was started.
type launched struct {
	*testing.T
	process *os.Process
	status  *os.File
	in, out *os.File
}

// launch starts the test binary as a launcher. It skips the test on systems that cannot confine.
func launch(t *testing.T, plan []byte, changes ...func(*os.ProcAttr)) *launched {
	t.Helper()
	if version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); int(version) < MinABI {
		t.Skip("the kernel has no Landlock that is new enough")
	}
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "plan")
	_, failed := file.Write(plan)
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	l := &launched{T: t, status: os.NewFile(uintptr(ends[0]), "status")}
	theirs := os.NewFile(uintptr(ends[1]), "status")
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.in, l.out = to, from
	t.Cleanup(func() { l.in.Close(); l.out.Close(); l.status.Close() })
	attr := &os.ProcAttr{
		Env: []string{"GOMAXPROCS=1"}, Files: []*os.File{in, out, out, file, theirs, file}, // the last one must not be inherited
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_VM | unix.CLONE_VFORK,
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE},
			Setpgid:     true,
		},
	}
	for _, change := range changes {
		change(attr)
	}
	l.process, err = os.StartProcess("/proc/self/exe", []string{Name}, attr)
	for _, f := range []*os.File{in, out, file, theirs} {
		f.Close()
	}
	if err != nil {
		t.Skip("the system allows no namespaces: ", err)
	}
	t.Cleanup(func() { _ = l.process.Kill(); _, _ = l.process.Wait() })
	limit := unix.NsecToTimeval(patience.Nanoseconds())
	if err := errors.Join(unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), l.out.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	return l
}

// report returns the next report and the file that came with it, or no report after the last one.
func (l *launched) report() (Report, *os.File) {
	l.Helper()
	data, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, nrights, _, _, err := unix.Recvmsg(int(l.status.Fd()), data, rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		n, nrights, _, _, err = unix.Recvmsg(int(l.status.Fd()), data, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		l.Fatal("waiting for a report: ", err)
	}
	r, _ := DecodeReport(data[:n])
	messages, err := unix.ParseSocketControlMessage(rights[:nrights])
	if err != nil || len(messages) == 0 {
		return r, nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		l.Fatal(err)
	}
	file := os.NewFile(uintptr(fds[0]), "passed")
	l.Cleanup(func() { file.Close() })
	return r, file
}

// expect waits for a report and returns the file that came with it.
func (l *launched) expect(want Report) *os.File {
	l.Helper()
	got, file := l.report()
	if got != want {
		l.Fatalf("report %q, want %q; %s", fmt.Sprint(got), fmt.Sprint(want), l.rest())
	}
	return file
}

// rest returns the output until the end.
func (l *launched) rest() string {
	l.Helper()
	out, err := io.ReadAll(l.out)
	if err != nil {
		l.Errorf("reading the output %q: %v", out, err)
	}
	return string(out)
}

// end waits for the launcher and checks its exit code.
func (l *launched) end(code int) {
	l.Helper()
	state, err := l.process.Wait()
	if err != nil || state.ExitCode() != code {
		l.Errorf("the launcher ended with %v, %v; want exit code %d", state, err, code)
	}
}

// output returns the output of a plan whose program succeeds.
func output(t *testing.T, p *Plan, changes ...func(*os.ProcAttr)) string {
	t.Helper()
	l := launch(t, p.Encode(), changes...)
	l.in.Close()
	l.expect(Report{Kind: Started})
	l.expect(Report{Kind: Ended})
	l.end(0)
	return l.rest()
}

// lines compares the lines of an output.
func lines(t *testing.T, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(got, "\n"), "\n")); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestProgramRunsAsPlanned(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	p, work := newPlan(t, `echo "$0 $1 $X $PWD"; id -u; id -g; umask; for f in uid_map gid_map setgroups; do echo $(cat /proc/self/$f); done
		echo $(ls /proc/self/fd); cat; echo kept >file; stat -c %a /shared; echo errors >&2`)
	p.Argv, p.Env = append(p.Argv, "$0", "arg"), append(p.Env, "X=set")
	p.Ops = append(p.Ops, Op{Kind: MakeDir, A: "root/shared", Flags: 0o1777})
	l := launch(t, p.Encode())
	if _, err := l.in.WriteString("input\n"); err != nil {
		t.Fatal(err)
	}
	l.in.Close()
	namespace := l.expect(Report{Kind: Started})
	l.expect(Report{Kind: Ended})
	l.end(0)
	uid, gid := fmt.Sprint(os.Getuid()), fmt.Sprint(os.Getgid())
	lines(t, l.rest(), "$0 arg set /inside", uid, gid, "0027", uid+" "+uid+" 1", gid+" "+gid+" 1", "deny", "0 1 2 3", "input", "1777", "errors")
	if data, err := os.ReadFile(work + "/file"); string(data) != "kept\n" {
		t.Errorf("the folder of the test has %q, %v", data, err)
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", namespace.Fd()))
	if ours, _ := os.Readlink("/proc/self/ns/mnt"); !strings.HasPrefix(theirs, "mnt:") || theirs == ours || err != nil {
		t.Errorf("the report came with %q, %v", theirs, err)
	}
}

func TestPlanWithoutAProgramOnlySetsUp(t *testing.T) {
	p, _ := newPlan(t, "")
	p.Program = ""
	l := launch(t, p.Encode())
	l.expect(Report{Kind: Started})
	l.end(0)
	if r, _ := l.report(); r != (Report{}) {
		t.Errorf("then it reports %v", r)
	}
}

// starts are the ways to start a launcher: in new namespaces, or with the net namespace of another.
func starts(t *testing.T) map[string]func(*os.ProcAttr) {
	t.Helper()
	p, _ := newPlan(t, "read line")
	p.Shared = true
	shared := launch(t, p.Encode()).expect(Report{Kind: Networked})
	return map[string]func(*os.ProcAttr){"alone": func(*os.ProcAttr) {}, "joined": joining(shared)}
}

// joining makes a launcher join a net namespace.
func joining(namespace *os.File) func(*os.ProcAttr) {
	return func(attr *os.ProcAttr) {
		attr.Files[NetFD], attr.Sys = namespace, &syscall.SysProcAttr{Setsid: true}
	}
}

// The launcher tells how the program ended while processes that the program left still run, and
// ends itself, like the program, when they have ended.
func TestEndIsReported(t *testing.T) {
	for how, start := range starts(t) {
		t.Run(how, func(t *testing.T) { testEndIsReported(t, start) })
	}
}

func testEndIsReported(t *testing.T, start func(*os.ProcAttr)) {
	p, _ := newPlan(t, `exec 3<&0; { read line <&3; echo "got $line"; } & exit 7`)
	l := launch(t, p.Encode(), start)
	l.expect(Report{Kind: Started})
	l.expect(Report{Kind: Ended, Value: 7 << 8})
	if _, err := l.in.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	lines(t, l.rest(), "got more")
	l.end(7)

	p, _ = newPlan(t, "kill -KILL $$")
	l = launch(t, p.Encode(), start)
	l.expect(Report{Kind: Started})
	l.expect(Report{Kind: Ended, Value: int(syscall.SIGKILL)})
	l.end(128 + int(syscall.SIGKILL))
}

// Only the program uses the streams: who reads its output sees that it has closed it.
func TestStreamsEndWithTheProgram(t *testing.T) {
	for how, start := range starts(t) {
		t.Run(how, func(t *testing.T) {
			p, _ := newPlan(t, `echo last; exec >&- 2>&-; read line`)
			l := launch(t, p.Encode(), start)
			l.expect(Report{Kind: Started})
			lines(t, l.rest(), "last")
			l.in.Close()
			l.expect(Report{Kind: Ended, Value: 1 << 8})
		})
	}
}

// A signal to the group of the launcher is for the program, which decides what it does; what the
// caller ignores stays ignored.
func TestSignalsAreForTheProgram(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	for how, start := range starts(t) {
		t.Run(how, func(t *testing.T) { testSignals(t, start) })
	}
}

func testSignals(t *testing.T, start func(*os.ProcAttr)) {
	p, _ := newPlan(t, `trap 'echo trapped; exit 3' TERM; kill -HUP $$; echo ready; read line`)
	l := launch(t, p.Encode(), start)
	l.expect(Report{Kind: Started})
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(l.out, ready); err != nil || string(ready) != "ready\n" {
		t.Fatalf("%q, %v", ready, err)
	}
	for n := syscall.Signal(1); n <= 64; n++ {
		if n != syscall.SIGKILL && n != syscall.SIGSTOP {
			if err := l.process.Signal(n); err != nil {
				t.Fatalf("signal %d to the launcher: %v", n, err)
			}
		}
	}
	if err := syscall.Kill(-l.process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	l.expect(Report{Kind: Ended, Value: 3 << 8})
	lines(t, l.rest(), "trapped")
	l.end(3)
}

func TestOnlyProcess1OfThatNameIsALauncher(t *testing.T) {
	for name, flags := range map[string]uintptr{Name: 0, "another program with a long name": unix.CLONE_NEWUSER | unix.CLONE_NEWPID} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Args, cmd.Env = []string{name}, []string{"LAUNCHER_TEST_ROLE=hello"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "hello\n" {
			t.Errorf("%q prints %q, %v", name, out, err)
		}
	}
}

// Mounts have the restrictions of the plan, with what is mounted below them, and nothing of the
// system's own root is left.
func TestMounts(t *testing.T) {
	p, _ := newPlan(t, `echo $(ls /); mkdir /new; cat /proc/self/mountinfo`)
	p.Ops = append(p.Ops, Op{Kind: MakeDir, A: "root/system", Flags: 0o755}, Op{Kind: Bind, A: "/dev", B: "/system", Flags: ReadOnly | NoExec})
	p.Rules = append(p.Rules, Rule{Path: "/", Access: Write})
	names, rest, _ := strings.Cut(output(t, p), "\n")
	refused, mounts, _ := strings.Cut(rest, "\n")
	if !strings.Contains(names, " inside ") || !strings.HasSuffix(names, " proc system usr") || strings.Contains(names, "etc") || !strings.HasSuffix(refused, "Read-only file system") {
		t.Errorf("the root has %q, %q", names, refused)
	}
	want := map[string]string{
		"/": "ro,nosuid,nodev", "/proc": "ro,nosuid,nodev,noexec", "/dev/pts": "rw,nosuid,noexec", "/dev/null": "rw,nosuid,noexec",
		"/usr": "ro,nosuid,nodev", "/inside": "rw,nosuid,nodev", "/system": "ro,noexec", "/system/pts": "ro,noexec",
	}
	got := map[string]string{}
	for line := range strings.Lines(mounts) {
		path, options := strings.Fields(line)[4], strings.Split(strings.Fields(line)[5], ",")
		kept := slices.DeleteFunc(options, func(option string) bool {
			return !slices.Contains([]string{"rw", "ro", "nosuid", "nodev", "noexec"}, option)
		})
		if _, known := want[path]; known || !strings.HasPrefix(path, "/system/") && !strings.HasPrefix(path, "/lib") && path != "/bin" {
			got[path] = strings.Join(kept, ",")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

// A change in an overlay is only seen inside; where there can be no overlay, the folder is
// read-only.
func TestOverlay(t *testing.T) {
	p, _ := newPlan(t, `for at in /cache /fixed; do echo new >>$at/file; cat $at/file; done`)
	outside := folder(t)
	if err := os.WriteFile(outside+"/file", []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"root/cache", "root/fixed", "scratch", "scratch/upper", "scratch/work"} {
		p.Ops = append(p.Ops, Op{Kind: MakeDir, A: dir, Flags: 0o755})
	}
	p.Ops = append(p.Ops, Op{Kind: Overlay, A: outside, B: "/cache", C: "scratch", Flags: NoDev}, Op{Kind: Overlay, A: outside, B: "/fixed", C: "missing", Flags: NoDev})
	p.Rules = append(p.Rules, Rule{Path: "/cache", Access: Write}, Rule{Path: "/fixed", Access: Write})
	lines(t, output(t, p), "old", "new", "sh: 1: cannot create /fixed/file: Read-only file system", "old")
	if data, err := os.ReadFile(outside + "/file"); string(data) != "old\n" {
		t.Errorf("outside the file has %q, %v", data, err)
	}
}

// A rule opens what is below its path, and one for a file the file alone.
func TestRules(t *testing.T) {
	p, work := newPlan(t, `one; echo 'echo changed' >one; one; truncate -s 0 one; cat one
		for denied in "cat two" "touch three" "ls ." "truncate -s 0 four"; do $denied || echo "not: $denied"; done; ls below; cat four`)
	for name, text := range map[string]string{"one": "echo one", "two": "", "four": "kept", "below/file": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(work+"/"+name), 0o755), os.WriteFile(work+"/"+name, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	p.Env = []string{"PATH=/usr/bin:/bin:/inside"}
	p.Rules = []Rule{
		{Path: "/usr", Access: Read}, {Path: "/bin", Access: Read}, {Path: "/lib", Access: Read}, {Path: "/lib64", Access: Read}, {Path: "/dev", Access: Read | WriteFile},
		{Path: "/inside/one", Access: Write, IsFile: true}, {Path: "/inside/four", Access: Read, IsFile: true}, {Path: "/inside/below", Access: Read}, {Path: "/missing", Access: Read},
	}
	lines(t, output(t, p), "one", "changed", "cat: two: Permission denied", "not: cat two", "touch: cannot touch 'three': Permission denied", "not: touch three",
		"ls: cannot open directory '.': Permission denied", "not: ls .", "truncate: cannot open 'four' for writing: Permission denied", "not: truncate -s 0 four", "file", "kept")
}

// A program has no capability, can get none, and cannot leave the rights of the plan.
func TestRights(t *testing.T) {
	p, _ := newPlan(t, "")
	p.role(t, "rights")
	p.Ops = append(p.Ops, Op{Kind: MakeFile, A: "root/dev/zero"})
	p.show("/dev/zero", NoSuid)
	p.Rules = append(p.Rules, Rule{Path: "/dev/zero", Access: Read | Write | IoctlDev, IsFile: true})
	ring, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	got := output(t, p)
	if err == nil && strings.Contains(got, fmt.Sprintf("keyring %d\n", ring)) {
		t.Errorf("the program has our keyring: %s", got)
	}
	_, got, _ = strings.Cut(got, "\n")
	lines(t, got, "secure bits 0xef", "CapInh 0000000000000000", "CapPrm 0000000000000000", "CapEff 0000000000000000", "CapBnd 0000000000000000", "CapAmb 0000000000000000", "NoNewPrivs 1", "Seccomp 2",
		"write: 0", "truncate: 0", "make a folder: 0", "move: 0", "make a pipe: 0", "make a link: 0",
		fmt.Sprintf("make a character device: %d", unix.EACCES), fmt.Sprintf("make a block device: %d", unix.EACCES),
		fmt.Sprintf("control /dev/null: %d", unix.EACCES), fmt.Sprintf("control /dev/zero: %d", unix.ENOTTY), fmt.Sprintf("look into the launcher: %d", unix.EACCES))
}

// printRights prints what a program with the rights Write on /inside, and IoctlDev on /dev/zero but
// not on /dev/null, can do.
func printRights() {
	ring, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	fmt.Println("keyring", ring, err)
	bits, _ := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	fmt.Printf("secure bits %#x\n", bits)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") || name == "NoNewPrivs" || name == "Seccomp" {
			fmt.Println(name, strings.TrimSpace(value))
		}
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"write", func() error { return os.WriteFile("file", []byte("text"), 0o600) }},
		{"truncate", func() error { return os.Truncate("file", 1) }},
		{"make a folder", func() error { return os.Mkdir("folder", 0o700) }},
		{"move", func() error { return os.Rename("file", "folder/file") }},
		{"make a pipe", func() error { return unix.Mkfifo("pipe", 0o600) }},
		{"make a link", func() error { return os.Symlink("file", "link") }},
		{"make a character device", func() error { return unix.Mknod("char", unix.S_IFCHR|0o600, 0) }},
		{"make a block device", func() error { return unix.Mknod("block", unix.S_IFBLK|0o600, 0) }},
		{"control /dev/null", func() error { return control("/dev/null") }},
		{"control /dev/zero", func() error { return control("/dev/zero") }},
		{"look into the launcher", func() error { _, err := os.ReadFile("/proc/1/environ"); return err }},
	} {
		err := step.do()
		var errno syscall.Errno
		errors.As(err, &errno)
		fmt.Printf("%s: %d\n", step.name, int(errno))
	}
}

func control(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err
}

// A program reaches its own loopback, and the ports of the plan there reach the listener's holder.
func TestLoopback(t *testing.T) {
	p, _ := newPlan(t, "")
	p.Loopback, p.Listen = true, []int{61080, 8080}
	p.role(t, "connect", "NETWORK=tcp", "ADDRESS=127.0.0.1:61080")
	l := launch(t, p.Encode())
	file := l.expect(Report{Kind: Listening, Value: 61080})
	l.expect(Report{Kind: Listening, Value: 8080})
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l.expect(Report{Kind: Started})
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := io.ReadAll(conn); string(text) != "hello" {
		t.Errorf("the program wrote %q, %v", text, err)
	}
	l.expect(Report{Kind: Ended})
	lines(t, l.rest(), "<nil>")
}

// A program that joins a net namespace reaches the ports there, which stay open for it.
func TestJoinedLoopback(t *testing.T) {
	p, _ := newPlan(t, "read line")
	p.Loopback, p.Shared, p.Listen = true, true, []int{61080}
	first := launch(t, p.Encode())
	shared := first.expect(Report{Kind: Networked})
	listener, err := net.FileListener(first.expect(Report{Kind: Listening, Value: 61080}))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p, _ = newPlan(t, "")
	p.role(t, "connect", "NETWORK=tcp", "ADDRESS=127.0.0.1:61080")
	lines(t, output(t, p, joining(shared)), "<nil>")
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if text, err := io.ReadAll(conn); string(text) != "hello" {
		t.Errorf("the program wrote %q, %v", text, err)
	}
}

// What is no net namespace, or one whose owner cannot be entered, is not joined.
func TestJoinFails(t *testing.T) {
	for path, reason := range map[string]syscall.Errno{"/dev/null": unix.ENOTTY, "/proc/self/ns/net": unix.EINVAL} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		p, _ := newPlan(t, "")
		l := launch(t, p.Encode(), joining(file))
		if passed := l.expect(Report{Failed, int(reason), "joining the loopback of the session"}); passed != nil {
			t.Errorf("%s: the report came with a file", path)
		}
		l.end(1)
	}
}

// Not even with the network of the system are sockets without a file of other programs reachable.
func TestAbstractSocketsOfOthersAreUnreachable(t *testing.T) {
	listener, err := net.Listen("unix", fmt.Sprintf("@toolreg-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p, _ := newPlan(t, "")
	p.role(t, "connect", "NETWORK=unix", "ADDRESS="+listener.Addr().String())
	lines(t, output(t, p, func(attr *os.ProcAttr) { attr.Sys.Cloneflags &^= unix.CLONE_NEWNET }),
		"dial unix "+listener.Addr().String()+": connect: operation not permitted")
}

// The calls that the filter passes on wait for the holder of the listener.
func TestWatchedCalls(t *testing.T) {
	p, _ := newPlan(t, `ln -s to link; echo $?; [ -L link ]; echo $?`)
	p.Watched = true
	p.Filter = slices.Concat(instruction(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, 0), instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, unix.SYS_SYMLINKAT),
		instruction(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_USER_NOTIF), allow)
	l := launch(t, p.Encode())
	listener := l.expect(Report{Kind: Watching})
	if listener == nil {
		t.Fatal("the report has no listener")
	}
	l.expect(Report{Kind: Started})
	var call [80]byte // struct seccomp_notif: the id, the process, the flags, the number of the call
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener.Fd(), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call))); errno != 0 {
		t.Fatal(errno)
	}
	if number := binary.NativeEndian.Uint32(call[16:]); number != unix.SYS_SYMLINKAT {
		t.Errorf("call %d waits", number)
	}
	listener.Close() // nobody answers, so the call fails
	l.expect(Report{Kind: Ended})
	lines(t, l.rest(), "ln: failed to create symbolic link 'link': Function not implemented", "1", "1")
}

// A path that cannot be reached can be left out; it is not opened to be shown.
func TestUnreachablePaths(t *testing.T) {
	closed := "/root/closed"
	if os.Getuid() == 0 { // nobody's folder, in which not even the user namespace gives rights
		closed = folder(t) + "/closed"
		if err := errors.Join(os.Mkdir(closed, 0), os.Chown(closed, 1<<16, 1<<16)); err != nil {
			t.Skip(err)
		}
		closed += "/file"
	}
	p, _ := newPlan(t, `echo $(ls -A /inside)`)
	for _, path := range []string{"/missing", closed} {
		p.Ops = append(p.Ops, Op{Kind: Bind, A: path, B: "/inside", Skip: true})
		p.Rules = append(p.Rules, Rule{Path: path, Access: Read})
	}
	sockets := folder(t)
	listener, err := net.Listen("unix", sockets+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p.Ops = append(p.Ops, Op{Kind: MakeFile, A: "root/socket"}, Op{Kind: Bind, A: sockets + "/socket", B: "/socket"})
	p.Rules = append(p.Rules, Rule{Path: "/socket", Access: Read, IsFile: true})
	lines(t, output(t, p), "")
}

// A step that fails is named with its reason, and the program does not run.
func TestFailedStepIsReported(t *testing.T) {
	dir := folder(t)
	if err := errors.Join(os.Mkdir(dir+"/target", 0o700), os.Mkdir(dir+"/target/below", 0o700), os.Symlink("target", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		step   string
		reason syscall.Errno
		change func(*Plan)
	}{
		{StepStart, unix.ENOENT, func(p *Plan) { p.Program = "/missing" }},
		{"showing /inside", unix.ENOENT, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: Bind, A: "/missing", B: "/inside"}) }},
		{"showing /inside", unix.ELOOP, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: Bind, A: dir + "/link/below", B: "/inside", Skip: true}) }},
		{"showing /inside", unix.ENOENT, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: BindBase, A: "missing", B: "/inside"}) }},
		{"showing /missing", unix.ENOENT, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: Overlay, A: dir, B: "/missing", C: "missing"}) }},
		{"showing root/usr", unix.EEXIST, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: MakeLink, A: "to", B: "root/usr"}) }},
		{"creating root/usr", unix.EEXIST, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: MakeDir, A: "root/usr"}) }},
		{"creating missing/file", unix.ENOENT, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: MakeFile, A: "missing/file"}) }},
		{"mounting /missing", unix.ENOENT, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: MountPTS, A: "/missing"}) }},
		{"mounting /proc", unix.ENOENT, func(p *Plan) { p.Ops = []Op{{Kind: MountPro, A: "/missing"}} }},
		{"creating x", unix.EINVAL, func(p *Plan) { p.Ops = append(p.Ops, Op{Kind: '?', A: "x"}) }},
		{"restricting access to files (Landlock) for /dev/null", unix.EINVAL, func(p *Plan) { p.Rules = append(p.Rules, Rule{Path: "/dev/null", Access: Write}) }},
		{"restricting access to files (Landlock) for /dev/null/x", unix.ENOTDIR, func(p *Plan) { p.Rules = append(p.Rules, Rule{Path: "/dev/null/x", Access: Write}) }},
		{"filtering system calls (seccomp)", unix.EINVAL, func(p *Plan) { p.Filter = nil }},
		{"filtering system calls (seccomp)", unix.EINVAL, func(p *Plan) { p.Filter = p.Filter[1:] }},
		{"entering the working directory /missing", unix.ENOENT, func(p *Plan) { p.Dir = "/missing" }},
		{"opening port 61080 for the proxy", unix.EADDRINUSE, func(p *Plan) { p.Loopback, p.Listen = true, []int{61080, 61080} }},
	} {
		t.Run(c.step, func(t *testing.T) {
			p, work := newPlan(t, "touch ran")
			c.change(p)
			l := launch(t, p.Encode())
			r, file := l.report()
			for r.Kind == Listening {
				r, file = l.report()
			}
			if want := (Report{Failed, int(c.reason), c.step}); r != want || file != nil {
				t.Errorf("report %v with file %v, want %v", r, file, want)
			}
			l.end(1)
			if _, err := os.Stat(work + "/ran"); err == nil {
				t.Error("the program ran")
			}
		})
	}
	for _, plan := range [][]byte{nil, []byte("no plan")} {
		l := launch(t, plan)
		l.expect(Report{Failed, int(unix.EBADMSG), "reading the plan"})
		l.end(1)
	}
}

// A program that is to start in an open folder does not start in another one that has its name
// now, or its number on another file system.
func TestWorkingDirectoryIsTheSame(t *testing.T) {
	other := folder(t)
	for _, c := range []struct {
		from, dir string
		same      bool
	}{{"its own", "/inside", true}, {other, "/inside", false}, {"/sys", "/proc", false}} {
		p, work := newPlan(t, "touch ran")
		p.Dir, p.SameDir = c.dir, true
		l := launch(t, p.Encode(), func(attr *os.ProcAttr) {
			attr.Dir = c.from
			if c.same {
				attr.Dir = work
			}
		})
		if c.same {
			l.expect(Report{Kind: Started})
			l.expect(Report{Kind: Ended})
			continue
		}
		l.expect(Report{Failed, int(unix.ESTALE), "entering the working directory " + c.dir + ", which was replaced"})
		l.end(1)
	}
}
