package serverscmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/trust"
	"github.com/toolreg/toolreg/internal/ui"
)

// maxDescription is the maximum size of a server.json, in bytes.
const maxDescription = 1 << 20

// describedOptions are the options of add for a server of a registry or a file.
type describedOptions struct {
	as, runtime string
	set         []string // NAME=VALUE
}

// described is a server that is described by a registry or a file.
type described struct {
	*mcpregistry.Entry
	from     settings.From // Registry and Name are set
	source   string        // for messages: the registry or the file
	bundle   *openBundle   // nil = none
	warnings []string      // what the person should know before it is added
}

// isDescribed reports whether an argument names a server of a registry or a file with its
// description.
func isDescribed(arg string) bool {
	return isBundle(arg) || strings.HasSuffix(arg, ".json") || strings.ContainsAny(arg, "/\\") && !strings.HasPrefix(arg, "{") && !strings.Contains(arg, "://")
}

// addDescribed adds a server of a registry or of a file.
func addDescribed(ctx context.Context, e *cli.Env, t *target, o *describedOptions, arg string) error {
	given, err := parseGiven(o.set)
	if err != nil {
		return err
	}
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	d, err := find(ctx, e, s, arg)
	if err != nil {
		return err
	}
	defer func() { d.bundle.close() }()
	name := o.as
	if name == "" {
		name = d.Server.Short()
	}
	if err := settings.CheckServerName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another name with --as"}
	}
	file, err := settingsfile.Path(e, t.scope)
	if err != nil {
		return err
	}
	if err := isFree(file, name); err != nil {
		return err
	}
	secrets, err := e.Config.Folders.Secrets()
	if err != nil {
		return err
	}
	in := &installation{described: d, settings: s, file: file, verb: "adding", name: name, given: given, secrets: secrets}
	if err := in.choose(ctx, e, o.runtime); err != nil {
		return err
	}
	if err := in.confirm(ctx, e, in.about(e), "Add it?"); err != nil {
		return err
	}
	if err := in.write(ctx, e, t); err != nil {
		return err
	}
	return remember(ctx, e, d)
}

// isFree returns an error if a settings file already has an entry of a name.
func isFree(file, name string) error {
	data, err := edit.Read(file)
	if err != nil {
		return err
	}
	switch _, err := edit.Entry(file, data, name); {
	case err == nil:
		return &cli.UsageError{Err: fmt.Errorf("server %q %w in %s", name, edit.ErrServerExists, file), Hint: "give another name with --as, or run toolreg servers upgrade " + cli.Quote(name)}
	case !errors.Is(err, edit.ErrNoServer):
		return err
	}
	return nil
}

// parseGiven reads the values of --set.
func parseGiven(set []string) (serverjson.Given, error) {
	given := serverjson.Given{}
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, &cli.UsageError{Err: errors.New("--set takes NAME=VALUE")}
		}
		given[name] = append(given[name], value)
	}
	return given, nil
}

// find gets the description that an argument names, and refuses a deleted version.
func find(ctx context.Context, e *cli.Env, s *settings.Settings, arg string) (*described, error) {
	switch {
	case isBundle(arg):
		return describedByBundle(ctx, e, s, arg)
	case strings.HasSuffix(arg, ".json"):
		return describedByFile(e, arg)
	}
	name, version, found := strings.Cut(arg, "@")
	switch {
	case !found:
		version = mcpregistry.Latest
	case version == "":
		return nil, &cli.UsageError{Err: fmt.Errorf("%s: the version is missing", arg), Hint: "without @ it is the latest one"}
	}
	if err := serverjson.CheckName(name); err != nil {
		return nil, &cli.UsageError{Err: err, Hint: "toolreg servers find searches for names"}
	}
	registries, err := registriesOf(ctx, e, s)
	if err != nil {
		return nil, err
	}
	return describedBy(ctx, registries, name, version)
}

// describedBy asks registries in their order. One that fails ends the search, because a later
// one may have another server of that name.
func describedBy(ctx context.Context, registries []*mcpregistry.Registry, name, version string) (*described, error) {
	var missing error
	for _, r := range registries {
		entry, err := r.Get(ctx, name, version)
		if errors.Is(err, registry.ErrNotFound) {
			missing = err
			continue
		}
		if err != nil {
			return nil, err
		}
		d := &described{Entry: entry, source: r.URL, from: settings.From{Registry: r.URL, Name: name}}
		return d, d.checkStatus()
	}
	return nil, missing
}

func (d *described) checkStatus() error {
	about := d.Server.Name + " " + d.Server.Version
	message := ""
	if d.StatusMessage != "" {
		message = ": " + d.StatusMessage
	}
	switch d.Status {
	case mcpregistry.Deleted:
		return &serverjson.RefusedError{Reason: about + " was deleted by its publisher" + message}
	case mcpregistry.Deprecated:
		d.warnings = append(d.warnings, "it is deprecated"+message)
	}
	return nil
}

func describedByFile(e *cli.Env, name string) (*described, error) {
	path := e.Config.Absolute(name)
	f, err := trust.Read(path, maxDescription)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no file %s", name)
		}
		return nil, &cli.UsageError{Err: err}
	}
	server, err := serverjson.Parse(f.Data)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("%s is not a server.json: %w", name, err)}
	}
	return &described{Entry: &mcpregistry.Entry{Server: server, Status: mcpregistry.Active}, source: path, from: settings.From{Name: server.Name}}, nil
}

// installation is a described server with the way to run it and its values.
type installation struct {
	*described
	settings *settings.Settings
	file     string           // with the entry
	was      *settings.Server // that is upgraded; nil = it is added
	verb     string           // for messages, such as "adding"
	name     string           // of the entry
	way      *serverjson.Way
	given    serverjson.Given
	plan     *serverjson.Plan
	secrets  *state.Dir // where secrets are kept
	passed   []string   // ways that cannot be used, and why
	lacks    []string   // options of the command line that are missing because nobody can be asked
}

// options are those of the translation.
func (in *installation) options(e *cli.Env) serverjson.Options {
	spec := process.Spec{Env: e.Config.Environ, Dir: e.Config.Dir}
	return serverjson.Options{
		Has: func(program string) bool {
			spec.Argv = []string{program}
			_, err := spec.Program()
			return err == nil
		},
		Keep: in.reference,
	}
}

// reference returns the reference to the file of a secret.
func (in *installation) reference(name string) string {
	return "file:" + serverjson.Literal(filepath.Join(in.secrets.Path, secretName(in.file, in.name, name)))
}

// choose chooses the way to run the server and makes the plan. It asks the person for what
// is not given.
func (in *installation) choose(ctx context.Context, e *cli.Env, runtime string) error {
	var fitting []serverjson.Way
	for _, way := range in.Server.Ways() {
		if runtime == "" || way.Runtime == runtime {
			fitting = append(fitting, way)
		}
	}
	switch {
	case len(fitting) == 0 && runtime != "":
		var known []string
		for _, way := range in.Server.Ways() {
			known = append(known, way.Runtime)
		}
		return &cli.UsageError{Err: fmt.Errorf("%s cannot be run by --runtime %s", in.Server.Name, runtime), Hint: "it has " + listed(known)}
	case len(fitting) == 0:
		return &serverjson.RefusedError{Reason: in.Server.Name + " names neither a package nor an address", Advice: in.Server.WebsiteURL}
	}
	usable, refused := in.usable(e, fitting)
	switch {
	case len(usable) == 0:
		return fmt.Errorf("%s %s: %w", in.Server.Name, in.Server.Version, refused)
	case len(usable) == 1 || runtime != "":
		in.way = &usable[0]
	default:
		if err := in.chooseWay(ctx, e, usable); err != nil || in.way == nil {
			return err
		}
	}
	if err := in.openWay(ctx, e); err != nil {
		return err
	}
	if in.was != nil {
		in.dropUnknown()
	}
	return in.complete(ctx, e)
}

// usable returns the ways whose packages and addresses can be used, and why the others cannot,
// which is noted if there is one that can.
func (in *installation) usable(e *cli.Env, ways []serverjson.Way) (usable []serverjson.Way, refused error) {
	var all serverjson.RefusedError
	for _, way := range ways {
		_, err := way.Plan(nil, in.options(e))
		r, ok := errors.AsType[*serverjson.RefusedError](err)
		if !ok {
			usable = append(usable, way)
			continue
		}
		in.passed = append(in.passed, fmt.Sprintf("%s %s is passed over: %v", way.Runtime, way.Origin(), err))
		all.Reason, all.Advice = strings.TrimPrefix(all.Reason+"; "+r.Reason, "; "), r.Advice
	}
	return usable, &all
}

func (in *installation) chooseWay(ctx context.Context, e *cli.Env, ways []serverjson.Way) error {
	var names, lines []string
	for _, way := range ways {
		if !slices.Contains(names, way.Runtime) {
			names = append(names, way.Runtime)
			lines = append(lines, fmt.Sprintf("  %-7s %s", way.Runtime, ui.Line(way.Origin())))
		}
	}
	if len(names) == 1 {
		in.way = &ways[0]
		return nil
	}
	tty, err := e.Person.Open()
	if err != nil || e.IO.JSON {
		in.lacks = append(in.lacks, "--runtime "+strings.Join(names, "|"))
		return nil
	}
	defer tty.Close()
	line, err := tty.Ask(ctx, fmt.Sprintf("\n%s can be run in several ways:\n%s\nWhich one?\n> ", ui.Line(in.Server.Name), strings.Join(lines, "\n")))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(ways, func(w serverjson.Way) bool { return w.Runtime == strings.TrimSpace(line) })
	if i < 0 {
		return fmt.Errorf("%w: you chose none; nothing was written", registry.ErrDenied)
	}
	in.way = &ways[i]
	return nil
}

// complete makes the plan, and asks for the values that it lacks.
func (in *installation) complete(ctx context.Context, e *cli.Env) error {
	if err := in.makePlan(e); err != nil || len(in.plan.Missing) == 0 {
		return err
	}
	tty, err := e.Person.Open()
	if err != nil || e.IO.JSON {
		for _, missing := range in.plan.Missing {
			in.lacks = append(in.lacks, "--set "+cli.Quote(missing.Name+"="+placeholder(missing)))
		}
		return nil
	}
	defer tty.Close()
	if err := in.fill(ctx, e, tty); err != nil {
		return err
	}
	return in.makePlan(e)
}

func (in *installation) makePlan(e *cli.Env) error {
	plan, err := in.way.Plan(in.given, in.options(e))
	if wrong, ok := errors.AsType[*serverjson.ValueError](err); ok {
		return &args.Error{Arg: wrong.Name, Message: wrong.Reason}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", in.Server.Name, in.Server.Version, err)
	}
	in.plan = plan
	return nil
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

// fill asks for the values by a form.
func (in *installation) fill(ctx context.Context, e *cli.Env, tty *ui.TTY) error {
	needed, more := &form.Form{}, &form.Form{}
	for _, input := range in.way.Inputs() {
		if _, given := in.given[input.Name]; given {
			continue
		}
		field := fieldOf(input)
		if input.Required && input.Default == "" {
			needed.Fields = append(needed.Fields, field)
		} else {
			more.Fields = append(more.Fields, field)
		}
	}
	with := func(filled *ui.Filled) *installation {
		next := *in
		next.given = maps.Clone(in.given)
		for name, value := range filled.Values {
			next.given[name] = textsOf(value)
		}
		return &next
	}
	filled, err := tty.AskParams(ctx, ui.ParamsForm{
		Tool: in.Server.Name, Description: in.Server.Description, Needed: needed, More: more, Subject: &ui.Subject{Noun: "value", Enter: "continues"},
		Line: func(filled *ui.Filled) string {
			next := with(filled)
			if err := next.makePlan(e); err != nil {
				return err.Error()
			}
			return runsLine(next.plan)
		},
	})
	if errors.Is(err, ui.ErrNoAnswer) {
		return fmt.Errorf("%w: you canceled; nothing was written", registry.ErrDenied)
	}
	if err != nil {
		return err
	}
	in.given = with(filled).given
	return nil
}

// fieldOf returns the field of a form for an input.
func fieldOf(in serverjson.Input) form.Field {
	f := form.Field{Name: in.Name, Description: in.Description, Kind: form.Text, Required: in.Required && in.Default == "", Secret: in.Secret}
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

// textsOf returns the values of an answer as text.
func textsOf(value json.RawMessage) []string {
	v, err := jsonx.Parse(value, jsonx.Options{})
	if err != nil {
		return nil
	}
	if v.Is(jsonx.Array) {
		var out []string
		for _, item := range v.Items {
			out = append(out, textOf(item))
		}
		return out
	}
	return []string{textOf(v)}
}

func textOf(v *jsonx.Value) string {
	if v.Is(jsonx.String) {
		return v.Text()
	}
	return string(v.JSON())
}

// isPlainOption reports whether a word with = needs no quotes.
func isPlainOption(word string) bool {
	name, value, ok := strings.Cut(word, "=")
	return ok && name != "" && value != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("@.,:/_=-", r)
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

// about describes the server for the question.
func (in *installation) about(e *cli.Env) string {
	var b strings.Builder
	row := func(title, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", title, ui.Line(value))
		}
	}
	fmt.Fprintf(&b, "%s %s\n", ui.Line(in.Server.Name), ui.Line(in.Server.Version))
	row("description", in.Server.Description)
	row("publisher", strings.TrimPrefix(in.Server.Namespace()+", "+in.source, ", "))
	row("repository", in.Server.Repository.URL)
	if !in.Published.IsZero() {
		row("published", in.Published.Format("2006-01-02"))
	}
	if in.plan != nil {
		if in.plan.URL != "" {
			row("address", runsLine(in.plan))
		} else {
			row("command", runsLine(in.plan))
		}
		if in.was == nil { // else only what changes is shown
			for _, v := range in.plan.Env {
				row("variable", v.Name+"="+shownValue(in.plan, v))
			}
			for _, v := range in.plan.Headers {
				row("header", v.Name+": "+shownValue(in.plan, v))
			}
		}
		for _, input := range in.way.Inputs() {
			if len(input.Choices) > 0 {
				row("choices", input.Name+": "+strings.Join(input.Choices, ", "))
			}
		}
		for _, note := range append(slices.Clone(in.plan.Notes), in.passed...) {
			row("note", note)
		}
	}
	for _, warning := range append(in.warnings, seenBefore(e, in.described)...) {
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
func (in *installation) confirm(ctx context.Context, e *cli.Env, about, question string) error {
	yes := e.Config.Globals.Yes
	tty, err := e.Person.Open()
	if yes || err != nil || e.IO.JSON {
		if err == nil {
			_ = tty.Close() // nothing was asked
		}
		if !e.IO.JSON && !e.IO.Quiet {
			e.IO.Note(about)
		}
		if !yes {
			in.lacks = append(in.lacks, "--yes")
		}
		if len(in.lacks) > 0 {
			return &cli.NoTerminalError{What: in.verb + " " + in.Server.Name, Instead: "or give " + strings.Join(in.lacks, " ")}
		}
		return nil
	}
	defer tty.Close()
	agreed, err := cli.AskYes(ctx, tty, ui.Query{Text: "\n" + about, About: "", Question: question})
	switch {
	case err != nil && !errors.Is(err, ui.ErrNoAnswer):
		return err
	case !agreed:
		return fmt.Errorf("%w: you said no; nothing was written", registry.ErrDenied)
	}
	return nil
}

// write stores the secrets and writes the entry.
func (in *installation) write(ctx context.Context, e *cli.Env, t *target) error {
	entry, err := in.entry()
	if err != nil {
		return err
	}
	undo, err := in.store()
	if err != nil {
		return err
	}
	all := additions{edit.Change{Name: in.name, Entry: entry}}
	c := change{action: "added", names: []string{in.name}, files: []string{in.file}, apply: all.apply, test: !t.noTest && !e.Config.Globals.Cached, runs: runsLine(in.plan)}
	err = c.run(ctx, e, in.settings)
	if isFree(in.file, in.name) == nil { // it was not written
		err = errors.Join(err, undo())
	}
	return err
}

// entry returns the entry of the settings.
func (in *installation) entry() (json.RawMessage, error) {
	p := in.plan
	from, err := in.fromEntry()
	if err != nil {
		return nil, err
	}
	return encodeEntry(serverEntry{Type: p.Type, Command: p.Command, Args: p.Args, URL: p.URL, Env: pairsJSON(p.Env), Headers: pairsJSON(p.Headers), From: from})
}

// fromEntry returns the from entry, with the given values. Secrets are replaced by the
// references to their files.
func (in *installation) fromEntry() (json.RawMessage, error) {
	secret := map[string]bool{}
	for _, input := range in.way.Inputs() {
		secret[input.Name] = input.Secret
	}
	values := map[string][]string{}
	for name, list := range in.given {
		for _, value := range list {
			notation := serverjson.Notation(value)
			if secret[name] && !serverjson.IsReference(value) && value != "" {
				in.plan.Secrets = append(in.plan.Secrets, serverjson.Secret{Name: name, Text: value})
				notation = in.reference(name)
			}
			values[name] = append(values[name], notation)
		}
	}
	return encodeEntry(struct {
		Registry string              `json:"registry,omitempty"`
		Name     string              `json:"name"`
		Version  string              `json:"version"`
		Runtime  string              `json:"runtime"`
		Bundle   string              `json:"bundle,omitempty"`
		Values   map[string][]string `json:"values,omitempty"`
	}{in.from.Registry, in.Server.Name, in.Server.Version, in.way.Runtime, in.from.Bundle, values})
}

// pairsJSON returns a JSON object of pairs in their order; nil if there are none.
func pairsJSON(pairs []serverjson.Pair) json.RawMessage {
	if len(pairs) == 0 {
		return nil
	}
	var b bytes.Buffer
	for i, p := range pairs {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(jsonx.Quote(p.Name) + ":" + jsonx.Quote(p.Value))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// secretName returns the name of the file in which a secret of a server is kept.
func secretName(file, server, name string) string {
	return secretPrefix(file, server) + strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
}

// secretPrefix begins the names of all secrets of a server. Servers of different settings
// files can have the same name. The names of servers do not contain "+".
func secretPrefix(file, server string) string {
	sum := sha256.Sum256([]byte(file))
	return server + "+" + hex.EncodeToString(sum[:4]) + "+"
}

// store unpacks the bundle and writes the secrets, and returns a function that undoes both.
func (in *installation) store() (undo func() error, err error) {
	undo, err = in.unpack()
	for _, s := range in.plan.Secrets {
		if err != nil {
			break
		}
		name, before := secretName(in.file, in.name, s.Name), undo
		was, _ := in.secrets.Read(name) // nil if there is none
		undo = func() error {
			if was != nil {
				return errors.Join(in.secrets.Put(name, was), before())
			}
			return errors.Join(os.Remove(filepath.Join(in.secrets.Path, name)), before())
		}
		if err = in.secrets.Put(name, []byte(s.Text+"\n")); err != nil {
			undo, err = before, fmt.Errorf("storing a secret: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

// forgetSecrets removes the secrets of a server.
func forgetSecrets(e *cli.Env, file, server string) error {
	dir, err := e.Config.Folders.Secrets()
	if err != nil {
		return nil // then none are stored
	}
	names, err := dir.Names(secretPrefix(file, server), "")
	for _, name := range names {
		err = errors.Join(err, os.Remove(filepath.Join(dir.Path, name)))
	}
	return err
}
