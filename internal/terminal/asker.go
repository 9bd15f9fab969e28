package terminal

import (
	"context"
	"errors"
)

// Asker puts the questions of MCP servers to the person at the terminal
// (elicitation, revision 2025-11-25). What a server says is marked as its words
// and stands behind a bar, with everything invisible escaped.
type Asker struct {
	TTY *TTY
	// Open opens an address in the person's browser. nil: the person is asked to
	// do it.
	Open func(context.Context, string) error
}

// Ask shows a question and returns the answer. End of input cancels. An error is
// the cause of ctx, or a terminal that cannot be used.
func (a *Asker) Ask(ctx context.Context, q Asked) (Reply, error) {
	defer a.TTY.begin()()
	columns, _ := a.TTY.Size()
	d := dialog{tty: a.TTY, open: a.Open, q: q, v: &view{width: columns, color: a.TTY.Color}}
	ask := d.openAddress
	if q.Form != nil {
		ask = d.fill
	}
	reply, err := ask(ctx)
	if errors.Is(err, ErrNoAnswer) {
		return Reply{Action: Cancel}, nil
	}
	return reply, err
}
