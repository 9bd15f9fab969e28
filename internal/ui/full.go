package ui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
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
	restore, err := makeRaw(f.tty.in)
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

// KeyCode identifies a key.
type KeyCode int

// The keys that full-screen programs use.
const (
	KeyText KeyCode = iota // a character, or pasted text
	KeyEnter
	KeyEscape
	KeyUp
	KeyDown
	KeyLeft
	KeyRight
	KeyPageUp
	KeyPageDown
	KeyHome
	KeyEnd
	KeyBackspace
	KeyDelete
	KeyDeleteWord // Ctrl-W
	KeyDeleteLine // Ctrl-U
	KeyInterrupt  // Ctrl-C
	KeyEndOfInput // Ctrl-D
	KeySuspend    // Ctrl-Z
	KeyRedraw     // Ctrl-L
	KeyOther
)

// Key is one key, or text that was pasted at once.
type Key struct {
	Code KeyCode
	Text string // text of KeyText, without control characters
}

func controlKey(c byte) KeyCode {
	return cmp.Or(map[byte]KeyCode{
		0x01: KeyHome, 0x02: KeyLeft, 0x03: KeyInterrupt, 0x04: KeyEndOfInput, 0x05: KeyEnd, 0x06: KeyRight,
		0x08: KeyBackspace, '\n': KeyEnter, 0x0c: KeyRedraw, '\r': KeyEnter, 0x0e: KeyDown, 0x10: KeyUp,
		0x15: KeyDeleteLine, 0x17: KeyDeleteWord, 0x1a: KeySuspend, 0x7f: KeyBackspace,
	}[c], KeyOther)
}

// sequenceKey returns the key of a sequence, by what follows ESC [ or ESC O.
func sequenceKey(sequence string) KeyCode {
	return cmp.Or(map[string]KeyCode{
		"A": KeyUp, "B": KeyDown, "C": KeyRight, "D": KeyLeft, "3~": KeyDelete, "5~": KeyPageUp, "6~": KeyPageDown,
		"H": KeyHome, "1~": KeyHome, "7~": KeyHome, "F": KeyEnd, "4~": KeyEnd, "8~": KeyEnd,
	}[sequence], KeyOther)
}

// What terminals send before and after pasted text.
const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	maxPaste   = 64 << 10
)

// decodeKey decodes the first key of the input and returns its length, or 0 if
// it is incomplete. final means that nothing follows immediately: then ESC is
// the key itself.
func decodeKey(typed []byte, final bool) (Key, int) {
	c := typed[0]
	switch {
	case c == 0x1b:
		return decodeEscape(typed, final)
	case c < ' ' || c == 0x7f:
		return Key{Code: controlKey(c)}, 1
	case !utf8.FullRune(typed) && !final:
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(typed)
	if r == utf8.RuneError && n == 1 {
		return Key{Code: KeyOther}, 1
	}
	return Key{Code: KeyText, Text: string(r)}, n
}

func decodeEscape(typed []byte, final bool) (Key, int) {
	if isPaste(typed) {
		return decodePaste(typed)
	}
	if len(typed) == 1 {
		if final {
			return Key{Code: KeyEscape}, 1
		}
		return Key{}, 0
	}
	if typed[1] == 0x1b {
		return Key{Code: KeyEscape}, 1
	}
	if typed[1] != '[' && typed[1] != 'O' { // Alt and a key
		return Key{Code: KeyOther}, 2
	}
	for i := 2; i < len(typed); i++ {
		if c := typed[i]; c >= 0x40 && c <= 0x7e { // the last byte of a sequence
			return Key{Code: sequenceKey(string(typed[2 : i+1]))}, i + 1
		} else if c < 0x20 || c > 0x7e {
			return Key{Code: KeyOther}, i
		}
	}
	if final {
		return Key{Code: KeyOther}, len(typed)
	}
	return Key{}, 0
}

// isPaste reports whether the input begins with pasted text, whose end may take
// long to arrive.
func isPaste(typed []byte) bool { return bytes.HasPrefix(typed, []byte(pasteStart)) }

func decodePaste(typed []byte) (Key, int) {
	text, _, ended := bytes.Cut(typed[len(pasteStart):], []byte(pasteEnd))
	if !ended && len(text) < maxPaste {
		return Key{}, 0
	}
	n := len(pasteStart) + len(text)
	if ended {
		n += len(pasteEnd)
	}
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(text), ""))
	return Key{Code: KeyText, Text: line}, n
}
