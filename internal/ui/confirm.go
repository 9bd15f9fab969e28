package ui

import (
	"context"
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/exec"
)

// Confirmer asks for confirmation of calls at the terminal. Only one question may
// be asked at a time.
type Confirmer struct{ TTY *TTY }

// Confirm shows the question and reads the answer. No answer, such as the end
// of input, means no. The error is the cause of ctx or that of an unusable terminal.
func (c *Confirmer) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	defer c.TTY.begin()()
	query := c.query(q)
	lead := query.Text
	for {
		chosen, err := c.TTY.choose(ctx, query, lead)
		if errors.Is(err, ErrNoAnswer) {
			return exec.Answer{Choice: exec.No, Reason: err.Error()}, nil
		}
		if err != nil {
			return exec.Answer{}, err
		}
		choice := q.Choices[slices.Index(query.Answers, chosen.Word)]
		if choice != exec.Edit {
			return exec.Answer{Choice: choice, Said: chosen.Said}, nil
		}
		content, err := textEditor{c.TTY}.edit(ctx, q.Preview)
		if err == nil || context.Cause(ctx) != nil {
			return exec.Answer{Choice: exec.Edit, Content: content}, context.Cause(ctx)
		}
		lead = Line(err.Error()) + "\n"
	}
}

// query draws a question about a call.
func (c *Confirmer) query(q exec.Question) Query {
	columns, _ := c.TTY.Size()
	out := Query{Question: "Allow?"}
	for _, choice := range q.Choices {
		out.Answers = append(out.Answers, choice.String())
	}
	if slices.Contains(q.Choices, exec.AlwaysTool) {
		out.Same = map[string]string{exec.Always.String(): exec.AlwaysTool.String()}
	}
	v := view{width: columns, color: c.TTY.Color}
	out.Text = v.question(q)
	v.b.Reset()
	v.about(q)
	out.About = v.b.String()
	return out
}
