// Package asking has the questions that a person is asked: about a call, of an MCP server, and for
// missing params. A question about a call is one value, [exec.Question]: [Terminal] asks it at the
// terminal, [Prompt] is for hosts and approval.command, [Text] for the form of a client, and [Body]
// with [Covers] for the console.
package asking

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/ui"
)

// Terminal asks the person at a terminal.
type Terminal struct {
	TTY *ui.TTY
	// Open opens a URL in the person's browser. nil means the person has to open it.
	Open func(context.Context, string) error
}

// Confirm asks whether a call may run. No answer, such as the end of input, means no. The error is
// the cause of ctx or that of an unusable terminal.
func (t *Terminal) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	turn := t.TTY.Begin()
	defer turn.End()
	query := t.query(&q)
	lead := query.Text
	for {
		chosen, err := turn.Choose(ctx, query, lead)
		if errors.Is(err, ui.ErrNoAnswer) {
			return exec.Answer{Choice: exec.No, Reason: err.Error()}, nil
		}
		if err != nil {
			return exec.Answer{}, err
		}
		choice := q.Choices[slices.Index(query.Answers, chosen.Word)]
		if choice != exec.Edit {
			return exec.Answer{Choice: choice, Said: chosen.Said}, nil
		}
		content, err := turn.Edit(ctx, q.Preview.FileName, q.Preview.NewContent)
		if err == nil || context.Cause(ctx) != nil {
			return exec.Answer{Choice: exec.Edit, Content: content}, context.Cause(ctx)
		}
		lead = ui.Line(err.Error()) + "\n"
	}
}

func (t *Terminal) query(q *exec.Question) ui.Query {
	out := ui.Query{Question: "Allow?"}
	for _, choice := range q.Choices {
		out.Answers = append(out.Answers, choice.String())
	}
	if slices.Contains(q.Choices, exec.AlwaysTool) {
		out.Same = map[string]string{exec.Always.String(): exec.AlwaysTool.String()}
	}
	v := t.TTY.View()
	question(v, q)
	out.Text = v.Take()
	about(v, q)
	out.About = v.Take()
	return out
}

// Elicit asks a question of an MCP server (elicitation, revision 2025-11-25). The server's text is
// marked as such and shown after a bar on each line, with invisible characters escaped. End of
// input cancels. The error is the cause of ctx, or that of an unusable terminal.
func (t *Terminal) Elicit(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	turn := t.TTY.Begin()
	defer turn.End()
	d := dialog{turn: turn, open: t.Open, q: e, v: t.TTY.View()}
	put := d.openAddress
	if e.Form != nil {
		put = d.fill
	}
	answer, err := put(ctx)
	if errors.Is(err, ui.ErrNoAnswer) {
		return ask.Answer{Action: ask.Cancel}, nil
	}
	return answer, err
}

// dialog is the state of one question.
type dialog struct {
	turn *ui.Turn
	open func(context.Context, string) error // nil means the person has to open it
	q    ask.Elicitation
	v    *ui.View
	head string // the server's question, drawn

	readFile func(name string) ([]byte, error) // reads the file of an answer @FILE; nil means not supported
	file     string                            // file of the last answer; "" if none
	noun     string                            // what is asked for, such as "param"
}

// choose asks for one of a few words after what was drawn. about is repeated
// each time the answers are offered.
func (d *dialog) choose(ctx context.Context, about, question string, words ...string) (ui.Chosen, error) {
	lead := d.v.Take()
	text := lead
	if !strings.HasPrefix(lead, d.head) {
		text = d.head + lead
	}
	return d.turn.Choose(ctx, ui.Query{Text: text, About: about, Question: question, Answers: words}, lead)
}

// line formats a line that may contain foreign text, cut to the screen.
func (d *dialog) line(text string) string {
	v := ui.View{Width: d.v.Width}
	v.Line(text)
	return v.Take()
}

// maxNamed is the maximum number of columns for what toolreg was doing.
const maxNamed = 40

// heading says which server asks, and that the text is not verified.
func (d *dialog) heading(wants string) {
	during := ""
	if d.q.During != "" {
		during = " during " + ui.Cut(ui.Line(d.q.During), maxNamed)
	}
	d.v.Printf("\nMCP server %s %s%s.", name(d.q.Server), wants, during)
	if strings.TrimSpace(d.q.Message) != "" {
		d.v.Printf("Message from the server (not verified):")
		d.v.Quote(d.q.Message)
	}
	d.head = d.v.String()
}

// openAddress shows a URL that a server wants opened, with its host on a
// separate line, and asks before opening it.
func (d *dialog) openAddress(ctx context.Context) (ask.Answer, error) {
	d.heading("wants you to open an address")
	u, err := url.Parse(d.q.URL)
	if err != nil || u.Host == "" {
		return ask.Answer{Action: ask.Decline}, nil
	}
	d.v.Printf("Address:")
	d.v.Quote(ui.Line(d.q.URL))
	d.v.Printf("Host:")
	d.v.Row([]ui.Span{{Text: ui.Line(u.Host), Style: ui.Bold}})
	d.warnOfHost(u)
	d.v.Printf("The server may learn what you do there. toolreg opens the address only if you agree.")
	words := []string{"yes", "myself", "cancel", "no"}
	if d.open == nil {
		words = words[1:]
	} else {
		d.v.Printf("yes opens it in the browser; myself lets you open it by hand")
	}
	d.head = d.v.String()
	about := d.line("Open " + ui.Line(d.q.URL) + " for MCP server " + name(d.q.Server))
	chosen, err := d.choose(ctx, about, "Open it?", words...)
	switch {
	case err != nil:
		return ask.Answer{}, err
	case chosen.Word == "cancel" || chosen.Word == "no":
		return answerOf(chosen), nil
	case chosen.Word == "yes":
		if err := d.open(ctx, u.String()); err != nil {
			d.v.Printf("%s; open the address above yourself.", ui.Line(err.Error()))
		}
	}
	return d.waitUntilDone(ctx, about)
}

// waitUntilDone waits until the person has finished at the URL, if the server
// reports that.
func (d *dialog) waitUntilDone(ctx context.Context, about string) (ask.Answer, error) {
	if d.q.Done == nil {
		return ask.Answer{Action: ask.Accept}, d.turn.Show(ctx, d.v.Take())
	}
	done := errors.New("the server reports that it is finished")
	ctx, stop := timing.Until(ctx, d.q.Done, done)
	defer stop()
	chosen, err := d.choose(ctx, about, "Finished there?", "yes", "cancel", "no")
	switch {
	case errors.Is(err, done):
		return ask.Answer{Action: ask.Accept}, nil
	case err != nil:
		return ask.Answer{}, err
	}
	return answerOf(chosen), nil
}

// answerOf returns what yes, cancel or no answers to a server.
func answerOf(chosen ui.Chosen) ask.Answer {
	switch chosen.Word {
	case "yes":
		return ask.Answer{Action: ask.Accept}
	case "cancel":
		return ask.Answer{Action: ask.Cancel}
	}
	return ask.Answer{Action: ask.Decline, Said: chosen.Said}
}

func (d *dialog) warnOfHost(u *url.URL) {
	host := u.Hostname()
	ascii, err := idna.Punycode.ToASCII(host)
	if err != nil {
		ascii = host
	}
	unicode, err := idna.Punycode.ToUnicode(host)
	if err != nil {
		unicode = host
	}
	if ascii != unicode {
		d.v.Printf("Note: the host contains non-ASCII letters, which can look like others:")
		d.v.Quote(ui.Line(ascii) + " is shown as " + ui.Line(unicode))
	}
	if u.Scheme == "http" {
		d.v.Printf("Note: it goes to a program on this machine, unencrypted.")
	}
	if strings.Count(host, ".") >= 4 {
		d.v.Printf("Note: the host has many parts; the last ones show who owns it.")
	}
}
