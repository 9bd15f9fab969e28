package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/timing"
)

// TTY is the controlling terminal of the process, independent of its standard
// streams. It asks one question at a time; others wait.
type TTY struct {
	// Color enables colors in questions.
	Color bool
	// Pager and Editor are command lines of the person's programs; "" means the
	// defaults.
	Pager, Editor string
	// Before is called before a question is written, for example to remove
	// progress lines from the screen, and the function that it returns after the answer.
	// Both may be nil.
	Before func() (after func())

	in, out *os.File
	mu      sync.Mutex
}

// Turn is a terminal that is reserved for one question. Other questions wait for its end.
type Turn struct {
	*TTY
	after func()
}

// Begin reserves the terminal for one question.
func (t *TTY) Begin() *Turn {
	t.mu.Lock()
	turn := &Turn{t, func() {}}
	if t.Before != nil {
		if f := t.Before(); f != nil {
			turn.after = f
		}
	}
	return turn
}

// End lets the next question begin.
func (t *Turn) End() {
	t.after()
	t.mu.Unlock()
}

// View returns a view of the terminal's width and colors.
func (t *TTY) View() *View {
	columns, _ := t.Size()
	return &View{Width: columns, Color: t.Color}
}

// OpenTTY opens the controlling terminal. An error means that no one can be asked.
// The caller must close the TTY.
func OpenTTY() (*TTY, error) {
	in, out, err := openTTY()
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	return NewTTY(in, out), nil
}

// NewTTY returns a terminal that reads and writes open files. [TTY.Close] closes them.
func NewTTY(in, out *os.File) *TTY { return &TTY{in: in, out: out} }

// Close closes the terminal.
func (t *TTY) Close() error {
	if t.out == t.in {
		return t.in.Close()
	}
	return errors.Join(t.in.Close(), t.out.Close())
}

// reopen opens the terminal again for a child. Passing our own files to it
// would make them blocking, and a blocking read cannot be canceled.
func (t *TTY) reopen() (in, out *os.File, err error) {
	if in, err = os.OpenFile(t.in.Name(), os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile(t.out.Name(), os.O_RDWR, 0); err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return in, out, nil
}

// Size returns columns and rows, or 80 and 24 if unknown.
func (t *TTY) Size() (columns, rows int) {
	columns, rows = size(t.out)
	if columns <= 0 {
		columns = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return columns, rows
}

// maxAnswer is the maximum length of an answer, in bytes.
const maxAnswer = 4096

// ErrNoAnswer is returned if the person gave no answer, for example at the end
// of input.
var ErrNoAnswer = errors.New("no answer")

// Ask asks one question with [Turn.Ask].
func (t *TTY) Ask(ctx context.Context, text string) (string, error) {
	turn := t.Begin()
	defer turn.End()
	return turn.Ask(ctx, text)
}

// AskHidden is Ask without echo of what is typed.
func (t *Turn) AskHidden(ctx context.Context, text string) (string, error) {
	defer hideInput(t.in)()
	return t.Ask(ctx, text)
}

// Ask writes text and reads one line, without its line break. It first discards
// input typed before, so that it cannot answer a question that was not yet
// visible. The error is the cause of ctx, or wraps ErrNoAnswer.
func (t *Turn) Ask(ctx context.Context, text string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if err := flush(t.in); err != nil {
		return "", fmt.Errorf("discarding earlier input: %w", err)
	}
	line := ""
	continued, forget := watchContinued() // before the question can be seen
	defer forget()
	err := t.write(ctx, text)
	if err == nil {
		line, err = t.readRedrawn(ctx, text, continued)
	}
	if err != nil { // end the line, because Enter was not pressed
		_ = t.out.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(t.out, "\n")
	}
	return line, err
}

// Show writes text, which may have our own styles, and returns when ctx ends, because the terminal
// may be stopped by Ctrl-S.
func (t *Turn) Show(ctx context.Context, text string) error { return t.write(ctx, text) }

func (t *TTY) write(ctx context.Context, text string) error {
	return t.writeEscapes(ctx, Styled(text))
}

// writeEscapes is write for safe text with our own escape sequences.
func (t *TTY) writeEscapes(ctx context.Context, text string) error {
	if t.out.SetWriteDeadline(time.Time{}) == nil {
		stop := context.AfterFunc(ctx, func() { _ = t.out.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	_, err := io.WriteString(t.out, text)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}

// readRedrawn reads a line, and writes text again when the process continues
// after a stop, because the shell has written in place of the question.
func (t *TTY) readRedrawn(ctx context.Context, text string, continued <-chan os.Signal) (string, error) {
	done := make(chan struct{})
	var redrawing sync.WaitGroup
	redrawing.Go(func() {
		for {
			select {
			case <-continued:
				_ = t.write(ctx, text) // the read will fail too
			case <-done:
				return
			}
		}
	})
	line, err := t.readLine(ctx)
	close(done)
	redrawing.Wait()
	return line, err
}

// readLine reads up to Enter. Ctrl-C arrives as a signal, which cancels ctx, or
// as a character if the terminal is raw.
func (t *TTY) readLine(ctx context.Context) (string, error) {
	read := func() (string, error) { return scanLine(t.in) }
	var line string
	var err error
	if t.in.SetReadDeadline(time.Time{}) == nil {
		stop := context.AfterFunc(ctx, func() { _ = t.in.SetReadDeadline(time.Unix(1, 0)) })
		line, err = read()
		stop()
	} else { // some consoles do not support deadlines
		line, err = timing.UntilDone(ctx, read)
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	switch {
	case errors.Is(err, io.EOF):
		return "", fmt.Errorf("%w (end of input)", ErrNoAnswer)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return line, nil
}

// scanLine reads byte by byte, so that it takes nothing after the line.
func scanLine(r io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := r.Read(b[:])
		if n == 1 {
			switch b[0] {
			case '\n', '\r':
				return strings.TrimSpace(string(line)), nil
			case 0x03, 0x04, 0x1a: // Ctrl-C, Ctrl-D, Ctrl-Z in raw mode
				return "", io.EOF
			}
			if len(line) < maxAnswer {
				line = append(line, b[0])
			}
		}
		if err != nil {
			return "", err
		}
	}
}

// Query is a question with a few possible answers. [TTY.Choose] asks all such
// questions, so that the keys have the same meaning everywhere.
type Query struct {
	// Text is the whole subject of the question, formatted; it may be longer
	// than the screen. "" if nothing has to be shown.
	Text string
	// Whole is what [v]iew shows; "" means Text.
	Whole string
	// About is a short form of Text, repeated each time the answers are
	// offered, because what a person decides on must not have scrolled away.
	About string
	// Question is, for example, "Allow?".
	Question string
	// Answers are the possible answers, typed in full or by their first
	// letters, which must be unique. Case counts only between two answers that differ
	// in nothing else. The last one is no.
	Answers []string
	// Same maps words that are accepted but not offered to the answers that they
	// stand for.
	Same map[string]string
}

// Chosen is the answer to a [Query].
type Chosen struct {
	Word string // one of its Answers
	Said string // the person's reason, if Word is no; may be empty
}

// viewWord is the answer that shows the whole question again.
const viewWord = "view"

// Choose asks a question until it gets one of its answers. Enter alone means
// no, and text after a no is its reason; [v]iew shows the text in the pager.
// The error is the cause of ctx, or wraps [ErrNoAnswer].
func (t *TTY) Choose(ctx context.Context, q Query) (Chosen, error) {
	turn := t.Begin()
	defer turn.End()
	return turn.Choose(ctx, q, q.Text)
}

// Choose is [TTY.Choose] within a turn. lead is written first, in place of the whole text.
func (t *Turn) Choose(ctx context.Context, q Query, lead string) (Chosen, error) {
	words := q.words()
	no := words[len(words)-1]
	again := q.About + prompt(q.Question, words)
	shown := lead + again
	for {
		line, err := t.Ask(ctx, shown)
		if err != nil {
			return Chosen{}, err
		}
		first, rest, _ := strings.Cut(line, " ")
		switch word := q.parseAnswer(first); {
		case line == "", word == no:
			return Chosen{no, strings.TrimSpace(rest)}, nil
		case word == "" || rest != "":
			shown = "Please answer " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1] + ".\n" + again
		case word == viewWord:
			if err := t.page(ctx, cmp.Or(q.Whole, q.Text)); err != nil {
				return Chosen{}, err
			}
			shown = again
		default:
			return Chosen{Word: word}, nil
		}
	}
}

func (q *Query) words() []string {
	if q.Text == "" {
		return q.Answers
	}
	return slices.Insert(slices.Clone(q.Answers), len(q.Answers)-1, viewWord)
}

// parseAnswer returns the answer that a word or letter means, ignoring case if none is
// spelled so; "" if it means none.
func (q *Query) parseAnswer(typed string) string {
	is := func(w string) bool { return typed == w || typed == w[:1] }
	words := q.words()
	if i := slices.IndexFunc(words, is); i >= 0 {
		return words[i]
	}
	typed = strings.ToLower(typed)
	if i := slices.IndexFunc(words, is); i >= 0 {
		return words[i]
	}
	for w, answer := range q.Same {
		if is(w) {
			return answer
		}
	}
	return ""
}

// prompt returns the last line of a question, such as "Allow? [y]es, [n]o: ".
func prompt(question string, words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = "[" + w[:1] + "]" + w[1:]
	}
	return question + " " + strings.Join(parts, ", ") + ": "
}
