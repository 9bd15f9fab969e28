package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolreg/toolreg/internal/form"
)

// Asked is a question of a server. Texts are the server's own.
type Asked struct {
	Server  string
	During  string // what toolreg was doing there, such as "tool echo"
	Message string
	Form    *form.Form // of a form
	URL     string     // of an address to open
	// Done is set where accepting means that the person is done at the address;
	// it is closed when the server says so.
	Done <-chan struct{}
}

// Reply is what the person answered.
type Reply struct {
	Action  Action
	Content json.RawMessage // of Accept of a form
	Said    string          // of Decline: the person's reason, "" for none
}

// Action is what is done about a question.
type Action int

// The actions. The zero value declines.
const (
	Decline Action = iota
	Cancel         // no answer: end of input, or put off
	Accept
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

// dialog is the work on one question.
type dialog struct {
	tty  *TTY
	open func(context.Context, string) error // nil: the person does it
	q    Asked
	v    *view
	head string // what the server asks, drawn

	readFile func(name string) ([]byte, error) // of an answer @FILE; nil: there are none
	file     string                            // that the last answer was read from; "" if none
}

// flushed returns what was drawn since.
func (d *dialog) flushed() string {
	text := d.v.b.String()
	d.v.b.Reset()
	return text
}

// choose asks for one of a few words behind what was drawn since. about is
// repeated with the answers.
func (d *dialog) choose(ctx context.Context, about, question string, words ...string) (Chosen, error) {
	lead := d.flushed()
	text := lead
	if !strings.HasPrefix(lead, d.head) {
		text = d.head + lead
	}
	return d.tty.choose(ctx, Query{Text: text, About: about, Question: question, Answers: words}, lead)
}

// line draws a line that may end in foreign text.
func (d *dialog) line(text string) string {
	v := view{width: d.v.width}
	v.line(text)
	return v.b.String()
}

// maxNamed is how many columns are shown of what the server was asked for.
const maxNamed = 40

// heading says who asks and in whose words.
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
