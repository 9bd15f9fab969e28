package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// childGrace is how long an editor or a pager may take to exit.
const childGrace = 500 * time.Millisecond

// maxEdited is the longest content that is accepted from an editor, in bytes.
const maxEdited = 64 << 20

// Edit opens the person's editor, by default vi (notepad on Windows), on a text and returns the edited
// text, which may be empty. The end of name determines the language.
func (t *TTY) Edit(ctx context.Context, name, content string) (string, error) {
	turn := t.Begin()
	defer turn.End()
	return turn.Edit(ctx, name, content)
}

// Edit is [TTY.Edit] within a turn.
func (t *Turn) Edit(ctx context.Context, name, content string) (string, error) {
	dir, err := os.MkdirTemp("", "toolreg-edit-") // 0700
	if err != nil {
		return "", fmt.Errorf("preparing the edit: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, editName(name))
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", fmt.Errorf("preparing the edit: %w", err)
	}
	if err := t.runEditor(ctx, file); err != nil {
		return "", err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("reading the edit: %w", err)
	}
	if info.Size() > maxEdited {
		return "", fmt.Errorf("reading the edit: it has %d bytes, but the limit is %d", info.Size(), maxEdited)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the edit: %w", err)
	}
	if !utf8.Valid(data) {
		return "", errors.New("reading the edit: the file is no longer valid UTF-8")
	}
	return string(data), nil
}

// editName returns a file name with the extension of name, by which editors
// recognize the language. It drops an extension with special characters.
func editName(name string) string {
	ext := filepath.Ext(filepath.Base(filepath.ToSlash(name)))
	for _, r := range ext {
		if r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return "content"
		}
	}
	return "content" + ext
}

func (t *TTY) runEditor(ctx context.Context, file string) error {
	argv, err := editorArgv(t.Editor)
	if err != nil {
		return err
	}
	program, err := lookPath(argv[0], os.Getenv("PATH"))
	if err != nil {
		return fmt.Errorf("starting the editor %q: %w; set VISUAL or EDITOR", argv[0], err)
	}
	if err := t.runChild(ctx, program, append(argv, file), nil); err != nil {
		return fmt.Errorf("editing: %w; nothing was changed", err)
	}
	return nil
}

// runChild runs a program on the terminal and waits for it. It stays in our
// session because it has to read the terminal, which children of
// internal/process must not. stdin is the terminal if it is nil.
func (t *TTY) runChild(ctx context.Context, program string, argv []string, stdin *os.File) error {
	in, out, err := t.reopen()
	if err != nil {
		return fmt.Errorf("opening the terminal for %q: %w", argv[0], err)
	}
	defer func() { _ = errors.Join(in.Close(), out.Close()) }()
	defer restore(out)()
	if stdin == nil {
		stdin = in
	}
	env := os.Environ()
	// Our texts are UTF-8 regardless of the locale. As in git, less and lv show
	// colors and less does not clear the screen, unless the person has set
	// these variables.
	for _, kv := range [][2]string{{"LESSCHARSET", "utf-8"}, {"LESS", "FRX"}, {"LV", "-c"}} {
		if _, set := os.LookupEnv(kv[0]); !set {
			env = append(env, kv[0]+"="+kv[1])
		}
	}
	proc, err := os.StartProcess(program, argv, &os.ProcAttr{Env: env, Files: []*os.File{stdin, out, out}})
	if err != nil {
		return fmt.Errorf("starting %q: %w", argv[0], err)
	}
	return waitForChild(ctx, proc, argv[0])
}

// waitForChild stops the program when ctx ends. A program that is asked to exit
// restores the terminal; one that is killed does not.
func waitForChild(ctx context.Context, proc *os.Process, name string) error {
	stop := context.AfterFunc(ctx, func() {
		_ = proc.Signal(syscall.SIGTERM)
		time.AfterFunc(childGrace, func() { _ = proc.Kill() })
	})
	defer stop()
	state, err := proc.Wait()
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("waiting for %q: %w", name, err)
	case !state.Success():
		return &endedError{name, state}
	}
	return nil
}

// endedError reports that a program failed.
type endedError struct {
	name  string
	state *os.ProcessState
}

func (e *endedError) Error() string { return fmt.Sprintf("%q ended with %s", e.name, e.state) }

func editorArgv(line string) ([]string, error) {
	if strings.TrimSpace(line) == "" {
		if runtime.GOOS == "windows" {
			return []string{"notepad"}, nil
		}
		return []string{"vi"}, nil
	}
	argv, err := process.Split(line)
	if err != nil {
		return nil, fmt.Errorf("reading the editor's command line: %w", err)
	}
	return argv, nil
}

// lookPath finds a program in a list of folders. It ignores relative folders,
// because the current one may be untrusted.
func lookPath(program, path string) (string, error) {
	if strings.ContainsAny(program, `/\`) {
		return program, nil
	}
	names := []string{program}
	if runtime.GOOS == "windows" && filepath.Ext(program) == "" {
		names = []string{program + ".exe", program + ".com"}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, n := range names {
			full := filepath.Join(dir, n)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() &&
				(runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return full, nil
			}
		}
	}
	return "", os.ErrNotExist
}

// Page shows text, which may have styles of [Paint], in the user's pager and waits
// for the pager to exit. Its exit code is ignored, because people leave it early.
func (t *TTY) Page(ctx context.Context, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.page(ctx, text)
}

// page is [TTY.Page] within a question. If there is no pager, it writes the text.
func (t *TTY) page(ctx context.Context, text string) error {
	argv, program := t.pager()
	if program == "" {
		return t.write(ctx, text)
	}
	file, err := os.CreateTemp("", "toolreg-view-") // 0600
	if err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(Styled(text)); err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return fmt.Errorf("preparing the pager: %w", err)
	}
	err = t.runChild(ctx, program, argv, file)
	if _, ended := errors.AsType[*endedError](err); ended {
		return nil
	}
	return err
}

// pager returns the command line of the pager and the path of its program; ""
// if there is none.
func (t *TTY) pager() (argv []string, program string) {
	for _, line := range []string{t.Pager, "less", "more"} {
		argv, err := process.Split(line)
		if err != nil || len(argv) == 0 {
			continue
		}
		if program, err := lookPath(argv[0], os.Getenv("PATH")); err == nil {
			if strings.TrimSuffix(filepath.Base(program), ".exe") == "less" && len(argv) == 1 {
				argv = append(argv, "-R") // colors are ours
			}
			return argv, program
		}
	}
	return nil, ""
}

// Browser opens URLs in the user's browser.
type Browser struct {
	// Environ is the environment of the program that opens URLs, "K=V". The
	// program is looked up in its PATH; its BROWSER overrides the default.
	Environ []string
}

// ErrNoBrowser is returned if this system has no known program that opens URLs.
var ErrNoBrowser = errors.New("no program to open URLs was found")

// watched is how long Open waits for the program that opens a URL to fail. Failures
// occur early, and a program that becomes the browser keeps running.
const watched = 700 * time.Millisecond

// Open opens a URL: https, or http on this machine. The URL is a single
// argument to the program, is never interpreted by a shell, and never looks
// like an option. The browser keeps running after toolreg ends.
func (b Browser) Open(ctx context.Context, address string) error {
	if webaddr.Check(address) != nil || strings.ContainsAny(address, "\"'`") { // openers are often shell scripts
		return errors.New("only https URLs are opened, and http URLs on this machine")
	}
	for _, argv := range b.openers(runtime.GOOS) {
		err := process.Open(ctx, process.Spec{Argv: append(argv, address), Env: b.Environ}, watched)
		if _, missing := errors.AsType[*process.StartError](err); !missing {
			return err
		}
	}
	return ErrNoBrowser
}

// openers returns commands that open a URL, the preferred one first.
func (b Browser) openers(goos string) [][]string {
	var out [][]string
	if program := b.variable("BROWSER"); program != "" &&
		!strings.ContainsAny(program, " \t:;%'\"$") && !strings.HasPrefix(program, "-") {
		out = append(out, []string{program})
	}
	switch {
	case goos == "darwin":
		return append(out, []string{"/usr/bin/open"})
	case goos == "windows":
		return append(out, []string{"rundll32", "url.dll,FileProtocolHandler"})
	case b.variable("DISPLAY") != "" || b.variable("WAYLAND_DISPLAY") != "":
		// Without a display these would find browsers that need the terminal.
		out = append(out, []string{"xdg-open"}, []string{"x-www-browser"})
	}
	return append(out, []string{"wslview"})
}

func (b Browser) variable(name string) string {
	value, _ := expand.Find(b.Environ, name)
	return value
}
