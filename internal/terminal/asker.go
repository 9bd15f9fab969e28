package terminal

import (
	"context"
	"encoding/json"
	"errors"
)

// Asker puts the questions of MCP servers to the person at the terminal
// (elicitation, revision 2025-11-25). What a server says is marked as its words
// and stands behind a bar, with everything invisible escaped.
type Asker struct {
	TTY   *TTY
	Color bool // allows colours
	// Before is called before anything is written, such as to take progress
	// lines off the screen, and what it returns after the answer. Both may be
	// nil.
	Before func() (after func())
	// Open opens an address in the person's browser. nil: the person is asked to
	// do it.
	Open func(context.Context, string) error
}

// Ask shows a question and returns the answer, for a form with its content. End
// of input cancels. An error is the cause of ctx, or a terminal that cannot be
// used.
func (a *Asker) Ask(ctx context.Context, q Asked) (Reply, json.RawMessage, error) {
	defer a.TTY.begin(a.Before)()
	columns, _ := a.TTY.Size()
	v := &view{width: columns, color: a.Color}
	d := dialog{tty: a.TTY, open: a.Open, q: q, v: v}
	var reply Reply
	var content json.RawMessage
	var err error
	if q.Form != nil {
		reply, content, err = d.fill(ctx)
	} else {
		reply, err = d.openAddress(ctx)
	}
	if errors.Is(err, ErrNoAnswer) {
		return Cancel, nil, nil
	}
	return reply, content, err
}
