package asking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/ui"
)

// Commands that can be typed instead of an answer.
const (
	declineWord = "/decline"
	skipWord    = "/skip"
)

// fill asks for each field, shows what would be sent, and asks whether to send
// it.
func (d *dialog) fill(ctx context.Context) (ask.Answer, error) {
	d.heading("asks for input")
	fields := d.q.Form.Fields
	if len(fields) > 0 {
		d.v.Printf("Your answers are sent to the server. Do not enter passwords, keys or tokens.")
		d.v.Printf("%s refuses to answer, Ctrl-D dismisses the question, Ctrl-C cancels the call.", declineWord)
	}
	words, question := []string{"yes", "edit", "cancel", "no"}, "Send this?"
	if len(fields) == 0 {
		words, question = []string{"yes", "cancel", "no"}, "Agree?"
	}
	values := map[string]json.RawMessage{}
	for {
		err := d.fields(ctx, values)
		if refused, ok := errors.AsType[*refusal](err); ok {
			return ask.Answer{Action: ask.Decline, Said: refused.said}, nil
		}
		if err != nil {
			return ask.Answer{}, err
		}
		d.review(values)
		chosen, err := d.choose(ctx, d.about(values), question, words...)
		switch {
		case err != nil:
			return ask.Answer{}, err
		case chosen.Word == "yes":
			return ask.Answer{Action: ask.Accept, Content: d.q.Form.Encode(values)}, nil
		case chosen.Word != "edit":
			return answerOf(chosen), nil
		}
	}
}

// about describes in one line what would be sent or accepted.
func (d *dialog) about(values map[string]json.RawMessage) string {
	if len(d.q.Form.Fields) == 0 {
		return d.line("Answer MCP server " + name(d.q.Server) + ": " + ui.Line(d.q.Message))
	}
	var parts []string
	for _, f := range d.q.Form.Fields {
		if value := values[f.Name]; value != nil {
			parts = append(parts, ui.Line(f.Name)+"="+ui.Line(f.Show(value)))
		}
	}
	return d.line("Send to MCP server " + name(d.q.Server) + ": " + strings.Join(parts, ", "))
}

// refusal is the error for a field that the user refused to answer.
type refusal struct{ said string }

func (*refusal) Error() string { return "the user refused to answer" }

// fields asks for each field and stores the answers in values, which may have
// those of an earlier round.
func (d *dialog) fields(ctx context.Context, values map[string]json.RawMessage) error {
	for i := range d.q.Form.Fields {
		f := &d.q.Form.Fields[i]
		value, err := d.field(ctx, f, i, values[f.Name])
		if err != nil {
			return err
		}
		delete(values, f.Name)
		if value != nil {
			values[f.Name] = value
		}
	}
	return nil
}

func (d *dialog) review(values map[string]json.RawMessage) {
	fields := d.q.Form.Fields
	if len(fields) == 0 {
		return
	}
	d.v.Printf("\nThis will be sent to %s:", name(d.q.Server))
	if len(values) == 0 {
		d.v.Quote("(nothing; all fields are empty)")
	}
	for i := range fields {
		if value := values[fields[i].Name]; value != nil {
			d.v.Row([]ui.Span{{Text: ui.Line(fields[i].Name) + ": " + ui.Line(fields[i].Show(value))}})
		}
	}
}

// field asks for one field until the answer is valid. given is the answer of an
// earlier round, or nil. The value is nil if the field is skipped.
func (d *dialog) field(ctx context.Context, f *form.Field, i int,
	given json.RawMessage) (value json.RawMessage, err error) {
	suggestion := f.Default
	if given != nil {
		suggestion = given
	}
	d.describe(f, i, suggestion)
	shown := d.v.Take() + "> "
	ask := d.turn.Ask
	if f.Secret {
		ask = d.turn.AskHidden
	}
	for {
		line, err := ask(ctx, shown)
		if err != nil {
			return nil, err
		}
		word, said, _ := strings.Cut(line, " ")
		switch {
		case word == declineWord:
			return nil, &refusal{strings.TrimSpace(said)}
		case line == "" && suggestion != nil:
			return suggestion, nil
		case line == "" && !f.Required, line == skipWord && !f.Required:
			return nil, nil
		case line == "" && f.Kind != form.Choices:
			err = errors.New("an answer is required")
		default:
			value, err = d.readAnswer(f, line)
		}
		if err == nil {
			return value, nil
		}
		shown = "Please try again: " + ui.Line(err.Error()) + ".\n> "
	}
}

// describe shows what a field expects.
func (d *dialog) describe(f *form.Field, i int, suggestion json.RawMessage) {
	head, label := fmt.Sprintf("\n%d of %d:", i+1, len(d.q.Form.Fields)), ui.Line(f.Label())
	if i < 0 { // the only field
		head = "\n" + strings.ToUpper(d.noun[:1]) + d.noun[1:]
	}
	if ui.Width(head)+ui.Width(label) < d.v.Width {
		d.v.Printf("%s %s", head, label)
	} else { // a label that wraps could be mistaken for toolreg's own text
		d.v.Printf("%s", head)
		d.v.Row([]ui.Span{{Text: label}})
	}
	if f.Description != "" {
		d.v.Prose(f.Description)
	}
	for n, o := range f.Options {
		line := o.Label()
		if f.Numbered() {
			line = fmt.Sprintf("%d  %s", n+1, line)
		}
		d.v.Row([]ui.Span{{Text: ui.Line(line)}})
	}
	for _, line := range f.Nested {
		d.v.Prose(ui.Line(line))
	}
	if f.Example != "" {
		d.v.Quote("example: " + ui.Line(f.Example))
	}
	if f.Pattern != "" {
		d.v.Quote("pattern: " + ui.Line(f.Pattern))
	}
	d.v.Printf("%s", ui.Cut("("+d.hint(f, suggestion)+")", max(d.v.Width-1, 40)))
}

// hint says what a field accepts, and what Enter does.
func (d *dialog) hint(f *form.Field, suggestion json.RawMessage) string {
	hint, suggested := ui.Line(f.Expects()), ""
	if suggestion != nil {
		if suggested = ui.Line(f.Show(suggestion)); f.Secret {
			suggested = "what you gave"
		}
		if ui.Width(suggested) > maxSuggested {
			d.v.Quote("current value: " + suggested)
			suggested = "that"
		}
	}
	switch {
	case suggestion != nil && f.Required:
		return hint + "; Enter accepts " + suggested
	case suggestion != nil:
		return hint + "; Enter accepts " + suggested + ", " + skipWord + " leaves it out"
	case f.Required:
		return hint + "; required"
	}
	return hint + "; Enter skips it"
}

// maxSuggested is the maximum number of columns of a suggested value within one of
// our own lines.
const maxSuggested = 30
