package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Without a browser, the person at the terminal is shown the URL, logs in on another
// machine, and pastes the URL from its address bar.
func TestLoginByPastedURL(t *testing.T) {
	program, err := exec.LookPath("toolreg") // TestMain has put it there
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		paste  func(back string) string
		code   int
		wanted string
	}{
		{"pasted", func(back string) string { return back + "\n" }, 0, `logged in to server "gh"`},
		{"of another login", func(back string) string { return strings.Replace(back, "state=", "state=X", 1) + "\n" }, 1, "its state does not match"},
		{"Ctrl-C", func(string) string { return "\x03" }, 130, "interrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address, _ := startAuthority(nil, func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}, t.Cleanup)
			dir := t.TempDir()
			file := filepath.Join(dir, "s.yaml")
			if err := os.WriteFile(file, []byte("mcpServers: {gh: {url: '"+address+"'}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "--settings", file, "servers", "login", "gh", "--no-browser")
			cmd.Dir = dir
			cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "GORACE=atexit_sleep_ms=0"}
			shown, err := loginAt(t, cmd, tt.paste)
			if got := exitCode(err); got != tt.code || !strings.Contains(shown, tt.wanted) {
				t.Errorf("exit code %d\n%s", got, shown)
			}
			if strings.Contains(shown, "access-") || strings.Contains(shown, "refresh-") {
				t.Errorf("a token on the screen:\n%s", shown)
			}
		})
	}
}

// loginAt runs cmd at a new terminal and types what paste returns for the URL at which a
// browser would end.
func loginAt(t *testing.T, cmd *exec.Cmd, paste func(string) string) (shown string, err error) {
	t.Helper()
	control, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	address := regexp.MustCompile(`(?m)^http://\S+/authorize\?\S+`)
	var screen bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for typed := false; ; {
			n, err := control.Read(buf)
			screen.Write(buf[:n])
			if found := address.Find(screen.Bytes()); !typed && found != nil && bytes.HasSuffix(screen.Bytes(), []byte("address bar: ")) {
				typed = true
				if _, err := control.WriteString(paste(browserEnd(t, strings.TrimSpace(string(found))))); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	err = cmd.Wait()
	reading.Wait()
	return screen.String(), err
}

// browserEnd returns the URL at which a browser ends if nothing listens there.
func browserEnd(t *testing.T, address string) string {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	_ = resp.Body.Close()
	return resp.Header.Get("Location")
}
