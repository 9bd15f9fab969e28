//go:build unix

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// writeProgram writes an executable. A fork in another test between the write
// and the close would keep the file busy, hence the lock.
func writeProgram(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestProgramSearchesTheChildsPATH(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"one/tool", "two/tool", "two/other", "project/run.sh", "project/tool"} {
		writeProgram(t, filepath.Join(dir, p), "#!/bin/sh\n", 0o755)
	}
	writeProgram(t, filepath.Join(dir, "one/plain"), "x", 0o644)
	t.Setenv("PATH", filepath.Join(dir, "two"))
	project := filepath.Join(dir, "project")
	tests := []struct {
		name, argv0, path string
		want              string // the program, or
		reason            string // part of the error
		is                error
	}{
		{"first in the child's PATH", "tool", "$/one:$/two", "one/tool", "", nil},
		{"our own PATH is not used", "other", "$/one", "", "not found in its PATH", fs.ErrNotExist},
		{"the last PATH variable is used", "tool", "$/one\nPATH=$/two", "two/tool", "", nil},
		{"relative to the directory", "./run.sh", "", "project/run.sh", "", nil},
		{"absolute", "$/two/tool", "", "two/tool", "", nil},
		{"the current folder is not searched", "run.sh", ".:$/one", "", `relative PATH entry "."`, nil},
		{"an empty entry is not the current folder", "run.sh", ":$/one", "", "relative PATH entry", nil},
		{"a later absolute entry is used", "tool", ".:$/two", "two/tool", "", nil},
		{"not executable", "plain", "$/one:$/two", "", "is not executable", fs.ErrPermission},
		{"not executable by path", "$/one/plain", "", "", "chmod +x", fs.ErrPermission},
		{"a directory", "$/one", "", "", "it is a directory", fs.ErrPermission},
		{"absent", "$/absent", "", "", "no such file", fs.ErrNotExist},
		{"no PATH", "tool", "", "", "PATH is not set", fs.ErrNotExist},
		{"empty", "", "", "", "the command is empty", nil},
		{"NUL", "a\x00b", "$/one", "", "NUL byte", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fill := func(s string) string { return strings.ReplaceAll(s, "$", dir) }
			spec := Spec{Argv: []string{fill(tt.argv0)}, Dir: project}
			if tt.path != "" {
				spec.Env = strings.Split("PATH="+fill(tt.path), "\n")
			}
			got, err := spec.Program()
			if tt.want != "" && (err != nil || got != filepath.Join(dir, tt.want)) {
				t.Errorf("found %q, %v", got, err)
			}
			if tt.reason == "" {
				return
			}
			var se *StartError
			if !errors.As(err, &se) || !strings.Contains(err.Error(), tt.reason) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := (Spec{}).Program(); err == nil {
		t.Error("no argv is a program")
	}
}

func TestRunReportsWhyAProgramCannotStart(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, filepath.Join(dir, "orphan.sh"), "#!/toolreg/no/such/interpreter -x\n", 0o755)
	writeProgram(t, filepath.Join(dir, "text"), "just text\n", 0o755)
	writeProgram(t, filepath.Join(dir, "marked"), "\ufeff#!/bin/sh\n", 0o755)
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(dir, "windows.sh"), "#!/bin/sh\r\necho\r\n", 0o755)
	closed, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	tests := []struct {
		name   string
		spec   Spec
		reason string
		is     error
	}{
		{"interpreter", Spec{Argv: []string{dir + "/orphan.sh"}}, `its interpreter "/toolreg/no/such/interpreter -x" was not found`, fs.ErrNotExist},
		{"Windows line endings", Spec{Argv: []string{dir + "/windows.sh"}}, `its interpreter "/bin/sh\r" was not found; its lines end in CR LF`, fs.ErrNotExist},
		{"byte order mark", Spec{Argv: []string{dir + "/marked"}}, "its #! line begins with a byte order mark", syscall.ENOEXEC},
		{"loop", Spec{Argv: []string{dir + "/loop"}}, `loop": too many levels of symbolic links`, syscall.ELOOP},
		{"no #! line", Spec{Argv: []string{dir + "/text"}}, "#! line", syscall.ENOEXEC},
		{"working directory", Spec{Argv: []string{"/bin/true"}, Dir: dir + "/absent"}, "working directory", fs.ErrNotExist},
		{"open folder that cannot be reached, as without /proc", Spec{Argv: []string{"/bin/true"}, Dir: dir, Folder: closed}, "working directory", fs.ErrNotExist},
		{"working directory is a file", Spec{Argv: []string{"/bin/true"}, Dir: dir + "/text"}, "is not a directory", nil},
		{"NUL in an argument", Spec{Argv: []string{"/bin/true", "a\x00"}}, "NUL byte", nil},
		{"arguments too long", Spec{Argv: []string{"/bin/true", strings.Repeat("x", 1<<20)}}, "argument list too long", syscall.E2BIG},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(t.Context(), tt.spec)
			var se *StartError
			if !errors.As(err, &se) || !strings.Contains(err.Error(), tt.reason) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v", err)
			}
			if strings.Contains(err.Error(), "fork/exec") {
				t.Errorf("the error speaks of system calls: %v", err)
			}
		})
	}
}

// Programs in the child's working directory are not found through PATH.
func TestRunDropsRelativePATHEntries(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, filepath.Join(dir, "here"), "#!/bin/sh\necho here\n", 0o755)
	writeProgram(t, filepath.Join(dir, "bin/there"), "#!/bin/sh\necho there\n", 0o755)
	for _, tt := range []struct{ path, want string }{
		{".:$/bin:sub", "$/bin there"},
		{":$/bin", "$/bin there"},
		{"$/bin::$", "$/bin:$ here there"},
		{"$/bin:$", "$/bin:$ here there"},
		{".", "/nonexistent"},
		{"", "/nonexistent"},
	} {
		fill := func(s string) string { return strings.ReplaceAll(s, "$", dir) }
		spec := Spec{Argv: []string{"/bin/sh", "-c", `echo "$PATH" $(here 2>&-) $(there 2>&-)`}, Dir: dir, Env: []string{"A=.", "PATH=" + fill(tt.path)}}
		got, err := Run(t.Context(), spec)
		if err != nil || string(got.Stdout) != fill(tt.want)+"\n" {
			t.Errorf("with %q: %q, %v", tt.path, got.Stdout, err)
		}
	}
}

func TestRunResolvesARelativeProgramInDir(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, filepath.Join(dir, "bin/hello"), "#!/bin/sh\npwd\necho $0\n", 0o755)
	got, err := Run(t.Context(), Spec{Argv: []string{"bin/hello"}, Dir: dir})
	if want := dir + "\n" + dir + "/bin/hello\n"; err != nil || string(got.Stdout) != want {
		t.Errorf("stdout %q, want %q, %v", got.Stdout, want, err)
	}
}

// What is run and what a person is shown before agree on what a program is, on every system.
func TestExecutable(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		goos, name string
		mode       os.FileMode
		want       bool
	}{
		{"linux", "a", 0o700, true}, {"linux", "a.exe", 0o600, false}, {"linux", "a.sh", 0o601, true},
		{"windows", "a.EXE", 0o600, true}, {"windows", "a.cmd", 0o600, true}, {"windows", "a.sh", 0o700, false},
	} {
		path := filepath.Join(dir, tt.goos+tt.name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, tt.mode)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || executable(tt.goos, path, info) != tt.want {
			t.Errorf("%s %s %o: %t, %v", tt.goos, tt.name, tt.mode, !tt.want, err)
		}
	}
	if info, err := os.Stat(dir); err != nil || executable("linux", dir, info) {
		t.Errorf("a folder is a program (%v)", err)
	}
}
