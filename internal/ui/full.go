package ui

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// Full is a terminal in full-screen mode, on which a program draws lines and reads
// keys. Create it with [TTY.Full]; Close restores the terminal. Its
// methods must be called by one goroutine at a time.
type Full struct {
	tty     *TTY
	end     func() // releases the terminal for questions
	restore func() // restores the modes of the terminal
	drawn   []string
	keys    *keyReader
	resized chan os.Signal
	forget  func() // stops watching the size
}

// Escape sequences that enter and leave full-screen mode: alternate screen,
// bracketed paste, no wrapping of long lines. Leaving also shows the cursor.
const (
	enterFull = "\x1b[?1049h\x1b[?2004h\x1b[?7l\x1b[2J"
	leaveFull = "\x1b[?7h\x1b[?2004l\x1b[?25h\x1b[?1049l"
)

// Full takes over the whole screen. The error wraps [errors.ErrUnsupported] on
// systems that do not support it.
func (t *TTY) Full(ctx context.Context) (*Full, error) {
	f := &Full{tty: t, end: t.Begin().End}
	err := f.enter(ctx)
	if err == nil {
		if f.keys, err = newKeyReader(t.in); err != nil {
			f.leave(ctx)
		}
	}
	if err != nil {
		f.end()
		return nil, fmt.Errorf("taking the whole screen: %w", err)
	}
	f.resized, f.forget = watchSize()
	return f, nil
}

func (f *Full) enter(ctx context.Context) error {
	restore, err := raw(f.tty.in)
	if err != nil {
		return err
	}
	f.restore, f.drawn = restore, nil
	return f.tty.writeEscapes(ctx, enterFull)
}

// leave leaves full screen, even if ctx has ended.
func (f *Full) leave(ctx context.Context) {
	_ = f.tty.writeEscapes(context.WithoutCancel(ctx), leaveFull) // the error cannot be reported anywhere
	f.restore()
}

// Close restores the terminal.
func (f *Full) Close(ctx context.Context) {
	f.forget()
	f.keys.close()
	f.leave(ctx)
	f.end()
}

// Keys returns the channel of pressed keys. It is closed when the terminal is
// gone.
func (f *Full) Keys() <-chan Key { return f.keys.keys }

// Resized returns a channel that receives a value when the size has changed.
func (f *Full) Resized() <-chan os.Signal { return f.resized }

// Size returns the numbers of columns and rows.
func (f *Full) Size() (columns, rows int) { return f.tty.Size() }

// Suspend restores the terminal and stops the program, as Ctrl-Z does, until it
// is continued.
func (f *Full) Suspend(ctx context.Context) error {
	f.leave(ctx)
	stopSelf(ctx)
	return f.enter(ctx)
}

// Draw shows lines from the top and puts the cursor at a line and column, which
// start at 0; a negative line hides it. Lines may have styles of [Paint]; the
// terminal cuts long lines.
func (f *Full) Draw(ctx context.Context, lines []string, cursorLine, cursorColumn int) error {
	var b strings.Builder
	b.WriteString("\x1b[?25l")
	for i := range max(len(lines), len(f.drawn)) {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		if i >= len(f.drawn) || line != f.drawn[i] {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", i+1, Styled(line))
		}
	}
	f.drawn = append(f.drawn[:0], lines...)
	if cursorLine >= 0 {
		fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[?25h", cursorLine+1, cursorColumn+1)
	}
	return f.tty.writeEscapes(ctx, b.String())
}

// Clear makes the next Draw write every line, for example after a change of the
// size.
func (f *Full) Clear(ctx context.Context) error {
	f.drawn = nil
	return f.tty.writeEscapes(ctx, "\x1b[2J")
}
