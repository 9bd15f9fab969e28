package auditcmd

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/page"
)

type statsOptions struct {
	auditOptions
	by      string
	html    string // file for the page; "" means none
	project bool
}

// NewStats returns the command stats.
func NewStats(e *cli.Env) *cobra.Command {
	o := &statsOptions{}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count calls, failures and durations",
		Long: `Show statistics of the audit log: calls that were made, successes, errors, refused
calls, total, average, median and 95th percentile of their durations, and the last
call. The time that a person took to answer a question is excluded. A call that
was not confirmed counts as refused.

In a pipe each row is: name, source, calls, successes, errors, refused, total,
average, median and 95th percentile in milliseconds, the time of the last call,
and the tokens that overrides of results saved, separated by tabs.

Exit codes: 0, 1 (the log cannot be read), 2.`,
		Example: `  toolreg stats --since 7d
  toolreg stats --by server --json
  toolreg stats --project
  toolreg stats --since 30d --html calls.html`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.html != "" && (e.IO.JSON || cmd.Flags().Changed("by")) {
				return cli.Usage("--html cannot be used with --json or --by",
					"the page counts by tool, server and client")
			}
			return runStats(cmd.Context(), e, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.by, "by", "tool", "count by `what`: tool, source, server or client")
	f.BoolVar(&o.project, "project", false, "only calls made in this project")
	f.StringVar(&o.html, "html", "", "write a web page with charts of calls, durations and tokens to this `file`")
	complete.Flag(cmd, "html", complete.Files)
	complete.Flag(cmd, "by", complete.Words("tool", "source", "server", "client"))
	o.filterFlags(e, cmd)
	return cmd
}

func runStats(ctx context.Context, e *cli.Env, o *statsOptions) error {
	by := audit.Grouping(o.by)
	if !slices.Contains([]audit.Grouping{audit.ByTool, audit.BySource, audit.ByServer, audit.ByClient}, by) {
		return cli.Usage(fmt.Sprintf("--by: unknown word %q", o.by), "one of tool, source, server, client")
	}
	set, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	stats, charts, err := o.scan(ctx, e, set, o.html != "")
	if err != nil {
		return err
	}
	if o.html != "" {
		return charts.writePage(e, set, o)
	}
	return printStats(e.IO, stats.Counts())
}

// scan counts the selected calls of the log, for the charts or for the table.
func (o *statsOptions) scan(ctx context.Context, e *cli.Env,
	set *settings.Settings, forCharts bool) (*audit.Stats, *charts, error) {
	wanted, err := o.filter(time.Now())
	if err != nil {
		return nil, nil, err
	}
	stats := &audit.Stats{By: audit.Grouping(o.by)}
	charts := &charts{by: []*audit.Stats{{By: audit.ByTool}, {By: audit.ByServer}, {By: audit.ByClient}}}
	add := stats.Add
	if forCharts {
		add = charts.add
	}
	err = e.Config.ScanAudit(ctx, set, func(entry *audit.Entry) {
		if wanted(entry) && (!o.project || entry.InProject(set.ProjectRoot)) {
			add(*entry)
		}
	})
	return stats, charts, err
}

func printStats(ios *cli.IO, counts []audit.Count) error {
	most, calls := 0, 0
	for _, c := range counts {
		most = max(most, c.Calls)
		calls += c.Calls
	}
	if ios.OutTTY && len(counts) == 0 {
		ios.Notef("no calls")
	} else {
		ios.Summary("%s", text.Count(calls, "call"))
	}
	t := ui.Table{Header: []string{"NAME", "SOURCE", "CALLS", "OK",
		"ERRORS", "REFUSED", "TOTAL", "AVG", "P50", "P95", "LAST"}}
	saved := slices.ContainsFunc(counts, func(c audit.Count) bool { return c.SavedTokens > 0 })
	if saved || !ios.OutTTY {
		t.Header = append(t.Header, "SAVED")
	}
	if ios.OutTTY {
		t.Header = append(t.Header, "")
	}
	for _, c := range counts {
		row := []string{c.Name, c.Source, strconv.Itoa(c.Calls),
			strconv.Itoa(c.Successes), strconv.Itoa(c.Errors), strconv.Itoa(c.Refused)}
		for _, ms := range []float64{c.TotalMs, c.AverageMs, c.P50Ms, c.P95Ms} {
			row = append(row, milliseconds(ios, ms))
		}
		last := c.Last.Format(time.RFC3339Nano)
		if ios.OutTTY {
			last = c.Last.Local().Format(time.DateTime)
		}
		row = append(row, last)
		if saved || !ios.OutTTY {
			row = append(row, strconv.Itoa(c.SavedTokens))
		}
		if ios.OutTTY {
			row = append(row, bar(c.Calls, most))
		}
		t.Add(row...)
	}
	t.Spare = []string{"SOURCE", "TOTAL", "P50", "LAST", "P95", "REFUSED", "AVG"}
	return ios.PrintResult(map[string][]audit.Count{"stats": counts}, &t, "")
}

// milliseconds formats a duration: with a unit on a terminal, as a number in a pipe.
func milliseconds(ios *cli.IO, ms float64) string {
	if !ios.OutTTY {
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

// bar draws n relative to most as a bar of up to ten blocks. If n is not 0, the bar has
// at least a thin block.
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

const (
	maxPeriods    = 60
	maxRows       = 100
	bytesPerToken = 4 // a usual estimate; the log has no texts to count
)

// charts collects what the page of stats shows.
type charts struct {
	timeline audit.Timeline
	by       []*audit.Stats
}

func (c *charts) add(e audit.Entry) {
	c.timeline.Add(e)
	for _, s := range c.by {
		s.Add(e)
	}
}

// Charts returns the page of stats --html for the calls in this project since a time, in the syntax
// of --since.
func Charts(ctx context.Context, e *cli.Env, set *settings.Settings, since string) ([]byte, error) {
	o := &statsOptions{auditOptions: auditOptions{since: since}, project: true}
	_, charts, err := o.scan(ctx, e, set, true)
	if err != nil {
		return nil, err
	}
	return charts.page(e, set, o)
}

func (c *charts) page(e *cli.Env, set *settings.Settings, o *statsOptions) ([]byte, error) {
	p := &page.Charts{Title: "Calls of tools", Version: e.Version,
		Made: time.Now(), Selection: o.selection(set.ProjectRoot)}
	total := c.timeline.Total()
	p.All = calls(&total)
	for _, period := range c.timeline.Periods(maxPeriods, time.Local) {
		p.Periods = append(p.Periods, page.Period{Start: period.Start, Calls: calls(&period.Count)})
	}
	for _, s := range c.by {
		counts := s.Counts()
		t := page.Table{Name: string(s.By), More: max(len(counts)-maxRows, 0)}
		for _, count := range counts[:len(counts)-t.More] {
			t.Rows = append(t.Rows, page.Row{Name: count.Name, Source: count.Source, Calls: calls(&count)})
		}
		p.Tables = append(p.Tables, t)
	}
	var b bytes.Buffer
	err := page.WriteCharts(&b, p)
	return b.Bytes(), err
}

func (c *charts) writePage(e *cli.Env, set *settings.Settings, o *statsOptions) error {
	html, err := c.page(e, set, o)
	if err != nil {
		return err
	}
	total := c.timeline.Total()
	if err := e.Config.WriteFile(set.ProjectRoot, o.html, html); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--html: %w", err), Hint: "name a file that can be written"}
	}
	e.IO.Notef("%s written to %s", text.Count(total.Calls+total.Refused, "call"), o.html)
	return nil
}

func calls(c *audit.Count) page.Calls {
	return page.Calls{
		OK:      c.Successes,
		Errors:  c.Errors,
		Refused: c.Refused,
		P50:     c.P50Ms,
		P95:     c.P95Ms,
		Tokens:  int(c.ResultBytes / bytesPerToken),
	}
}

// selection says which calls the options select; "" means all.
func (o *statsOptions) selection(root string) string {
	var parts []string
	if o.project {
		parts = append(parts, "in the project "+filepath.Base(root))
	}
	if o.tool != "" {
		parts = append(parts, "of tools named "+o.tool)
	}
	if o.client != "" {
		parts = append(parts, "of clients named "+o.client)
	}
	if o.since != "" {
		parts = append(parts, "since "+o.since)
	}
	if len(parts) == 0 {
		return ""
	}
	return "Only calls " + strings.Join(parts, ", ") + "."
}
