package page

import (
	_ "embed" // the style and the script
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

// Charts is the content of a page with statistics of calls. All texts are plain text.
type Charts struct {
	Title     string
	Selection string // which calls were counted; "" means all
	Version   string // version of toolreg
	Made      time.Time
	All       Calls
	Periods   []Period // oldest first
	Tables    []Table
}

// Calls are the statistics of some calls. Durations are in milliseconds.
type Calls struct {
	OK, Errors, Refused int
	P50, P95            float64
	Tokens              int // estimated tokens of the results
}

// Period has the calls that began in one of several spans of time of the same length.
type Period struct {
	Start time.Time
	Calls
}

// Table has calls by a property of them.
type Table struct {
	Name string // of the property, a noun in lower case
	Rows []Row
	More int // rows that are left out
}

// Row has the calls with one value of the property.
type Row struct {
	Name, Source string
	Calls
}

//go:embed charts.css
var chartsStyle string

//go:embed charts.js
var chartsScript string

// WriteCharts writes the page of statistics.
func WriteCharts(w io.Writer, c *Charts) error {
	return writePage(w, c.Title+": calls", style+chartsStyle, chartsScript, false,
		func(m *markup) { (&charts{m, c}).write() })
}

type charts struct {
	*markup
	*Charts
}

func (d *charts) write() {
	d.put("<header>\n<h1>%s</h1>\n", d.Title)
	if d.Selection != "" {
		d.put("<p>%s</p>\n", d.Selection)
	}
	d.put("<ul class=\"numbers\">\n")
	d.number(d.All.OK+d.All.Errors, text.Plural(d.All.OK+d.All.Errors, "call"))
	d.number(d.All.Errors, text.Plural(d.All.Errors, "error"))
	d.number(d.All.Refused, "refused")
	d.put("<li><b>%s</b> median</li>\n<li><b>%s</b> 95th percentile</li>\n", duration(d.All.P50), duration(d.All.P95))
	d.number(d.All.Tokens, text.Plural(d.All.Tokens, "token")+" of results")
	d.put("</ul>\n</header>\n<main>\n")
	if len(d.Periods) == 0 {
		d.put("<p>No calls.</p>\n")
	} else {
		d.timelines()
	}
	for _, t := range d.Tables {
		d.table(t)
	}
	d.put("</main>\n")
	d.footer(d.Version, d.Made)
}

// series is one kind of value in a chart over time.
type series struct {
	name, class string
	of          func(*Calls) float64
}

var outcomes = []series{
	{"ok", "ok", func(c *Calls) float64 { return float64(c.OK) }},
	{"errors", "errors", func(c *Calls) float64 { return float64(c.Errors) }},
	{"refused", "refused", func(c *Calls) float64 { return float64(c.Refused) }},
}

func (d *charts) timelines() {
	count := func(v float64) string { return grouped(int(v)) }
	d.timeline("Calls", count, true, outcomes)
	d.timeline("Durations", duration, false, []series{
		{"95th percentile", "p95", func(c *Calls) float64 { return c.P95 }},
		{"median", "p50", func(c *Calls) float64 { return c.P50 }},
	})
	d.timeline("Tokens of results", count, true,
		[]series{{"tokens", "ok", func(c *Calls) float64 { return float64(c.Tokens) }}})
	d.put("<details id=\"periods\"><summary>The same as a table</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">From</th><th scope=\"col\">OK</th><th scope=\"col\">Errors</th><th scope=\"col\">Refused</th><th scope=\"col\">Median</th><th scope=\"col\">95th percentile</th><th scope=\"col\">Tokens</th></tr></thead>\n<tbody>\n")
	for i := range d.Periods {
		p := &d.Periods[i]
		d.put("<tr><th scope=\"row\">")
		d.time("time", "datetime", i, "")
		d.put("</th><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			grouped(p.OK), grouped(p.Errors), grouped(p.Refused), duration(p.P50), duration(p.P95),
			grouped(p.Tokens))
	}
	d.put("</tbody>\n</table></div>\n</details>\n<p class=\"hint\">Times are in the time zone <span id=\"zone\">%s</span>. Token counts are estimates.</p>\n",
		d.Periods[0].Start.Format("MST"))
}

// Sizes of a chart over time, in its own units.
const (
	chartWidth, chartHeight = 960, 220
	left, right, top, foot  = 64, 8, 10, 28 // margins around the plot
)

// timeline draws a chart over time: columns that are stacked, or behind each other.
func (d *charts) timeline(title string, text func(float64) string, stacked bool, all []series) {
	most := 0.0
	for i := range d.Periods {
		sum := 0.0
		for _, s := range all {
			if v := s.of(&d.Periods[i].Calls); stacked {
				sum += v
			} else {
				sum = max(sum, v)
			}
		}
		most = max(most, sum)
	}
	scale := scaleFor(max(most, 0.001))
	if stacked {
		scale = scaleFor(max(most, 4)) // of counts
	}
	d.put("<figure>\n<figcaption><h2>%s</h2>", title)
	if len(all) > 1 {
		for _, s := range all {
			d.put(" <span class=\"key %s\">%s</span>", s.class, s.name)
		}
	}
	d.put("</figcaption>\n<div class=\"scroll\" tabindex=\"0\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s over time, at most %s; a table below has all values\">\n",
		chartWidth, chartHeight, title, text(most))
	plot := float64(chartHeight - top - foot)
	for i := range 5 {
		v := scale * float64(i) / 4
		y := float64(top) + plot*(1-float64(i)/4)
		d.put("<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"value\" x=\"%d\" y=\"%.1f\">%s</text>\n",
			left, chartWidth-right, y, y, left-8, y+4, text(v))
	}
	width := float64(chartWidth-left-right) / float64(len(d.Periods))
	labels := (len(d.Periods) + 5) / 6
	for i := range d.Periods {
		p := &d.Periods[i]
		x := left + width*float64(i)
		d.put("<g>")
		var words []string
		base := 0.0
		for _, s := range all {
			v := s.of(&p.Calls)
			words = append(words, text(v)+" "+s.name)
			height := plot * v / scale
			if v > 0 {
				height = max(height, 1.5) // visible
				d.put("<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>", s.class,
					x+width*.08, float64(top)+plot-base-height, width*.84, height)
			}
			if stacked {
				base += height
			}
		}
		d.put("<rect class=\"pointer\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%.1f\"/>", x, top, width, plot)
		d.time("title", "data-time", i, ": "+strings.Join(words, ", "))
		d.put("</g>\n")
		if i%labels == 0 {
			d.put("<g transform=\"translate(%.2f %d)\">", x, chartHeight-8)
			d.time("text", "data-time", i, "")
			d.put("</g>\n")
		}
	}
	d.put("</svg></div>\n</figure>\n")
}

// time writes an element with the start of a period and a text. The script shows
// it in the reader's time zone: as a date if the periods are whole days.
func (d *charts) time(element, attribute string, i int, text string) {
	start, layout := d.Periods[i].Start, "2 Jan 15:04"
	if len(d.Periods) > 1 && d.Periods[1].Start.Sub(d.Periods[0].Start) > 12*time.Hour {
		layout = "2 Jan 2006"
	}
	d.put("<%s %s=\"%s\">%s%s</%s>",
		element, attribute, start.UTC().Format(time.RFC3339), start.Format(layout), text, element)
}

// scaleFor returns a round number that is at least most, which is positive, for the top of an
// axis with four parts.
func scaleFor(most float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 3, 4, 5, 6, 8} {
		if n*unit >= most {
			return n * unit
		}
	}
	return 10 * unit
}

// table writes calls by one property.
func (d *charts) table(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	d.put("<section>\n<h2>By %s</h2>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"calls\">\n<thead><tr><th scope=\"col\">%s</th><th scope=\"col\">Calls</th><th scope=\"col\">Errors</th><th scope=\"col\">Refused</th><th scope=\"col\">Median and 95th percentile</th><th scope=\"col\">Tokens of results</th></tr></thead>\n<tbody>\n",
		t.Name, strings.ToUpper(t.Name[:1])+t.Name[1:])
	var calls, slowest, tokens float64
	for i := range t.Rows {
		c := &t.Rows[i].Calls
		calls, slowest, tokens = max(calls, float64(c.OK+c.Errors+c.Refused)), max(slowest, c.P95), max(tokens, float64(c.Tokens))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		d.put("<tr><th scope=\"row\"><code>%s</code>", r.Name)
		if r.Source != "" {
			d.put(" <span class=\"detail\">%s</span>", r.Source)
		}
		d.put("</th><td>%s", grouped(r.OK+r.Errors))
		d.bar(calls, true, &r.Calls, outcomes)
		d.put("</td><td>%s</td><td>%s</td><td>%s, %s",
			grouped(r.Errors), grouped(r.Refused), duration(r.P50), duration(r.P95))
		d.bar(slowest, false, &r.Calls, []series{{"", "p95", func(c *Calls) float64 { return c.P95 }},
			{"", "p50", func(c *Calls) float64 { return c.P50 }}})
		d.put("</td><td>%s", grouped(r.Tokens))
		d.bar(tokens, true, &r.Calls, []series{{"", "ok", func(c *Calls) float64 { return float64(c.Tokens) }}})
		d.put("</td></tr>\n")
	}
	d.put("</tbody>\n</table></div>\n")
	if t.More > 0 {
		d.put("<p class=\"hint\">%s more with fewer calls are left out.</p>\n", grouped(t.More))
	}
	d.put("</section>\n")
}

// bar draws the values of one row, whose numbers stand beside it.
func (d *charts) bar(most float64, stacked bool, c *Calls, all []series) {
	d.put("<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">")
	x := 0.0
	for _, s := range all {
		width := 100 * s.of(c) / max(most, 1e-9)
		d.put("<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"6\"/>", s.class, x, width)
		if stacked {
			x += width
		}
	}
	d.put("</svg>")
}

// duration formats milliseconds with three digits.
func duration(ms float64) string {
	switch {
	case ms == 0:
		return "0"
	case ms < 0.9995:
		return fmt.Sprintf("%.3g µs", ms*1e3)
	case ms < 999.5:
		return fmt.Sprintf("%.3g ms", ms)
	case ms < 100e3:
		return fmt.Sprintf("%.3g s", ms/1e3)
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Second).String()
}
