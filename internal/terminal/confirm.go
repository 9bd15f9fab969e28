package terminal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/exec"
)

// Confirmer asks for agreement to calls at the terminal (spec section 8.5). It
// implements exec.Confirmer.
type Confirmer struct {
	TTY *TTY
	// Color allows colours in diffs.
	Color bool
	// Limit is how long to wait for an answer; 0 means for ever. No answer is
	// no.
	Limit time.Duration
	// Editor is the command line of the person's editor, from $VISUAL or
	// $EDITOR; "" means vi (notepad on Windows).
	Editor string
	// Before is called before anything is written, such as to take progress
	// lines off the screen, and what it returns after the answer. Both may be
	// nil.
	Before func() (after func())
}

// attempts is how often an answer that is none of the offered ones is asked for
// again.
const attempts = 3

// Confirm shows the question and reads the answer. Enter, end of input, Ctrl-C,
// the time limit and three unknown answers are no. An error is the cause of ctx
// or a terminal that cannot be used.
func (c *Confirmer) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	c.TTY.mu.Lock()
	defer c.TTY.mu.Unlock()
	if c.Before != nil {
		if after := c.Before(); after != nil {
			defer after()
		}
	}
	columns, _ := c.TTY.Size()
	v := view{width: columns, color: c.Color}
	if err := c.TTY.write(ctx, v.question(q)); err != nil {
		return exec.Answer{}, err
	}
	text := prompt(q.Choices)
	for range attempts {
		line, err := c.TTY.ask(ctx, text, c.Limit)
		if errors.Is(err, ErrNoAnswer) {
			return exec.Answer{Choice: exec.No, Reason: err.Error()}, nil
		}
		if err != nil {
			return exec.Answer{}, err
		}
		choice, ok := parseAnswer(line, q.Choices)
		switch {
		case ok && choice == exec.Edit:
			content, err := c.edit(ctx, q.Preview)
			if err == nil || context.Cause(ctx) != nil {
				return exec.Answer{Choice: choice, Content: content}, context.Cause(ctx)
			}
			text = Line(err.Error()) + "\n" + prompt(q.Choices)
		case ok:
			return exec.Answer{Choice: choice}, nil
		default:
			text = "Answer with one of the letters in brackets.\n" + prompt(q.Choices)
		}
	}
	return exec.Answer{Choice: exec.No, Reason: "no answer that applies"}, nil
}

// prompt is the last line of a question, in the form that spec section 3 fixes.
func prompt(choices []exec.Choice) string {
	parts := make([]string, 0, len(choices))
	for _, c := range choices {
		word := c.String()
		parts = append(parts, "["+word[:1]+"]"+word[1:])
	}
	return "Allow? " + strings.Join(parts, ", ") + ": "
}

// parseAnswer reads one answer: its letter or its word, case aside; nothing is
// no. ok is false for one that is not offered.
func parseAnswer(line string, choices []exec.Choice) (choice exec.Choice, ok bool) {
	line = strings.ToLower(strings.TrimSpace(line))
	if line == "" {
		return exec.No, true
	}
	i := slices.IndexFunc(choices, func(c exec.Choice) bool { return line == c.String() || line == c.String()[:1] })
	if i < 0 {
		return exec.No, false
	}
	return choices[i], true
}
