package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/text"
)

// Program returns the path of the executable in Argv[0]. A name without a slash is looked up
// in the PATH of Env, ignoring empty and relative entries and programs in NotFrom; a relative
// path is relative to Dir. The error is a *[StartError]. os/exec would search toolreg's own
// PATH instead of the child's.
func (s Spec) Program() (string, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", &StartError{Err: errors.New("the command is empty")}
	}
	name := s.Argv[0]
	path, err := findExecutable(name, s)
	if err != nil {
		return "", &StartError{Program: name, Err: err}
	}
	return path, nil
}

// Executable reports whether the file at a path can be run as a program, by its mode or, on
// Windows, its extension. It must be the same for what is run and what a person is shown.
func Executable(path string, info fs.FileInfo) bool { return executable(runtime.GOOS, path, info) }

func executable(goos, path string, info fs.FileInfo) bool {
	switch {
	case !info.Mode().IsRegular():
		return false
	case goos == "windows":
		return slices.Contains([]string{".exe", ".bat", ".cmd", ".com"}, strings.ToLower(filepath.Ext(path)))
	}
	return info.Mode()&0o111 != 0
}

func findExecutable(name string, s Spec) (string, error) {
	for _, arg := range s.Argv {
		if strings.ContainsRune(arg, 0) {
			return "", errors.New("an argument contains a NUL byte")
		}
	}
	if hasSeparator(name) {
		return findAt(name, s.Dir)
	}
	path, _ := expand.Find(s.Env, "PATH")
	if path == "" {
		return "", notFound("PATH is not set in its environment; name the program by its full path")
	}
	var denied, relative error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			// The current folder may belong to a project that is not trusted.
			if _, err := osexec.LookPath(filepath.Join(absolute(s.Dir), dir, name)); err == nil {
				relative = fmt.Errorf(
					"found only through the relative PATH entry %q, which is not searched; write ./%s", dir, name)
			}
			continue
		}
		found, err := osexec.LookPath(filepath.Join(dir, name))
		if err == nil && s.NotFrom != "" && (leadsInto(dir, s.NotFrom) || leadsInto(found, s.NotFrom)) {
			continue
		}
		if err == nil {
			return found, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = &reason{text: filepath.Join(dir, name) + " is not executable", cause: fs.ErrPermission}
		}
	}
	return "", cmp.Or(denied, relative, notFound("not found in its PATH"))
}

// leadsInto reports whether a path is in a folder, directly or through links.
func leadsInto(path, folder string) bool {
	for _, f := range []func(string) (string, error){filepath.Abs, filepath.EvalSymlinks} {
		p, err := f(path)
		into, failed := f(folder)
		if err != nil || failed != nil {
			return true
		}
		if rel, err := filepath.Rel(into, p); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// findAt checks a program given as a path.
func findAt(name, dir string) (string, error) {
	path := expand.From(absolute(dir), name)
	found, err := osexec.LookPath(path)
	if err == nil {
		return found, nil
	}
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && info.IsDir():
		return "", &reason{text: "it is a directory", cause: fs.ErrPermission}
	case errors.Is(err, fs.ErrPermission):
		return "", &reason{text: "permission denied; is it executable (chmod +x)?", cause: fs.ErrPermission}
	case errors.Is(err, fs.ErrNotExist):
		return "", notFound("no such file")
	}
	return "", text.Cause(err)
}

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') ||
		runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`)
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// explain makes the error of a failed start more specific: the system reports
// "no such file" for a script whose interpreter is missing.
func explain(err error, path, dir string) error {
	if dir != "" {
		if info, statErr := os.Stat(dir); statErr != nil {
			return fmt.Errorf("its working directory: %w", statErr)
		} else if !info.IsDir() {
			return fmt.Errorf("its working directory %s is not a directory", dir)
		}
	}
	line := firstLine(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(line, "#!"):
		interpreter := strings.TrimSpace(line[2:])
		if strings.HasSuffix(line, "\r") {
			return notFound("its interpreter %q was not found; its lines end in CR LF, save it with LF",
				interpreter+"\r")
		}
		return notFound("its interpreter %q was not found", interpreter)
	case errors.Is(err, fs.ErrNotExist):
		return notFound("no such file, or the loader it needs is missing")
	case isFormatError(err) && strings.HasPrefix(line, "\ufeff#!"):
		return &reason{text: "its #! line begins with a byte order mark; save it as UTF-8 without one", cause: err}
	case isFormatError(err):
		return &reason{text: "it is neither a program for this machine nor a script with a #! line", cause: err}
	}
	return text.Cause(err)
}

// firstLine returns the first line of a file; "" if it has none.
func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 128)
	n, _ := f.Read(buf)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return line
}

// isBatch reports whether Windows runs a file by its command interpreter, cmd.exe.
func isBatch(path string) bool {
	return slices.Contains([]string{".bat", ".cmd"}, strings.ToLower(filepath.Ext(path)))
}

// batchLine returns the command line with which cmd.exe runs a batch file, such as npx.cmd,
// with exactly these arguments. Windows would let the interpreter read an argument such as
// "x&calc" as two commands. In quotes it finds only quotes and variables:
//   - A quote is doubled, so that the text behind it is still quoted.
//   - A percent sign is followed by a substring of %cd% that is empty, so that no two of them
//     enclose the name of a variable.
//   - Backslashes before a quote are doubled for the program that the file starts.
//
// A line break cannot be quoted, so it is an error.
func batchLine(path string, args []string) (string, error) {
	var b strings.Builder
	b.WriteString(`cmd.exe /e:on /v:off /d /c "`)
	for i, arg := range append([]string{path}, args...) {
		if strings.ContainsAny(arg, "\r\n") {
			return "", errors.New("an argument contains a line break, which a batch file cannot get")
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte('"')
		backslashes := 0
		for _, c := range arg {
			switch c {
			case '"':
				b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
			case '%':
				b.WriteString(`%%cd:~,`)
			}
			b.WriteRune(c)
			if backslashes++; c != '\\' {
				backslashes = 0
			}
		}
		if i > 0 { // the name of the file is for cmd.exe alone
			b.WriteString(strings.Repeat(`\`, backslashes))
		}
		b.WriteByte('"')
	}
	b.WriteByte('"')
	return b.String(), nil
}
