// Package ttytest has a terminal for tests.
package ttytest

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/ui"
)

// Terminal is a pseudo-terminal: the code under test uses one end, and the test acts as
// the person at the other.
type Terminal struct {
	TTY    *ui.TTY
	Master *os.File

	t     *testing.T
	slave *os.File

	mu   sync.Mutex
	cond *sync.Cond
	seen strings.Builder
}

// New returns a terminal of 80 columns and 24 rows, which is closed at the end of the test.
func New(t *testing.T) *Terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 80, Row: 24}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &Terminal{TTY: ui.NewTTY(slave, slave), Master: os.NewFile(uintptr(fd), "ptmx"), t: t, slave: slave}
	p.cond = sync.NewCond(&p.mu)
	done := make(chan struct{})
	go p.watch(done)
	t.Cleanup(func() {
		_ = p.TTY.Close()
		_ = p.Master.Close()
		<-done
	})
	return p
}

// watch records what the program writes.
func (p *Terminal) watch(done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := p.Master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.cond.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Output returns everything written so far.
func (p *Terminal) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ReplaceAll(p.seen.String(), "\r\n", "\n")
}

// Await waits until text has been written n times.
func (p *Terminal) Await(text string, n int) {
	p.t.Helper()
	stop := time.AfterFunc(20*time.Second, func() { _ = p.Master.Close() }) // fails the test instead of hanging it
	defer stop.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for strings.Count(p.seen.String(), text) < n {
		if _, err := p.Master.Stat(); err != nil {
			p.t.Fatalf("no %q in %q", text, p.seen.String())
		}
		p.cond.Wait()
	}
}

// Typed types text.
func (p *Terminal) Typed(text string) {
	p.t.Helper()
	if _, err := p.Master.WriteString(text); err != nil {
		p.t.Error(err)
	}
}

// TypedAhead types, and waits until the keys have reached the program's end of the
// terminal.
func (p *Terminal) TypedAhead(text string) {
	p.t.Helper()
	p.Typed(text)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		n := 0
		conn, err := p.slave.SyscallConn()
		if err != nil {
			p.t.Fatal(err)
		}
		var inner error
		if err := conn.Control(func(fd uintptr) { n, inner = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil ||
			inner != nil {
			p.t.Fatal(err, inner)
		}
		if n > 0 {
			return
		}
	}
	p.t.Fatal("the keys never arrived")
}
