package asking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// ParamsForm asks for missing params of a call.
type ParamsForm struct {
	Tool, Description string // foreign text
	Needed, More      *form.Form
	// Subject replaces "params of a call" in the wording; nil means they are.
	Subject *Subject
	// ReadFile reads the file of an answer @FILE.
	ReadFile func(name string) ([]byte, error)
	// Line returns the command line for the call with these answers.
	Line func(*Filled) string
}

// Subject is what a [ParamsForm] asks for, if it is not the params of a call.
type Subject struct {
	Noun  string // such as "value"
	Enter string // what Enter does at the end, such as "continues"
}

// Filled holds the answers to a [ParamsForm].
type Filled struct {
	Names  []string // of the params, in the order of the answers
	Values map[string]json.RawMessage
	Files  map[string]string // files from which values were read, by param
}

func (f *Filled) set(name string, value json.RawMessage, file string) {
	if _, again := f.Values[name]; !again {
		f.Names = append(f.Names, name)
	}
	f.Values[name] = value
	delete(f.Files, name)
	if file != "" {
		f.Files[name] = file
	}
}

func (f *Filled) drop(name string) {
	f.Names = slices.DeleteFunc(f.Names, func(n string) bool { return n == name })
	delete(f.Values, name)
	delete(f.Files, name)
}

// Commands that can be typed instead of a param's name once all required params
// are set.
const editWord = "edit"

// Params asks for the required params one by one, then for others that the
// person names, until they press Enter. The error is the cause of ctx, or wraps
// [ui.ErrNoAnswer] if the person gave up.
func Params(ctx context.Context, tty *ui.TTY, q ParamsForm) (*Filled, error) {
	turn := tty.Begin()
	defer turn.End()
	d := dialog{turn: turn, q: ask.Elicitation{Form: q.Needed}, v: tty.View(), readFile: q.ReadFile}
	if q.Subject == nil {
		q.Subject = &Subject{Noun: "param", Enter: "runs the call"}
	}
	heading := "\n%s requires more %ss."
	if len(q.Needed.Fields) == 0 {
		heading = "\n%s takes optional %ss."
	}
	d.noun = q.Subject.Noun
	d.v.Printf(heading, ui.Cut(ui.Line(q.Tool), max(d.v.Width-26, 20)), d.noun)
	if about := text.FirstSentence(q.Description); about != "" {
		d.v.Prose(about)
	}
	d.v.Printf("@FILE reads the value from a file. Ctrl-D cancels.")
	filled := &Filled{Values: map[string]json.RawMessage{}, Files: map[string]string{}}
	for i := range q.Needed.Fields {
		if err := d.param(ctx, &q.Needed.Fields[i], i, filled); err != nil {
			return nil, err
		}
	}
	return filled, d.more(ctx, &q, filled)
}

// param asks for one param and suggests its previous value.
func (d *dialog) param(ctx context.Context, f *form.Field, i int, filled *Filled) error {
	d.file = ""
	before := filled.Values[f.Name]
	value, err := d.field(ctx, f, i, before)
	if _, refused := errors.AsType[*refusal](err); refused {
		return fmt.Errorf("%w: canceled", ui.ErrNoAnswer)
	}
	switch {
	case err != nil:
		return err
	case value == nil:
		filled.drop(f.Name)
	case d.file != "" || !bytes.Equal(value, before): // otherwise Enter kept the previous value
		filled.set(f.Name, value, d.file)
	}
	return nil
}

// more shows the call and asks what to change.
func (d *dialog) more(ctx context.Context, q *ParamsForm, filled *Filled) error {
	names := make([]string, len(q.More.Fields))
	for i := range q.More.Fields {
		names[i] = ui.Line(q.More.Fields[i].Name)
	}
	hint := "Enter " + q.Subject.Enter
	if len(names) > 0 {
		hint += ", the name of a " + d.noun + " sets it"
	}
	if len(q.Needed.Fields) > 0 {
		hint += ", " + editWord + " changes your answers"
	}
	for {
		d.v.Printf("")
		d.v.Row([]ui.Span{{Text: ui.Line(q.Line(filled))}})
		if len(names) > 0 {
			for _, row := range ui.WrapSpans(
				[]ui.Span{{Text: "Optional " + d.noun + "s: " + strings.Join(names, ", ")}}, max(d.v.Width-1, 20)) {
				d.v.Printf("%s", ui.Paint(row, false))
			}
		}
		d.v.Printf("(%s)", hint)
		line, err := d.turn.Ask(ctx, d.v.Take()+"> ")
		if err != nil {
			return err
		}
		if done, err := d.change(ctx, q, line, filled); done || err != nil {
			return err
		}
	}
}

// change handles what was typed at the prompt of more.
func (d *dialog) change(ctx context.Context, q *ParamsForm, typed string, filled *Filled) (done bool, err error) {
	if typed == "" {
		return true, nil
	}
	if typed == editWord {
		for i := range q.Needed.Fields {
			if err := d.param(ctx, &q.Needed.Fields[i], i, filled); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	key, value, given := strings.Cut(typed, "=")
	f := q.field(strings.TrimSpace(key))
	switch {
	case f == nil:
		d.v.Line("Unknown " + d.noun + " " + name(key) + ".")
		return false, nil
	case !given:
		return false, d.param(ctx, f, -1, filled)
	}
	read, err := d.readAnswer(f, strings.TrimSpace(value))
	if err != nil {
		d.v.Line("Please try again: " + ui.Line(err.Error()) + ".")
		return false, nil
	}
	filled.set(f.Name, read, d.file)
	return false, nil
}

func (q *ParamsForm) field(name string) *form.Field {
	for _, fields := range [][]form.Field{q.Needed.Fields, q.More.Fields} {
		if i := slices.IndexFunc(fields, func(f form.Field) bool { return f.Name == name }); i >= 0 {
			return &fields[i]
		}
	}
	return nil
}

// readAnswer reads the answer for a field. @FILE means the content of the file, whose
// name is stored; @@ means @.
func (d *dialog) readAnswer(f *form.Field, typed string) (json.RawMessage, error) {
	d.file = ""
	file, named := strings.CutPrefix(typed, "@")
	if strings.ContainsRune(typed, '\x1b') { // these keys insert sequences such as ^[[A, which are never intended
		return nil, errors.New("arrow and function keys cannot be used here")
	}
	if d.readFile == nil || !named || f.Kind == form.Choice || f.Kind == form.Choices {
		return f.Read(typed)
	}
	if strings.HasPrefix(file, "@") {
		return f.Read(file)
	}
	data, err := d.readFile(file)
	if err != nil {
		return nil, err
	}
	d.file = file
	if f.Kind != form.Text {
		return f.Read(string(data))
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the file is not UTF-8")
	}
	value := json.RawMessage(jsonx.Quote(string(data)))
	return value, f.Check(value)
}
