// Package auditcmd implements the commands audit and stats, which show the log
// of calls.
package auditcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

type auditOptions struct {
	since   string
	tool    string
	client  string
	outcome string
	follow  bool
	lines   int // -1 = all
}

// New returns the command audit.
func New(e *cli.Env) *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show the log of calls and refusals",
		Long: `Show the log of calls and refusals, one line each: time, tool, decision and the rule
that made it, outcome and duration. Params are shown as a hash, or in full with the
setting audit.params.

In a pipe each call is one line: time, tool, source, decision, rule, outcome,
code, milliseconds, bytes of params and bytes of the result, separated by tabs.
With --json it is one document; with --follow as well, one object per line.
Exit codes: 0, 1 (the log cannot be read), 2.`,
		Example: `  toolreg audit --since 24h --outcome denied
  toolreg audit --tool 'github__*' --json
  toolreg audit --follow`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("lines") {
				o.lines = -1
			} else if o.lines < 0 {
				return &cli.UsageError{Err: fmt.Errorf("--lines %d: must be 0 or more", o.lines)}
			}
			return run(cmd.Context(), e, o)
		},
	}
	f := cmd.Flags()
	o.filterFlags(e, cmd)
	f.StringVar(&o.outcome, "outcome", "",
		"only this outcome (ok, error, denied, invalid, limited, timeout, cancelled) or error `code`")
	complete.Flag(cmd, "outcome", complete.Words(outcomeWords()...))
	f.BoolVarP(&o.follow, "follow", "f", false, "keep printing new entries, until interrupted")
	f.IntVarP(&o.lines, "lines", "n", 0, "only the last `N`; default 10 with --follow")
	return cmd
}

// filterFlags adds the flags that audit and stats share.
func (o *auditOptions) filterFlags(e *cli.Env, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "",
		"only entries since a `time` such as 24h, 7d, 2006-01-02 or 2006-01-02T15:04:05Z")
	f.StringVar(&o.tool, "tool", "", "only tools of this name (`glob`)")
	f.StringVar(&o.client, "client", "", "only calls of clients of serve whose tokens have this name (`glob`)")
	complete.Flag(cmd, "since", complete.Words("1h", "24h", "7d", "30d"))
	complete.Flag(cmd, "tool", e.Complete().Tools())
}

func (o *auditOptions) filter(now time.Time) (func(*audit.Entry) bool, error) {
	var since time.Time
	if o.since != "" {
		var err error
		if since, err = parseSince(o.since, now); err != nil {
			return nil, err
		}
	}
	if known := outcomeWords(); o.outcome != "" && !slices.Contains(known, o.outcome) {
		return nil, cli.Usage(fmt.Sprintf("--outcome: unknown word %q", o.outcome),
			"one of "+strings.Join(known, ", "))
	}
	for _, glob := range []string{o.tool, o.client} {
		if !text.IsPattern(glob) {
			return nil, &cli.UsageError{Err: fmt.Errorf("%q is not a valid glob", glob)}
		}
	}
	return func(e *audit.Entry) bool {
		return !e.Time.Before(since) &&
			(o.tool == "" || text.MatchName(o.tool, e.Tool) ||
				e.ServerTool != "" && text.MatchName(o.tool, e.ServerTool) ||
				e.Upstream != "" && text.MatchName(o.tool, e.Upstream)) &&
			(o.client == "" || e.Caller != nil && text.MatchName(o.client, e.Caller.Name)) &&
			(o.outcome == "" || o.outcome == string(e.Outcome) || o.outcome == e.Code)
	}, nil
}

// outcomeWords returns the outcomes of calls and the error codes.
func outcomeWords() []string {
	var out []string
	for _, o := range audit.Outcomes() {
		out = append(out, string(o))
	}
	for _, c := range cli.ErrorCodes() {
		out = text.AppendNew(out, c.Word)
	}
	return out
}

// parseSince parses a duration before now, a date or a time.
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
	return time.Time{}, cli.Usage(fmt.Sprintf("--since: cannot parse %q as a time", text),
		"such as 24h, 7d, 2006-01-02 or 2006-01-02T15:04:05Z")
}

func run(ctx context.Context, e *cli.Env, o *auditOptions) error {
	wanted, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	log, err := e.Config.Audit(ctx)
	if err != nil {
		return err
	}
	if o.follow && o.lines < 0 && o.since == "" {
		o.lines = 10
	}
	if o.follow {
		defer e.IO.WatchReader()()
	} else {
		e.IO.Page()
	}
	p := &printer{env: e, follow: o.follow, last: o.lines}
	damaged, err := log.Scan(ctx, audit.ScanOptions{Follow: o.follow, Current: p.current},
		func(entry audit.Entry) error {
			if !wanted(&entry) {
				return nil
			}
			return p.add(entry)
		})
	if err == nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	e.IO.WarnDamagedAudit(damaged)
	return err
}

// printer prints entries, either all at once or, with --follow, as they are
// added.
type printer struct {
	env     *cli.Env
	follow  bool
	last    int           // maximum number of existing entries to print; negative means all
	entries []audit.Entry // existing entries
	live    bool          // the existing entries have been printed
}

func (p *printer) add(e audit.Entry) error {
	if p.live {
		return p.print([]audit.Entry{e})
	}
	if p.last >= 0 && len(p.entries) > 2*p.last+1000 {
		p.entries = slices.Clone(p.entries[len(p.entries)-p.last:])
	}
	p.entries = append(p.entries, e)
	return nil
}

// current prints the existing entries.
func (p *printer) current() error {
	p.live = true
	entries := p.entries
	p.entries = nil
	if p.last >= 0 && len(entries) > p.last {
		entries = entries[len(entries)-p.last:]
	}
	if p.follow && len(entries) == 0 {
		return nil
	}
	return p.print(entries)
}

func (p *printer) print(entries []audit.Entry) error {
	e := p.env
	if e.IO.JSON && p.follow {
		for i := range entries {
			if err := e.IO.PrintLine(entries[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := ui.Table{Header: []string{"TIME", "TOOL", "SOURCE", "DECISION",
		"RULE", "OUTCOME", "CODE", "MS", "PARAMS", "RESULT"},
		Spare: []string{"RESULT", "PARAMS", "SOURCE", "CODE", "MS", "DECISION", "RULE", "TIME"}}
	format := time.DateTime
	if e.IO.Width() < 60 {
		format = "01-02 15:04"
	}
	for i := range entries {
		entry := &entries[i]
		when := entry.Time.Format(time.RFC3339Nano)
		if e.IO.OutTTY {
			when = entry.Time.Local().Format(format)
		}
		t.Add(when, entry.Tool, entry.Source, entry.Decision, entry.Rule, string(entry.Outcome), entry.Code,
			strconv.FormatFloat(entry.DurationMs, 'f', -1, 64),
			strconv.Itoa(entry.ParamsBytes), strconv.FormatInt(entry.ResultBytes, 10))
	}
	if e.IO.OutTTY && p.follow {
		_, err := io.WriteString(e.IO.Out, followed(t.Rows))
		return err
	}
	return e.IO.PrintResult(map[string][]audit.Entry{"entries": cli.OrEmpty(entries)}, &t, "call")
}

// followed formats rows that are printed one by one. It uses fixed column widths,
// because later rows are not known yet.
func followed(rows [][]string) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s  %-24s %-6s %-9s %8s ms  %s\n", r[0], r[1], r[3], r[5], r[7], r[4])
	}
	return b.String()
}
