package ui

import (
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

func openTTY() (in, out *os.File, err error) {
	if in, err = os.OpenFile("CONIN$", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0); err != nil {
		_ = in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

func flush(f *os.File) error { return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }

// hideInput stops the echo of a console until the returned function is called.
func hideInput(f *os.File) (show func()) {
	show = restore(f)
	var mode uint32
	if h := windows.Handle(f.Fd()); windows.GetConsoleMode(h, &mode) == nil {
		_ = windows.SetConsoleMode(h, mode&^windows.ENABLE_ECHO_INPUT) // else what is typed is shown
	}
	return show
}

// restore saves the settings of a console and returns a function that restores
// them.
func restore(f *os.File) func() {
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(f.Fd()), state) }
}

func watchContinued() (continued chan os.Signal, forget func()) { return nil, func() {} }

// Pixels returns 0, because consoles do not report their size in pixels.
func Pixels(*os.File) (width, height int) { return 0, 0 }

func size(f *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}
