package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// EncodeJSON encodes without HTML escapes and with invisible characters
// escaped.
func EncodeJSON(v any) ([]byte, error) {
	var data encoded
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return text.EscapeJSON(data), nil
}

// encoded collects a document. The encoder writes it in one piece, so that append allocates little
// more than its size.
type encoded []byte

func (d *encoded) Write(p []byte) (int, error) {
	*d = append(*d, p...)
	return len(p), nil
}

// PrintJSON prints one document, filtered by --jq. On a terminal it is
// indented.
func (o *IO) PrintJSON(v any) error { return o.printDocument(v, o.OutTTY) }

// Report prints a document with --json, and nothing else without it.
func (o *IO) Report(v any) error {
	if !o.JSON {
		return nil
	}
	return o.PrintJSON(v)
}

// PrintLine prints one document on one line, also on a terminal.
func (o *IO) PrintLine(v any) error { return o.printDocument(v, false) }

// printDocument prints one document, filtered by --jq.
func (o *IO) printDocument(v any, indented bool) error {
	data, err := EncodeJSON(v)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	if o.JQ != nil {
		return o.PrintFiltered(data)
	}
	return o.writeJSON(data, indented)
}

// PrintEncoded prints an encoded document: like [IO.PrintJSON] on a terminal, with its
// white space unchanged elsewhere.
func (o *IO) PrintEncoded(data []byte) error { return o.writeJSON(text.EscapeJSON(data), o.OutTTY) }

// writeJSON writes encoded and escaped JSON and a newline.
func (o *IO) writeJSON(data []byte, indented bool) error {
	// Programs that read JSON do not expect colors, even with --color always.
	switch color := o.OutTTY && o.Color(true); {
	case indented:
		return o.Out.WriteStyled(ui.EndLine(jsonText(data, color)))
	case color:
		return o.Out.WriteStyled(ui.EndLine(ui.Paint(jsonSpans(string(data)), true)))
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data, '\n')
	}
	_, err := o.Out.Write(data)
	return err
}

// Results returns the writer for the output of tools and servers. Pipes and files
// receive the bytes unchanged; for a terminal they are escaped.
func (o *IO) Results() io.Writer {
	if o.OutTTY {
		return o.Out
	}
	return o.Out.Unescaped()
}

// PrintFiltered prints encoded JSON filtered by --jq, which must be set.
func (o *IO) PrintFiltered(data []byte) error {
	return o.JQ.print(o.context(), o.Out, o.PrintEncoded, data)
}

// Note writes text for the person to stderr.
func (o *IO) Note(text string) { o.Screen.Note(text) }

// NoteJSON writes a line of JSON to stderr.
func (o *IO) NoteJSON(v any) {
	if line, err := EncodeJSON(v); err == nil {
		o.Note(string(line))
	}
}

// NoteSpans writes a line of styled text to stderr. Foreign text must have
// passed [ui.Line] or [ui.Visible].
func (o *IO) NoteSpans(spans ...ui.Span) {
	o.Screen.Styled(ui.Paint(spans, o.Color(o.ErrTTY)) + "\n")
}

// Notef prints a line on stderr about what was done. It prints nothing with --quiet,
// nor with --json, when stderr is JSON. Its arguments may be foreign text.
func (o *IO) Notef(format string, args ...any) {
	if !o.Quiet && !o.JSON {
		o.noteText(ErrorBody{Message: fmt.Sprintf(format, args...)})
	}
}

func (o *IO) live() {
	if o.Verbose {
		o.LogAt(slog.LevelDebug, false)
	}
	if o.ErrTTY && o.vars.Get("TERM") != "dumb" {
		o.Screen.Live(!o.Quiet)
	} else if o.Patience > 0 {
		o.Screen.Slow(o.Patience, func(waiting string) { o.Notef("waiting for %s", waiting) })
	}
}

// Announce is Notef for a line that is printed in any case.
func (o *IO) Announce(format string, args ...any) {
	o.noteText(ErrorBody{Message: fmt.Sprintf(format, args...)})
}

// Summary prints the number of results on stderr below the results, only on a
// terminal and not with --quiet.
func (o *IO) Summary(format string, args ...any) {
	if o.OutTTY && o.ErrTTY && !o.Quiet && !o.JSON {
		o.summary = fmt.Sprintf(format, args...)
	}
}

// Diagnose prints diagnostics on stderr without duplicates: warnings and
// errors, with --verbose also infos, with --quiet only errors.
func (o *IO) Diagnose(diags []registry.Diagnostic) {
	for _, d := range diags {
		if o.shows(d.Severity) {
			o.printDiagnostic(d)
		}
	}
}

// DiagnoseAll is like Diagnose but includes infos, unless --quiet is set.
func (o *IO) DiagnoseAll(diags []registry.Diagnostic) {
	for _, d := range diags {
		if o.shows(d.Severity) || !o.Quiet {
			o.printDiagnostic(d)
		}
	}
}

// Warn is like Diagnose, for a single diagnostic.
func (o *IO) Warn(d registry.Diagnostic) { o.Diagnose([]registry.Diagnostic{d}) }

// DiagnoseExcept prints diagnostics except the one about the failure of a source with
// which err ends, because err itself is printed too.
func (o *IO) DiagnoseExcept(diags []registry.Diagnostic, err error) {
	for _, d := range diags {
		if d.Code != "source_failed" || err == nil ||
			!strings.HasSuffix(err.Error(), WithoutSource(d.Message, d.Source)) {
			o.Warn(d)
		}
	}
}

func (o *IO) shows(s registry.Severity) bool {
	switch s {
	case registry.SeverityError:
		return true
	case registry.SeverityWarning:
		return !o.Quiet
	}
	return o.Verbose
}

func (o *IO) printDiagnostic(d registry.Diagnostic) {
	switch {
	case !o.reported.first(d):
	case o.Relay != nil:
		o.Relay(d)
	default:
		o.noteDiagnostic(d)
	}
}

// noteDiagnostic prints a diagnostic, even if it was printed before.
func (o *IO) noteDiagnostic(d registry.Diagnostic) {
	if o.jsonLog != nil {
		o.logLine(d.Severity, diagnosticText(d), d.Hint)
	} else if !o.JSON {
		o.NoteSpans(diagnosticSpans(d)...)
	} else {
		o.NoteJSON(map[string]registry.Diagnostic{"diagnostic": d})
	}
}

// logLine adds a line to the log in JSON.
func (o *IO) logLine(severity registry.Severity, message, hint string) {
	log := o.jsonLog
	if hint != "" {
		log = log.With("hint", hint)
	}
	switch severity {
	case registry.SeverityError:
		log.Error(message)
	case registry.SeverityWarning:
		log.Warn(message)
	default:
		log.Info(message)
	}
}

func diagnosticText(d registry.Diagnostic) string {
	message := NamingTool(d)
	if d.Source != "" && !namesSource(message, d.Source) {
		message = d.Source + ": " + message
	}
	return message
}

func diagnosticSpans(d registry.Diagnostic) []ui.Span {
	style := ui.Yellow
	switch d.Severity {
	case registry.SeverityError:
		style = ui.Red
	case registry.SeverityInfo:
		style = ui.Dim
	}
	if d.Code == settings.CodeProjectUntrusted && d.Hint != "" { // it comes before every command, so it takes one line
		d.Message, d.Hint = d.Message+"; "+d.Hint, ""
	}
	spans := []ui.Span{{Text: "toolreg: "}, {Text: string(d.Severity) + ":", Style: style},
		{Text: " " + Indent(ui.Visible(diagnosticText(d)))}}
	return append(spans, hintSpans(d.Hint)...)
}

// namesSource reports whether a message names its source: as mcp:fs or as server "fs",
// or for the source composite as the setting composites.
func namesSource(message, source string) bool {
	server, isServer := registry.ServerOf(source)
	return hasWord(message, source, true) || hasWord(message, source+"s", true) ||
		isServer && strings.Contains(message, strconv.Quote(server))
}

// WithoutSource returns the message of a failed source without the name of the source,
// for output next to that name.
func WithoutSource(message, source string) string {
	server, ok := registry.ServerOf(source)
	if !ok {
		server = source
	}
	for _, prefix := range []string{fmt.Sprintf("server %q: ", server), fmt.Sprintf("API %q: ", server), source + ": "} {
		message = strings.TrimPrefix(message, prefix)
	}
	return message
}

func hintSpans(hint string) []ui.Span {
	if hint == "" {
		return nil
	}
	return []ui.Span{{Text: "\n  "}, {Text: "hint:", Style: ui.Cyan}, {Text: " " + ui.Line(hint)}}
}

// Indent indents all lines of a text except the first, so that foreign text cannot
// look like output of toolreg itself.
func Indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  | ")
}

// finish prints the error, if any, and returns the exit code.
func (o *IO) finish(ctx context.Context, err error) int {
	if err == nil || o.pipe.IsBroken() && isCancelled(ctx, err) {
		return ExitOK
	}
	if exit, ok := err.(*ExitError); ok {
		return exit.Code
	}
	f := NewErrorBodyForPerson(ctx, err)
	if _, printed := err.(*exec.ToolError); printed && f.Exit == ExitToolError {
		return f.Exit
	}
	if o.JSON {
		o.NoteJSON(map[string]ErrorBody{"error": f})
	} else if f.Message = o.reported.new(f.Message); f.Message != "" {
		o.noteText(f)
	}
	return f.Exit
}

// NewErrorBodyForPerson is [NewErrorBody] with the id of the question about a call, which models
// are not told.
func NewErrorBodyForPerson(ctx context.Context, err error) ErrorBody {
	f := NewErrorBody(ctx, err)
	if e, ok := errors.AsType[*exec.NeedsConfirmation](err); ok && e.Kept != nil {
		f.Hint = strings.TrimPrefix(f.Hint+"; "+engine.AnswerHint(e.Kept), "; ")
	}
	return f
}

func (o *IO) noteText(f ErrorBody) {
	if o.jsonLog != nil {
		severity := registry.SeverityInfo
		if f.Exit != ExitOK {
			severity = registry.SeverityError
		}
		o.logLine(severity, f.Message, f.Hint)
		return
	}
	prefix := ui.Span{Text: "toolreg:"}
	if f.Exit != ExitOK {
		prefix.Style = ui.Red | ui.Bold
	}
	spans := []ui.Span{prefix, {Text: " " + Indent(ui.Visible(f.Message))}}
	o.NoteSpans(append(spans, hintSpans(f.Hint)...)...)
}

// HoldsDiagnostics reports whether JSON results include the diagnostics, which are
// then not printed on stderr. With --jq they are printed, because the filter could
// drop them.
func (o *IO) HoldsDiagnostics() bool { return o.JSON && o.JQ == nil }

// NamingTool returns the message of a diagnostic with the name of its tool, for text
// output. In JSON the name is a field.
func NamingTool(d registry.Diagnostic) string {
	if d.Tool == "" || hasWord(d.Message, d.Tool, false) {
		return d.Message
	}
	return d.Tool + ": " + d.Message
}

// hasWord reports whether a message contains a name as a word. If blanks is false, a
// quote or other punctuation has to delimit it, not a space, because a tool may be
// called "is".
func hasWord(message, name string, blanks bool) bool {
	isWord := func(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	// RuneError also means the end of the message.
	isBlank := func(r rune) bool { return r == ' ' || r == utf8.RuneError }
	for at := 0; ; {
		i := strings.Index(message[at:], name)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(message[:at+i])
		after, _ := utf8.DecodeRuneInString(message[at+i+len(name):])
		if !isWord(before) && !isWord(after) && (blanks || !isBlank(before) || !isBlank(after)) {
			return true
		}
		at += i + len(name)
	}
}

// PrintResult prints a result on stdout: with --json doc, else its table, on a terminal with the number
// of rows below it. noun is what a row is, such as "approval"; "" prints no number.
func (o *IO) PrintResult(doc any, t *ui.Table, noun string) error {
	switch {
	case o.JSON:
		return o.PrintJSON(doc)
	case noun != "" && len(t.Rows) == 0 && o.OutTTY:
		o.Notef("no %ss", noun)
	case noun != "":
		o.Summary("%s", text.Count(len(t.Rows), noun))
	}
	return o.PrintTable(t)
}

// PrintText prints a result on stdout: with --json doc, else a text.
func (o *IO) PrintText(doc any, text string) error {
	if o.JSON {
		return o.PrintJSON(doc)
	}
	_, err := io.WriteString(o.Out, text)
	return err
}

// PrintTable prints a table on stdout: in columns on a terminal, else with tabs.
func (o *IO) PrintTable(t *ui.Table) error {
	if o.OutTTY {
		return o.Out.WriteStyled(t.Text(o.Width(), o.Color(true)))
	}
	return o.Out.WriteStyled(t.Tabbed(o.Color(false)))
}
