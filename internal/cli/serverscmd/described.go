package serverscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// describedOptions are the options of add for a server of a registry or a file.
type describedOptions struct {
	as, runtime string
	set         []string // NAME=VALUE
}

func addDescribed(ctx context.Context, e *cli.Env, t *target, o *describedOptions, arg string) error {
	given, err := parseGiven(o.set)
	if err != nil {
		return err
	}
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	i := installer(e, s)
	d, err := i.Find(ctx, arg)
	if err != nil {
		return err
	}
	defer d.Close()
	name := cmp.Or(o.as, d.Server.Short())
	if err := table.CheckServerName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another name with --as"}
	}
	file, err := settingsfile.Path(e, t.scope)
	if err != nil {
		return err
	}
	if err := isFree(file, name); err != nil {
		return err
	}
	in, err := i.New(d, file, name, given)
	if err != nil {
		return err
	}
	q := &questions{Installation: in, verb: "adding"}
	if err := q.choose(ctx, e, o.runtime); err != nil {
		return err
	}
	if err := q.confirm(ctx, e, q.about(true), "Add it?"); err != nil {
		return err
	}
	if err := writeInstalled(ctx, e, t, s, in); err != nil {
		return err
	}
	return i.Remember(ctx, d)
}

// isFree returns an error if a settings file already has an entry of a name.
func isFree(file, name string) error {
	data, err := edit.Read(file)
	if err != nil {
		return err
	}
	switch _, err := edit.Entry(file, data, name); {
	case err == nil:
		return cli.Usage(fmt.Sprintf("server %q %v in %s", name, edit.ErrServerExists, file),
			"give another name with --as, or run toolreg servers upgrade "+cli.Quote(name))
	case !errors.Is(err, edit.ErrNoServer):
		return err
	}
	return nil
}

func parseGiven(set []string) (serverjson.Given, error) {
	given := serverjson.Given{}
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, cli.Usage("--set takes NAME=VALUE", "")
		}
		given[name] = append(given[name], value)
	}
	return given, nil
}

// writeInstalled stores the secrets and writes the entry.
func writeInstalled(ctx context.Context, e *cli.Env, t *target, s *settings.Settings, in *install.Installation) error {
	entry, err := in.Entry()
	if err != nil {
		return err
	}
	undo, err := in.Store()
	if err != nil {
		return err
	}
	c := t.adding(e, in.File, edit.Change{Name: in.Name, Entry: entry})
	c.runs = runsLine(in.Plan)
	err = c.run(ctx, e, s)
	if isFree(in.File, in.Name) == nil { // it was not written
		err = errors.Join(err, undo())
	}
	return err
}

// questions asks the person for what is missing in an installation.
type questions struct {
	*install.Installation
	verb  string   // for messages, such as "adding"
	lacks []string // options of the command line that are missing because nobody can be asked
}

// choose chooses how to run the server and makes the plan. If nobody can be asked, either may be
// missing, and confirm says so.
func (q *questions) choose(ctx context.Context, e *cli.Env, runtime string) error {
	ways, err := q.Ways(runtime)
	if err != nil {
		return err
	}
	way := &ways[0]
	if runtime == "" {
		if way, err = q.chooseWay(ctx, e, ways); err != nil || way == nil {
			return err
		}
	}
	if err := q.Use(ctx, *way); err != nil || len(q.Plan.Missing) == 0 {
		return err
	}
	tty, err := openTTY(e)
	if err != nil {
		for _, missing := range q.Plan.Missing {
			q.lacks = append(q.lacks, "--set "+cli.Quote(missing.Name+"="+placeholder(missing)))
		}
		return nil
	}
	defer tty.Close()
	if err := q.fill(ctx, tty); err != nil {
		return err
	}
	return q.MakePlan()
}

// chooseWay returns the way that the person wants; nil if nobody can be asked.
func (q *questions) chooseWay(ctx context.Context, e *cli.Env, ways []serverjson.Way) (*serverjson.Way, error) {
	var names, lines []string
	for _, way := range ways {
		if !slices.Contains(names, way.Runtime) {
			names = append(names, way.Runtime)
			lines = append(lines, fmt.Sprintf("  %-7s %s", way.Runtime, ui.Line(way.Origin())))
		}
	}
	if len(names) == 1 {
		return &ways[0], nil
	}
	tty, err := openTTY(e)
	if err != nil {
		q.lacks = append(q.lacks, "--runtime "+strings.Join(names, "|"))
		return nil, nil
	}
	defer tty.Close()
	line, err := tty.Ask(ctx, fmt.Sprintf("\n%s can be run in several ways:\n%s\nWhich one?\n> ",
		ui.Line(q.Server.Name), strings.Join(lines, "\n")))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ways, func(w serverjson.Way) bool { return w.Runtime == strings.TrimSpace(line) })
	if i < 0 {
		return nil, fmt.Errorf("%w: you chose none; nothing was written", registry.ErrDenied)
	}
	return &ways[i], nil
}

// placeholder says what a value looks like.
func placeholder(in serverjson.Input) string {
	switch {
	case in.Secret:
		return "env:VARIABLE"
	case len(in.Choices) > 0:
		return strings.Join(in.Choices, "|")
	}
	return strings.ToUpper(cmp.Or(in.Format, "value"))
}

func (q *questions) fill(ctx context.Context, tty *ui.TTY) error {
	needed, more := &form.Form{}, &form.Form{}
	for _, input := range q.Way.Inputs() {
		if _, given := q.Given[input.Name]; given {
			continue
		}
		field := fieldOf(input)
		if input.Required && input.Default == "" {
			needed.Fields = append(needed.Fields, field)
		} else {
			more.Fields = append(more.Fields, field)
		}
	}
	with := func(filled *asking.Filled) *install.Installation {
		next := *q.Installation
		next.Given = maps.Clone(q.Given)
		for name, value := range filled.Values {
			next.Given[name] = textsOf(value)
		}
		return &next
	}
	filled, err := asking.Params(ctx, tty, asking.ParamsForm{
		Tool: q.Server.Name, Description: q.Server.Description, Needed: needed,
		More: more, Subject: &asking.Subject{Noun: "value", Enter: "continues"},
		Line: func(filled *asking.Filled) string {
			next := with(filled)
			if err := next.MakePlan(); err != nil {
				return err.Error()
			}
			return runsLine(next.Plan)
		},
	})
	if errors.Is(err, ui.ErrNoAnswer) {
		return fmt.Errorf("%w: you canceled; nothing was written", registry.ErrDenied)
	}
	if err != nil {
		return err
	}
	q.Given = with(filled).Given
	return nil
}

func fieldOf(in serverjson.Input) form.Field {
	f := form.Field{
		Name:        in.Name,
		Description: in.Description,
		Kind:        form.Text,
		Required:    in.Required && in.Default == "",
		Secret:      in.Secret,
	}
	switch {
	case in.Secret && in.Argument:
		f.Description += "\nA secret: give a reference, env:VARIABLE."
	case in.Secret:
		f.Description += "\nA secret: give a reference, env:VARIABLE, file:PATH or cmd:COMMAND, or the secret itself, which is kept in a file that only you can read."
	case len(in.Choices) > 0:
		f.Kind = form.Choice
		for _, choice := range in.Choices {
			f.Options = append(f.Options, form.Option{Value: choice})
		}
	case in.Format == "number":
		f.Kind = form.Number
	case in.Format == "boolean":
		f.Kind = form.Boolean
	case in.Format == "filepath":
		f.Description += "\nA path."
	}
	if in.Placeholder != "" {
		f.Example = in.Placeholder
	}
	if in.Default != "" {
		f.Description += "\nDefault: " + in.Default
	}
	if in.Repeated {
		item := f
		f.Kind, f.Item, f.Options = form.List, &item, nil
	}
	return f
}

func textsOf(value json.RawMessage) []string {
	v, err := jsonx.Parse(value, jsonx.Options{})
	if err != nil {
		return nil
	}
	if v.Is(jsonx.Array) {
		var out []string
		for _, item := range v.Items {
			out = append(out, item.Plain())
		}
		return out
	}
	return []string{v.Plain()}
}

// isPlainOption reports whether a word with = needs no quotes.
func isPlainOption(word string) bool {
	name, value, ok := strings.Cut(word, "=")
	return ok && name != "" && value != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
			(r < '0' || r > '9') && !strings.ContainsRune("@.,:/_=-", r)
	})
}

// runsLine is the command line or the address of a plan, for people.
func runsLine(p *serverjson.Plan) string {
	if p.URL != "" {
		return serverjson.Denote(p.URL)
	}
	line := p.Command
	for _, word := range p.Args {
		if word = serverjson.Denote(word); !isPlainOption(word) {
			word = cli.Quote(word)
		}
		line += " " + word
	}
	return line
}

// about describes the server for the question, with or without its variables and headers.
func (q *questions) about(values bool) string {
	var b strings.Builder
	row := func(title, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", title, ui.Line(value))
		}
	}
	fmt.Fprintf(&b, "%s %s\n", ui.Line(q.Server.Name), ui.Line(q.Server.Version))
	row("description", q.Server.Description)
	row("publisher", strings.TrimPrefix(q.Server.Namespace()+", "+q.Source, ", "))
	row("repository", q.Server.Repository.URL)
	if !q.Published.IsZero() {
		row("published", q.Published.Format("2006-01-02"))
	}
	if p := q.Plan; p != nil {
		if p.URL != "" {
			row("address", runsLine(p))
		} else {
			row("command", runsLine(p))
		}
		if values {
			for _, v := range p.Env {
				row("variable", v.Name+"="+shownValue(p, v))
			}
			for _, v := range p.Headers {
				row("header", v.Name+": "+shownValue(p, v))
			}
		}
		for _, input := range q.Way.Inputs() {
			if len(input.Choices) > 0 {
				row("choices", input.Name+": "+strings.Join(input.Choices, ", "))
			}
		}
		for _, note := range append(slices.Clone(p.Notes), q.Notes...) {
			row("note", note)
		}
	}
	for _, warning := range q.Warnings {
		row("warning", warning)
	}
	return b.String()
}

// shownValue is a value for the question; a secret in a file is not shown.
func shownValue(p *serverjson.Plan, v serverjson.Pair) string {
	if slices.ContainsFunc(p.Secrets, func(s serverjson.Secret) bool { return s.Name == v.Name }) {
		return "(kept in " + strings.TrimPrefix(v.Value, "file:") + ")"
	}
	return serverjson.Denote(v.Value)
}

// confirm shows a change and asks. Without a terminal it needs --yes and everything that
// would have been asked for.
func (q *questions) confirm(ctx context.Context, e *cli.Env, about, question string) error {
	if !e.Config.Globals.Yes {
		if tty, err := openTTY(e); err == nil {
			defer tty.Close()
			return cli.AskToWrite(ctx, tty, ui.Query{Text: "\n" + about, Question: question})
		}
		q.lacks = append(q.lacks, "--yes")
	}
	if !e.IO.JSON && !e.IO.Quiet {
		e.IO.Note(about)
	}
	if len(q.lacks) > 0 {
		return cli.NoTerminal(q.verb+" "+q.Server.Name, "or give "+strings.Join(q.lacks, " "))
	}
	return nil
}
