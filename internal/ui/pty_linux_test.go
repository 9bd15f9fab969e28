package ui

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a pseudo-terminal: the code under test uses one end, and the test acts as
// the person at the other.
type pty struct {
	t      *testing.T
	master *os.File
	tty    *TTY

	mu   sync.Mutex
	cond *sync.Cond
	seen strings.Builder
}

func newPTY(t *testing.T) *pty {
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
	p := &pty{t: t, master: os.NewFile(uintptr(fd), "ptmx"), tty: &TTY{in: slave, out: slave}}
	p.cond = sync.NewCond(&p.mu)
	done := make(chan struct{})
	go p.watch(done)
	t.Cleanup(func() {
		_ = p.tty.Close()
		_ = p.master.Close()
		<-done
	})
	return p
}

// watch records what the program writes.
func (p *pty) watch(done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.cond.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// output returns everything written so far.
func (p *pty) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ReplaceAll(p.seen.String(), "\r\n", "\n")
}

// await waits until text has been written n times.
func (p *pty) await(text string, n int) {
	p.t.Helper()
	stop := time.AfterFunc(20*time.Second, func() { _ = p.master.Close() }) // fails the test instead of hanging it
	defer stop.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for strings.Count(p.seen.String(), text) < n {
		if _, err := p.master.Stat(); err != nil {
			p.t.Fatalf("no %q in %q", text, p.seen.String())
		}
		p.cond.Wait()
	}
}

func (p *pty) typed(text string) {
	p.t.Helper()
	if _, err := p.master.WriteString(text); err != nil {
		p.t.Error(err)
	}
}

// typedAhead types, and waits until the keys have reached the program's end of the
// terminal.
func (p *pty) typedAhead(text string) {
	p.t.Helper()
	p.typed(text)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		n := 0
		err := control(p.tty.in, func(fd int) (err error) { n, err = unix.IoctlGetInt(fd, unix.TIOCINQ); return err })
		if err != nil {
			p.t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	p.t.Fatal("the keys never arrived")
}
