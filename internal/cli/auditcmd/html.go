package auditcmd

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/ui/page"
)

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

func newCharts() *charts {
	return &charts{by: []*audit.Stats{{By: audit.ByTool}, {By: audit.ByServer}, {By: audit.ByClient}}}
}

func (c *charts) add(e audit.Entry) {
	c.timeline.Add(e)
	for _, s := range c.by {
		s.Add(e)
	}
}

// Charts returns the page of stats --html for the calls in this project since a time, which is
// given as to --since.
func Charts(ctx context.Context, e *cli.Env, set *settings.Settings, since string) ([]byte, error) {
	o := &statsOptions{auditOptions: auditOptions{since: since}, project: true}
	_, charts, err := o.scan(ctx, e, set, true)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.WriteCharts(&b, charts.page(e.Version, o.selection(set.ProjectRoot)))
	return b.Bytes(), err
}

// page returns the content of the page.
func (c *charts) page(version, selection string) *page.Charts {
	p := &page.Charts{Title: "Calls of tools", Version: version, Made: time.Now(), Selection: selection}
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
	return p
}

// write writes the page to the file of --html.
func (c *charts) write(e *cli.Env, set *settings.Settings, o *statsOptions) error {
	var b bytes.Buffer
	if err := page.WriteCharts(&b, c.page(e.Version, o.selection(set.ProjectRoot))); err != nil {
		return err
	}
	total := c.timeline.Total()
	if err := e.Config.WriteFile(set.ProjectRoot, o.html, b.Bytes()); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--html: %w", err), Hint: "name a file that can be written"}
	}
	e.IO.Notef("%s written to %s", cli.Counted(total.Calls+total.Refused, "call"), o.html)
	return nil
}

func calls(c *audit.Count) page.Calls {
	return page.Calls{OK: c.Successes, Errors: c.Errors, Refused: c.Refused, P50: c.P50Ms, P95: c.P95Ms, Tokens: int(c.ResultBytes / bytesPerToken)}
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
