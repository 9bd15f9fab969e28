package ui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolreg/toolreg/internal/form"
)

// Asked is a question of a server. The texts are the server's own.
type Asked struct {
	Server  string
	During  string // what toolreg was doing, such as "tool echo"
	Message string
	Form    *form.Form // for a form
	URL     string     // for a URL to open
	// Done is set if accepting means that the person has finished at the URL;
	// it is closed when the server reports that.
	Done <-chan struct{}
}

// Reply is the person's answer.
type Reply struct {
	Action  Action
	Content json.RawMessage // of Accept, for a form
	Said    string          // of Decline: the person's reason, "" for none
}

// Action is how a question is answered.
type Action int

// The actions. The zero value declines.
const (
	Decline Action = iota
	Cancel         // no answer: end of input, or canceled
	Accept
)

// Asker asks the person questions of MCP servers at the terminal (elicitation,
// revision 2025-11-25). The server's words are marked as such and shown behind
// a bar, with invisible characters escaped.
type Asker struct {
	TTY *TTY
	// Open opens a URL in the person's browser. nil: the person has to open it.
	Open func(context.Context, string) error
}

// Ask shows a question and returns the answer. End of input cancels. An error
// is the cause of ctx, or that of a terminal that cannot be used.
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
	open func(context.Context, string) error // nil: the person has to open it
	q    Asked
	v    *view
	head string // the server's question, drawn

	readFile func(name string) ([]byte, error) // reads the file of an answer @FILE; nil: not supported
	file     string                            // file of the last answer; "" if none
}

// flushed returns what was drawn since the last call.
func (d *dialog) flushed() string {
	text := d.v.b.String()
	d.v.b.Reset()
	return text
}

// choose asks for one of a few words after what was drawn. about is repeated
// with the answers.
func (d *dialog) choose(ctx context.Context, about, question string, words ...string) (Chosen, error) {
	lead := d.flushed()
	text := lead
	if !strings.HasPrefix(lead, d.head) {
		text = d.head + lead
	}
	return d.tty.choose(ctx, Query{Text: text, About: about, Question: question, Answers: words}, lead)
}

// line formats a line that may end in foreign text.
func (d *dialog) line(text string) string {
	v := view{width: d.v.width}
	v.line(text)
	return v.b.String()
}

// maxNamed is how many columns of what the server was doing are shown.
const maxNamed = 40

// heading says which server asks, and that the words are its own.
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
