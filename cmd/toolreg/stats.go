package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/registry"
)

type statsOptions struct {
	auditOptions
	by string
}

func newStatsCommand(a *app) *cobra.Command {
	o := &statsOptions{}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count calls, failures and durations",
		Long: `Count over the audit log: calls that were made, successes, errors, refused calls,
total, average, median and 95th percentile of their durations, and the last call.

In a pipe each row is: name, source, calls, successes, errors, refused, total,
average, median and 95th percentile in milliseconds, and the time of the last
call, separated by tabs. Exit codes: 0, 1 (the log cannot be read), 2.`,
		Example: `  toolreg stats --since 7d
  toolreg stats --by server --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runStats(cmd.Context(), a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.by, "by", "tool", "count by `what`: tool, source or server")
	o.narrowing(f)
	return cmd
}

func runStats(ctx context.Context, a *app, o *statsOptions) error {
	by := audit.Grouping(o.by)
	if by != audit.ByTool && by != audit.BySource && by != audit.ByServer {
		return &usageError{err: fmt.Errorf("--by: unknown word %q", o.by), hint: "one of tool, source, server"}
	}
	wanted, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	stats := audit.Stats{By: by}
	if err := a.scanLog(ctx, func(e *audit.Entry) {
		if wanted(e) {
			stats.Add(*e)
		}
	}); err != nil {
		return err
	}
	return a.printStats(stats.Counts())
}

// scanLog visits every entry of the log.
func (a *app) scanLog(ctx context.Context, visit func(*audit.Entry)) error {
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	log, err := a.auditLog(s)
	if err != nil {
		return err
	}
	damaged, err := log.Scan(ctx, audit.ScanOptions{}, func(e audit.Entry) error {
		visit(&e)
		return context.Cause(ctx)
	})
	a.tellDamaged(damaged)
	return err
}

func (a *app) printStats(counts []audit.Count) error {
	if a.globals.JSON {
		return a.printJSON(map[string][]audit.Count{"stats": counts})
	}
	if a.outTTY && len(counts) == 0 {
		a.note("toolreg: no calls in the log\n")
		return nil
	}
	most := 0
	for _, c := range counts {
		most = max(most, c.Calls)
	}
	t := table{header: []string{"NAME", "SOURCE", "CALLS", "OK", "ERRORS", "REFUSED", "TOTAL", "AVG", "P50", "P95", "LAST"}}
	if a.outTTY {
		t.header = append(t.header, "")
	}
	for _, c := range counts {
		row := []string{c.Name, c.Source, strconv.Itoa(c.Calls), strconv.Itoa(c.Successes), strconv.Itoa(c.Errors), strconv.Itoa(c.Refused)}
		for _, ms := range []float64{c.TotalMs, c.AverageMs, c.P50Ms, c.P95Ms} {
			row = append(row, a.milliseconds(ms))
		}
		if a.outTTY {
			row = append(row, c.Last.Local().Format(time.DateTime), bar(c.Calls, most))
		} else {
			row = append(row, c.Last.Format(time.RFC3339Nano))
		}
		t.add(row...)
	}
	t.spare = []string{"SOURCE", "TOTAL", "P50", "REFUSED", "LAST", "P95", "AVG"}
	return t.print(a)
}

// milliseconds shows a duration: for a person with a unit, in a pipe the number.
func (a *app) milliseconds(ms float64) string {
	if !a.outTTY {
		return strconv.FormatFloat(ms, 'f', -1, 64)
	}
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// bar draws n of most as up to ten blocks, at least a thin one for any.
func bar(n, most int) string {
	const width = 10
	if n == 0 || most == 0 {
		return ""
	}
	eighths := max(n*width*8/most, 1)
	b := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		b += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return b
}

// used returns what tells a tool in the log from every other one, of each tool
// that was called since a time.
func (a *app) used(ctx context.Context, since time.Time) (map[[2]string]bool, error) {
	out := map[[2]string]bool{}
	err := a.scanLog(ctx, func(e *audit.Entry) {
		if !e.Outcome.Made() || e.Time.Before(since) {
			return
		}
		out[[2]string{e.Source, cmp.Or(e.ServerTool, e.Tool)}] = true
	})
	return out, err
}

// withoutUsed leaves the tools that were not called for a time (list --inactive).
func (a *app) withoutUsed(ctx context.Context, tools []*registry.Tool, unused time.Duration) ([]*registry.Tool, error) {
	switch {
	case unused < 0:
		return nil, &usageError{err: fmt.Errorf("--inactive %s: a time cannot be negative", unused), hint: "such as 720h for 30 days"}
	case unused == 0:
		return tools, nil
	}
	used, err := a.used(ctx, time.Now().Add(-unused))
	if err != nil {
		return nil, err
	}
	out := tools[:0:0]
	for _, t := range tools {
		if !used[[2]string{t.Source, cmp.Or(t.ServerTool, t.Name)}] {
			out = append(out, t)
		}
	}
	return out, nil
}
