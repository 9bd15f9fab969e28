package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/terminal"
)

type auditOptions struct {
	since   string
	tool    string
	outcome string
	follow  bool
	lines   int
}

func newAuditCommand(a *app) *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the log of calls and refusals",
		Long: `Show the log of calls and refusals: one line each, with the time, the tool, what
was decided and by which rule, how it ended and how long it took. Params are in it
as a hash, and as they were only with the setting audit.params.

In a pipe each call is one line: time, tool, source, decision, rule, outcome,
code, milliseconds, bytes of params and bytes of the result, separated by tabs.
With --json it is one document; with --follow too, one object a line.
Exit codes: 0, 1 (the log cannot be read), 2.`,
		Example: `  toolreg audit --since 24h --outcome denied
  toolreg audit --tool 'github__*' --json
  toolreg audit --follow`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runAudit(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	o.narrowing(f)
	f.StringVar(&o.outcome, "outcome", "", "only this outcome (ok, error, denied, invalid, timeout, cancelled) or error `code`")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what is added, until interrupted")
	f.IntVarP(&o.lines, "lines", "n", -1, "only the last `N`; with --follow 10 where nothing else is said")
	return cmd
}

// narrowing defines the flags that audit and stats share.
func (o *auditOptions) narrowing(f *pflag.FlagSet) {
	f.StringVar(&o.since, "since", "", "only what is not older: a `time` such as 24h, 7d, 2006-01-02 or 2006-01-02T15:04:05Z")
	f.StringVar(&o.tool, "tool", "", "only tools of this name (`glob`)")
}

// filter tells which entries are wanted.
func (o *auditOptions) filter(now time.Time) (func(*audit.Entry) bool, error) {
	var since time.Time
	if o.since != "" {
		var err error
		if since, err = parseSince(o.since, now); err != nil {
			return nil, err
		}
	}
	if known := outcomeWords(); o.outcome != "" && !slices.Contains(known, o.outcome) {
		return nil, &usageError{err: fmt.Errorf("--outcome: unknown word %q", o.outcome), hint: "one of " + strings.Join(known, ", ")}
	}
	return func(e *audit.Entry) bool {
		return !e.Time.Before(since) &&
			(o.tool == "" || registry.MatchName(o.tool, e.Tool) || e.ServerTool != "" && registry.MatchName(o.tool, e.ServerTool)) &&
			(o.outcome == "" || o.outcome == string(e.Outcome) || o.outcome == e.Code)
	}, nil
}

// outcomeWords are the outcomes of calls and the codes of the errors behind them.
func outcomeWords() []string {
	var out []string
	for _, o := range audit.Outcomes() {
		out = append(out, string(o))
	}
	out = append(out, "tool_error", "failure", "interrupted")
	for _, c := range classes {
		if !slices.Contains(out, c.word) {
			out = append(out, c.word)
		}
	}
	return out
}

// parseSince reads a time that lies a duration back, or a date or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 100_000 {
			return now.Add(-time.Duration(n * float64(24*time.Hour))), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &usageError{err: fmt.Errorf("--since: %q is no time", text), hint: "such as 24h, 7d, 2006-01-02 or 2006-01-02T15:04:05Z"}
}

func runAudit(ctx context.Context, a *app, o *auditOptions) error {
	wanted, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	log, err := a.auditLog(s)
	if err != nil {
		return err
	}
	if o.follow && o.lines < 0 && o.since == "" {
		o.lines = 10
	}
	if out, ok := a.out.(*pipeWriter); ok && o.follow {
		defer out.watch()()
	}
	p := &auditPrinter{app: a, follow: o.follow, last: o.lines}
	damaged, err := log.Scan(ctx, audit.ScanOptions{Follow: o.follow, Current: p.current}, func(e audit.Entry) error {
		if !wanted(&e) {
			return nil
		}
		return p.visit(e)
	})
	if err == nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	a.tellDamaged(damaged)
	return err
}

// auditPrinter prints entries: all at once, or with --follow as they come.
type auditPrinter struct {
	app    *app
	follow bool
	last   int // of what was there, only so many; negative = all
	held   []audit.Entry
	live   bool
}

func (p *auditPrinter) visit(e audit.Entry) error {
	if p.live {
		return p.print([]audit.Entry{e})
	}
	if p.last >= 0 && len(p.held) > 2*p.last+1000 {
		p.held = slices.Clone(p.held[len(p.held)-p.last:])
	}
	p.held = append(p.held, e)
	return nil
}

// current prints what was there.
func (p *auditPrinter) current() error {
	p.live = true
	held := p.held
	p.held = nil
	if p.last >= 0 && len(held) > p.last {
		held = held[len(held)-p.last:]
	}
	if p.follow && len(held) == 0 {
		return nil
	}
	return p.print(held)
}

func (p *auditPrinter) print(entries []audit.Entry) error {
	a := p.app
	if a.globals.JSON && !p.follow {
		return a.printJSON(map[string][]audit.Entry{"entries": orEmpty(entries)})
	}
	if a.globals.JSON {
		for i := range entries {
			if err := a.printLine(entries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{header: []string{"TIME", "TOOL", "SOURCE", "DECISION", "RULE", "OUTCOME", "CODE", "MS", "PARAMS", "RESULT"},
		spare: []string{"RESULT", "PARAMS", "SOURCE", "CODE", "MS", "DECISION", "RULE"}}
	for i := range entries {
		e := &entries[i]
		when := e.Time.Format(time.RFC3339Nano)
		if a.outTTY {
			when = e.Time.Local().Format(time.DateTime)
		}
		t.add(when, e.Tool, e.Source, e.Decision, e.Rule, string(e.Outcome), e.Code,
			strconv.FormatFloat(e.DurationMs, 'f', -1, 64), strconv.Itoa(e.ParamsBytes), strconv.FormatInt(e.ResultBytes, 10))
	}
	if a.outTTY && p.follow {
		_, err := io.WriteString(a.out, followed(t.rows))
		return err
	}
	if a.outTTY && len(entries) == 0 {
		a.note("toolreg: no such calls in the log\n")
		return nil
	}
	return t.print(a)
}

// followed lays rows out that come one by one: what comes later is not known.
func followed(rows [][]string) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s  %-24s %-6s %-9s %8s ms  %s\n", r[0], r[1], r[3], r[5], r[7], r[4])
	}
	return b.String()
}

func (a *app) tellDamaged(n int) {
	if n > 0 {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "audit_damaged",
			Message: fmt.Sprintf("damaged lines of the audit log that were passed over: %d", n)})
	}
}

// maskedParams are params with what looks like a secret masked.
func maskedParams(params json.RawMessage) json.RawMessage {
	v, err := jsonx.Decode(params)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(secret.Value("", v))
	if err != nil {
		return nil
	}
	return terminal.EscapeJSON(data)
}
