package schemacmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/lint"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

const lintHelp = `With --lint nothing is declared; instead it reports what providers would reject
(error), what is ignored or had to be changed (warning), and advice (hint), for
the given format or for all. --strict then changes no schema, but makes warnings
count as errors. With --baseline findings that are in the file do not count;
--write-baseline writes the present ones to it.

With --explain each schema is shown as the tool has it and as it is declared.
`

// lintDocument is the JSON of schema --lint.
type lintDocument struct {
	OK       bool           `json:"ok"` // no errors and no warnings
	Errors   int            `json:"errors"`
	Warnings int            `json:"warnings"`
	Hints    int            `json:"hints"`
	Known    int            `json:"known,omitempty"` // findings left out, because the file of --baseline has them
	Findings []lint.Finding `json:"findings"`
}

func (o *options) printLint(ctx context.Context, e *cli.Env, root string, format provider.Format,
	defs []registry.Definition, unusable []lint.Finding, failed error) error {
	formats := []provider.Format{format}
	if o.all {
		formats = provider.Formats()
	}
	found := append(unusable, lint.Lint(formats, defs, o.Encode)...)
	known, err := o.knownFindings(ctx, e, root, found)
	if err != nil {
		return err
	}
	doc := lintDocument{Findings: cli.OrEmpty(lint.New(found, known))}
	doc.Known = len(found) - len(doc.Findings)
	for _, f := range doc.Findings {
		switch f.Severity {
		case registry.SeverityError:
			doc.Errors++
		case registry.SeverityWarning:
			doc.Warnings++
		default:
			doc.Hints++
		}
	}
	doc.OK = doc.Errors+doc.Warnings == 0
	switch err := e.IO.PrintText(doc, lintText(doc, len(defs))); {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case doc.Errors > 0, o.Encode.Strict && !doc.OK:
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	return nil
}

// baseline is the content of a file of --baseline. The output of --lint --json has
// these fields too.
type baseline struct {
	Findings *[]lint.Finding `json:"findings"`
}

// knownFindings returns the findings in the file of --baseline, which it writes
// first with --write-baseline.
func (o *options) knownFindings(ctx context.Context, e *cli.Env,
	root string, found []lint.Finding) ([]lint.Finding, error) {
	if o.baseline == "" {
		return nil, nil
	}
	if o.writeBaseline {
		found = cli.OrEmpty(found)
		content, err := json.MarshalIndent(baseline{&found}, "", "  ")
		if err != nil {
			return nil, err
		}
		if err := e.Config.WriteFile(root, o.baseline, append(text.EscapeJSON(content), '\n')); err != nil {
			return nil, &cli.UsageError{Err: fmt.Errorf("--baseline: %w", err), Hint: "name a file that can be written"}
		}
		return found, nil
	}
	content, err := e.Config.ReadFile(ctx, o.baseline, cli.MaxArgument)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--baseline: %w", err),
			Hint: "--write-baseline writes the present findings to it"}
	}
	var file baseline
	if err = jsonx.Unmarshal(text.WithoutMark(content), &file); err == nil && file.Findings == nil {
		err = errors.New("it has no list of findings")
	}
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--baseline: reading %s: %w", o.baseline, err),
			Hint: "--write-baseline writes the file anew"}
	}
	return *file.Findings, nil
}

// unusable returns a finding for each tool whose input schema is not valid, so that no
// provider gets it.
func (r *Request) unusable(reg *registry.Registry) []lint.Finding {
	var out []lint.Finding
	for _, h := range r.Hidden(reg.Hidden()) {
		if !errors.Is(h.Err, registry.ErrSchemaInvalid) || h.Kept || len(r.Tools) > 0 {
			continue
		}
		out = append(out, lint.Finding{Severity: registry.SeverityError, Code: "schema_invalid", Tool: h.Name,
			Message: "not declared for any provider: " + h.Reason, Hint: "exclude the tool, or fix it at the source"})
	}
	return out
}

// lintText returns a line for each finding and one with the totals.
func lintText(doc lintDocument, tools int) string {
	var b strings.Builder
	for _, f := range doc.Findings {
		severity := string(f.Severity)
		if f.Severity == registry.SeverityInfo {
			severity = "hint"
		}
		where := []string{severity}
		for _, part := range []string{strings.Join(f.Formats, ","), f.Tool, f.Pointer} {
			if part != "" {
				where = append(where, ui.Line(part))
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.Join(where, " "), ui.Line(f.Message))
	}
	fmt.Fprintf(&b, "%s: %s, %s, %s\n", text.Count(tools, "tool"), text.Count(doc.Errors, "error"),
		text.Count(doc.Warnings, "warning"), text.Count(doc.Hints, "hint"))
	if doc.Known > 0 {
		fmt.Fprintf(&b, "%s left out, because the baseline has them\n", text.Count(doc.Known, "finding"))
	}
	return b.String()
}

// explainDocument is the JSON of schema --explain.
type explainDocument struct {
	Format string             `json:"format"`
	Tools  []lint.Explanation `json:"tools"`
}

func printExplanations(ios *cli.IO, format provider.Format, defs []registry.Definition, opts provider.Options) error {
	list := lint.Explain(format, defs, opts)
	var b strings.Builder
	for _, e := range list {
		writeExplanation(&b, e)
	}
	return ios.PrintText(explainDocument{format.Name, cli.OrEmpty(list)}, b.String())
}

func writeExplanation(b *strings.Builder, e lint.Explanation) {
	b.WriteString(ui.Line(e.Tool))
	switch {
	case e.LeftOut != "":
		b.WriteString(": " + ui.Line(e.LeftOut) + "\n")
		return
	case e.Own == e.Declared || e.Declared == "":
		b.WriteString(": schema as it is\n")
	default:
		fmt.Fprintf(b, ": schema changed, declared as %s\n", e.Field)
	}
	for _, c := range e.Changes {
		b.WriteString("  " + ui.Line(c) + "\n")
	}
	if e.Declared != "" {
		if diff := udiff.Unified("own", "declared", e.Own, e.Declared); diff != "" {
			b.WriteString(cli.Block(diff))
		}
	}
}
