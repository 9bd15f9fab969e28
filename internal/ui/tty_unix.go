//go:build unix

package ui

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openTTY opens /dev/tty without O_NONBLOCK; the runtime's poller provides
// deadlines, which Fd() would disable.
func openTTY() (in, out *os.File, err error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return f, f, err
}

// watchContinued returns a channel that receives a value when the process
// continues after a stop, such as by Ctrl-Z, until forget is called.
func watchContinued() (continued chan os.Signal, forget func()) { return watchSignal(unix.SIGCONT) }

func watchSignal(s os.Signal) (got chan os.Signal, forget func()) {
	got = make(chan os.Signal, 1)
	signal.Notify(got, s)
	return got, func() { signal.Stop(got) }
}

// control calls do with the file descriptor without removing the file from the
// poller, as Fd would.
func control(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func flush(f *os.File) error { return control(f, discardInput) }

// hideInput stops the echo of a terminal until the returned function is called.
func hideInput(f *os.File) (show func()) {
	show = restore(f)
	_ = control(f, func(fd int) error { // a terminal that cannot do it shows what is typed
		settings, err := unix.IoctlGetTermios(fd, getSettings)
		if err != nil {
			return err
		}
		settings.Lflag &^= unix.ECHO
		settings.Lflag |= unix.ECHONL
		return unix.IoctlSetTermios(fd, setSettings, settings)
	})
	return show
}

// restore saves the settings of a terminal and returns a function that restores
// them.
func restore(f *os.File) func() {
	var state *term.State
	if control(f, func(fd int) (err error) { state, err = term.GetState(fd); return err }) != nil {
		return func() {}
	}
	return func() { _ = control(f, func(fd int) error { return term.Restore(fd, state) }) }
}

// Pixels returns the size in pixels of the terminal that f refers to; 0 if unknown.
func Pixels(f *os.File) (width, height int) {
	_ = control(f, func(fd int) error {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			width, height = int(size.Xpixel), int(size.Ypixel)
		}
		return err
	})
	return width, height
}

func size(f *os.File) (columns, rows int) {
	err := control(f, func(fd int) (err error) { columns, rows, err = term.GetSize(fd); return err })
	if err != nil {
		return 0, 0
	}
	return columns, rows
}
