package ui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolreg/toolreg/internal/form"
)

// Asked is a question from a server. Its texts are the server's and untrusted.
type Asked struct {
	Server  string
	During  string // what toolreg was doing, such as "tool echo"
	Message string
	Form    *form.Form // for a form
	URL     string     // for a URL to open
	// Done is set if the person has to finish something at the URL; it is
	// closed when the server reports that this has happened.
	Done <-chan struct{}
}

// Reply is the person's answer.
type Reply struct {
	Action  Action
	Content json.RawMessage // the answers, if Action is Accept and the question has a form
	Said    string          // the person's reason, if Action is Decline; may be empty
}

// Action is how a question is answered.
type Action int

// The actions. The zero value declines.
const (
	Decline Action = iota
	Cancel         // no answer, because of end of input or cancellation
	Accept
)

// Asker asks the person questions of MCP servers at the terminal (elicitation,
// revision 2025-11-25). The server's text is marked as such and shown after
// a bar on each line, with invisible characters escaped.
type Asker struct {
	TTY *TTY
	// Open opens a URL in the person's browser. nil means the person has to open it.
	Open func(context.Context, string) error
}

// Ask shows a question and returns the answer. End of input cancels. The
// error is the cause of ctx, or that of an unusable terminal.
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

// dialog is the state of one question.
type dialog struct {
	tty  *TTY
	open func(context.Context, string) error // nil means the person has to open it
	q    Asked
	v    *view
	head string // the server's question, drawn

	readFile func(name string) ([]byte, error) // reads the file of an answer @FILE; nil means not supported
	file     string                            // file of the last answer; "" if none
	noun     string                            // what is asked for, such as "param"
}

// flushed returns what was drawn since the last call.
func (d *dialog) flushed() string {
	text := d.v.b.String()
	d.v.b.Reset()
	return text
}

// choose asks for one of a few words after what was drawn. about is repeated
// each time the answers are offered.
func (d *dialog) choose(ctx context.Context, about, question string, words ...string) (Chosen, error) {
	lead := d.flushed()
	text := lead
	if !strings.HasPrefix(lead, d.head) {
		text = d.head + lead
	}
	return d.tty.choose(ctx, Query{Text: text, About: about, Question: question, Answers: words}, lead)
}

// line formats a line that may contain foreign text, cut to the screen.
func (d *dialog) line(text string) string {
	v := view{width: d.v.width}
	v.line(text)
	return v.b.String()
}

// maxNamed is the maximum number of columns for what toolreg was doing.
const maxNamed = 40

// heading says which server asks, and that the text is not verified.
func (d *dialog) heading(wants string) {
	during := ""
	if d.q.During != "" {
		during = " during " + Cut(Line(d.q.During), maxNamed)
	}
	d.v.printf("\nMCP server %s %s%s.", name(d.q.Server), wants, during)
	if strings.TrimSpace(d.q.Message) != "" {
		d.v.printf("Message from the server (not verified):")
		d.v.quote(d.q.Message)
	}
	d.head = d.v.b.String()
}
