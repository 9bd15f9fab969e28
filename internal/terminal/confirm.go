package terminal

import (
	"context"
	"errors"
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

// Confirm shows the question and reads the answer. Enter, end of input, Ctrl-C,
// the time limit and three unknown answers are no; what stands behind a no is its
// reason. An error is the cause of ctx
// or a terminal that cannot be used.
func (c *Confirmer) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	defer c.TTY.begin(c.Before)()
	columns, _ := c.TTY.Size()
	v := view{width: columns, color: c.Color}
	if err := c.TTY.write(ctx, v.question(q)); err != nil {
		return exec.Answer{}, err
	}
	words := make([]string, len(q.Choices))
	for i, choice := range q.Choices {
		words[i] = choice.String()
	}
	question := prompt("Allow?", words)
	text := question
	for range attempts {
		line, err := c.TTY.ask(ctx, text, c.Limit)
		if errors.Is(err, ErrNoAnswer) {
			return exec.Answer{Choice: exec.No, Reason: err.Error()}, nil
		}
		if err != nil {
			return exec.Answer{}, err
		}
		i := answered(line, words)
		first, said, _ := strings.Cut(line, " ")
		if no := len(words) - 1; i < 0 && answered(first, words) == no {
			return exec.Answer{Choice: exec.No, Said: strings.TrimSpace(said)}, nil
		}
		switch {
		case line == "":
			return exec.Answer{Choice: exec.No}, nil
		case i < 0:
			text = wrongAnswer + question
		case q.Choices[i] != exec.Edit:
			return exec.Answer{Choice: q.Choices[i]}, nil
		default:
			content, err := textEditor{c.TTY, c.Editor}.edit(ctx, q.Preview)
			if err == nil || context.Cause(ctx) != nil {
				return exec.Answer{Choice: exec.Edit, Content: content}, context.Cause(ctx)
			}
			text = Line(err.Error()) + "\n" + question
		}
	}
	return exec.Answer{Choice: exec.No, Reason: "no answer that applies"}, nil
}
