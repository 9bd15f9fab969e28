//go:build linux

package shell_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
)

// differLines is the number of lines that TestShellsAgree generates, unless
// TOOLREG_SHELL_LINES sets another.
const differLines = 1000

// lineTime is the time limit of a line.
const lineTime = 5 * time.Second

// differPrograms are the programs that rules allow in TestShellsAgree.
var differPrograms = []string{"echo", "cat", "printf", "test", "true", "false", "[", "sort", "uniq", "tar", "git", "jobs", "break", "sed", "find"}

// differRun is a way to run a line, and the grammar in which the policy reads it.
type differRun struct {
	name    string
	argv    []string
	grammar string
	locales string // a folder with locales in other encodings than UTF-8; may be ""
}

func differRuns(t *testing.T) []differRun {
	all := []differRun{
		{name: "bash", argv: []string{"bash"}, grammar: shell.Bash},
		{name: "bash --posix", argv: []string{"bash", "--posix"}, grammar: shell.POSIX},
		{name: "dash", argv: []string{"dash"}, grammar: shell.POSIX},
		{name: "ash", argv: []string{"busybox", "ash"}, grammar: shell.POSIX},
	}
	return slices.DeleteFunc(all, func(r differRun) bool {
		path, err := exec.LookPath(r.argv[0])
		if err != nil {
			t.Logf("%s is not installed", r.argv[0])
			return true
		}
		r.argv[0] = path
		return false
	})
}

// TestMain lets the test binary act as the program "marker".
func TestMain(m *testing.M) {
	if self, err := os.Executable(); err == nil && filepath.Base(self) == "marker" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(self), "log"), nil, 0o600); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestShellsAgree generates lines that name the program "marker" wherever a shell
// might run it, and runs the lines that the policy allows in real shells. If rules
// allow only other programs, the marker must not run and no file may change. If
// the marker is banned, it must not run in yolo mode either.
func TestShellsAgree(t *testing.T) {
	n, seed := lines(t, "TOOLREG_SHELL_LINES", differLines)
	t.Logf("%d lines, seed %d", n, seed)
	g := &lineMaker{r: rand.New(rand.NewPCG(seed, 2)), seeds: developerLines(t, "testdata/differ.txt")}
	made := slices.Clone(g.seeds)
	for len(made) < n {
		made = append(made, g.line())
	}
	allow, ban := map[string][]string{}, map[string][]string{}
	for _, grammar := range []string{shell.Bash, shell.POSIX} {
		p := &policy.Policy{Banned: banned(), Shell: grammar}
		for _, program := range differPrograms {
			p.Rules = append(p.Rules, entries(t, policy.Allow, "run_shell_command("+program+")")...)
		}
		allow[grammar] = allowedOf(t, p, made)
		ban[grammar] = allowedOf(t, &policy.Policy{Banned: []registry.Entry{{Value: "marker"}}, Shell: grammar, Mode: policy.ModeYolo}, made)
		t.Logf("%s: rules allow %d, yolo %d", grammar, len(allow[grammar]), len(ban[grammar]))
	}
	locales := ""
	if n > differLines { // takes some seconds
		locales = makeLocales(t)
	}
	for _, r := range differRuns(t) {
		r.locales = locales
		t.Run(r.name+"/allow", func(t *testing.T) { differ(t, r, allow[r.grammar], true) })
		t.Run(r.name+"/ban", func(t *testing.T) { differ(t, r, ban[r.grammar], false) })
	}
}

// makeLocales builds locales whose characters may end in the byte of a backslash,
// and returns their folder.
func makeLocales(t *testing.T) string {
	dir := t.TempDir()
	for name, args := range map[string][]string{"zh_CN.GBK": {"zh_CN", "GBK"}, "zh_TW.BIG5": {"zh_TW", "BIG5"}, "ja_JP.SJIS": {"ja_JP", "SHIFT_JIS"}} {
		out, err := exec.Command("localedef", "--no-archive", "--force", "-i", args[0], "-f", args[1], filepath.Join(dir, name)).CombinedOutput()
		if _, made := os.Stat(filepath.Join(dir, name, "LC_CTYPE")); made != nil {
			t.Fatalf("localedef %s: %v: %s", name, err, out) // warnings are errors, too
		}
	}
	return dir
}

// lines returns how many lines a test generates, and its seed: always the same if
// the environment variable name does not set the number, else that of TOOLREG_SHELL_SEED or
// another one each time.
func lines(t *testing.T, name string, n int) (int, uint64) {
	s := os.Getenv(name)
	if s == "" {
		return n, 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TOOLREG_SHELL_SEED"); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n, seed
}

// allowedOf returns the lines that the policy allows.
func allowedOf(t *testing.T, p *policy.Policy, lines []string) (allowed []string) {
	for _, line := range lines {
		if p.Decide(t.Context(), shellTool(line), registry.Call{}).Decision == policy.Allow {
			allowed = append(allowed, line)
		}
	}
	if len(allowed) < len(lines)/50 {
		t.Error("too few lines are allowed for a meaningful test")
	}
	return allowed
}

// differ runs lines that the policy allows, many in each process.
func differ(t *testing.T, r differRun, allowed []string, files bool) {
	t.Parallel()
	d := newDifferRun(t, r, files)
	for batch := range slices.Chunk(allowed, 250) {
		for _, line := range d.hits(batch) {
			t.Errorf("allowed, and it runs the marker or writes a file: %q", line)
		}
	}
	t.Logf("%d lines, %d times one that did not end was killed", len(allowed), d.endless)
}

// shellRun runs lines in a folder; bin contains the programs that they can run.
type shellRun struct {
	t        *testing.T
	how      differRun
	files    bool // also report changed files
	bin, dir string
	before   string
	endless  int // how often a line that did not end was killed
	env      []string
	wrap     func(line string) string // changes how a line runs; may be nil
	prepare  func(*testing.T, string) // adds files to the folder; may be nil
}

func newDifferRun(t *testing.T, how differRun, files bool) *shellRun {
	d := &shellRun{t: t, how: how, files: files, bin: t.TempDir()}
	d.env = []string{"PATH=" + d.bin, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8", "LOCPATH=" + how.locales}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(d.bin, "marker"), string(program), 0o700) // not a script, because a shell could interpret it itself
	for name := range strings.FieldsSeq(`bash sh cat sort uniq tar git sed env xargs find busybox nohup nice timeout setsid stdbuf setpriv prlimit setarch
		linux64 choom sg chrt taskset ionice flock runuser chroot`) {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(d.bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

func (d *shellRun) log() string { return filepath.Join(d.bin, "log") }

// hits returns the lines that run the marker or change a file.
func (d *shellRun) hits(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	ran, changed := d.run(lines)
	switch {
	case !ran && !changed:
		return nil
	case len(lines) == 1 && !ran && strings.Contains(lines[0], "tar "): // tar may write archives
		return nil
	case len(lines) == 1:
		return lines
	}
	half := len(lines) / 2
	return append(d.hits(lines[:half]), d.hits(lines[half:])...)
}

// run runs each line in a subshell of one shell, and reports whether the marker
// ran and whether a file changed. A line that does not end is killed, and the
// lines after it run in another shell.
func (d *shellRun) run(lines []string) (ran, changed bool) {
	for len(lines) > 0 {
		if d.dir == "" {
			d.dir = d.t.TempDir()
			place(d.t, d.dir)
			if d.prepare != nil {
				d.prepare(d.t, d.dir)
			}
			d.before = listing(d.t, d.dir)
		}
		begun := d.start(lines)
		ran = os.Remove(d.log()) == nil || ran
		if listing(d.t, d.dir) != d.before {
			changed, d.dir = true, ""
		}
		lines = lines[begun:]
	}
	return ran, changed && d.files
}

// start runs lines until all have ended or one exceeds its time limit, and returns
// how many were started.
func (d *shellRun) start(lines []string) (begun int) {
	t := d.t
	var script strings.Builder
	for _, line := range lines {
		if d.wrap != nil {
			line = d.wrap(line)
		}
		fmt.Fprintf(&script, "echo x >&3\n( eval '%s' ) </dev/null >/dev/null 2>&1 3>&-\n", strings.ReplaceAll(line, "'", `'\''`))
	}
	file := filepath.Join(d.bin, "script")
	put(t, file, script.String(), 0o600)
	cmd := exec.Command(d.how.argv[0], append(slices.Clone(d.how.argv[1:]), file)...)
	cmd.Dir, cmd.Env = d.dir, d.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begins, mark, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer begins.Close()
	alive, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	cmd.ExtraFiles = []*os.File{mark, hold} // processes that the lines leave running keep the second one open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	mark.Close()
	hold.Close()
	buf := make([]byte, 4<<10)
	for err == nil {
		_ = begins.SetReadDeadline(time.Now().Add(lineTime))
		n := 0
		n, err = begins.Read(buf)
		begun += bytes.Count(buf[:n], []byte("\n"))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		_ = alive.SetReadDeadline(time.Now().Add(lineTime))
		_, err = alive.Read(buf)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Logf("it does not end, or something before it: %q", lines[max(begun, 1)-1])
		d.endless++
		d.end(cmd.Process.Pid)
	}
	_ = cmd.Wait() // the last line may fail
	return max(begun, 1)
}

// end kills a process group and the processes that have left it.
func (d *shellRun) end(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, name := range all {
		environ, _ := os.ReadFile(name) // the process may have ended
		if bytes.Contains(environ, []byte(d.env[0]+"\x00")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// place creates a repository with a file for the programs to work on.
func place(t *testing.T, dir string) {
	put(t, filepath.Join(dir, "f"), "x\ny\n", 0o600)
	put(t, filepath.Join(dir, "l"), "f\n", 0o600)
	for _, args := range [][]string{{"init", "-q"}, {"config", "gc.auto", "0"}, {"config", "maintenance.auto", "false"}, {"add", "f", "l"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// listing returns the names and contents of the files in a folder, and the
// configuration of its repository. It omits T, an archive or clone that the
// programs may write.
func listing(t *testing.T, dir string) string {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, name := range append(names, filepath.Join(dir, ".git", "config")) {
		if filepath.Base(name) != "T" {
			text, _ := os.ReadFile(name) // fails for a folder
			fmt.Fprintf(&b, "%s %q\n", name, text)
		}
	}
	return b.String()
}
