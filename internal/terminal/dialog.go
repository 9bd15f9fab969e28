package terminal

import (
	"context"
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
type Reply int

// The replies. The zero value declines.
const (
	Decline Reply = iota
	Cancel        // no answer: end of input, or put off
	Accept
)

// dialog is the work on one question.
type dialog struct {
	tty  *TTY
	open func(context.Context, string) error // nil: the person does it
	q    Asked
	v    *view
}

// flushed returns what was drawn since.
func (d *dialog) flushed() string {
	text := d.v.b.String()
	d.v.b.Reset()
	return text
}

// choose asks for one of a few words by its letter; nothing typed asks again.
// Three answers that are none of them are no.
func (d *dialog) choose(ctx context.Context, question string, words ...string) (string, error) {
	text := prompt(question, words)
	shown := d.flushed() + text
	for range attempts {
		line, err := d.tty.ask(ctx, shown, 0)
		if err != nil {
			return "", err
		}
		if i := answered(line, words); i >= 0 {
			return words[i], nil
		}
		shown = wrongAnswer + text
	}
	return "no", nil
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
		d.v.printf("In its words (not checked):")
		d.v.quote(d.q.Message)
	}
}
