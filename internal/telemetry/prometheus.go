package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// PrometheusType is the media type of what [Exporter.WritePrometheus] writes.
const PrometheusType = "text/plain; version=0.0.4; charset=utf-8"

// Numbers are metrics with one number for each combination of labels, in the text format of
// Prometheus. The zero value has none.
type Numbers struct{ text bytes.Buffer }

// Begin begins a metric, whose kind is gauge or counter.
func (n *Numbers) Begin(name, kind, help string) {
	fmt.Fprintf(&n.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// Add adds a number of a metric that has begun. labels are names and values in turn.
func (n *Numbers) Add(name string, number int, labels ...string) {
	pairs := make([]string, 0, len(labels)/2)
	for pair := range slices.Chunk(labels, 2) {
		pairs = append(pairs, pair[0]+`="`+escapeLabel(pair[1])+`"`)
	}
	fmt.Fprintf(&n.text, "%s{%s} %d\n", name, strings.Join(pairs, ","), number)
}

// WritePrometheus writes the histograms in the text format of Prometheus, with names as its
// rules for OpenTelemetry make them, and the numbers. Options.Scrape must have been set.
func (x *Exporter) WritePrometheus(ctx context.Context, w io.Writer, numbers *Numbers) error {
	var rm metricdata.ResourceMetrics
	if err := x.scraped.Collect(ctx, &rm); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
				fmt.Fprintf(&b, "# HELP %s_seconds %s\n", prometheusName(m.Name), m.Description)
				writeHistogram(&b, prometheusName(m.Name)+"_seconds", data)
			}
		}
	}
	b.Write(numbers.text.Bytes())
	_, err := w.Write(b.Bytes())
	return err
}

func writeHistogram(b *bytes.Buffer, name string, h metricdata.Histogram[float64]) {
	fmt.Fprintf(b, "# TYPE %s histogram\n", name)
	series := make([]string, len(h.DataPoints))
	for i, p := range h.DataPoints {
		labels := prometheusLabels(p.Attributes)
		var one strings.Builder
		var count uint64
		for j, n := range p.BucketCounts {
			le := "+Inf"
			if j < len(p.Bounds) {
				le = strconv.FormatFloat(p.Bounds[j], 'g', -1, 64)
			}
			count += n
			fmt.Fprintf(&one, "%s_bucket{%sle=%q} %d\n", name, labels, le, count)
		}
		if labels = strings.TrimSuffix(labels, ","); labels != "" {
			labels = "{" + labels + "}"
		}
		fmt.Fprintf(&one, "%s_sum%s %s\n%s_count%s %d\n",
			name, labels, strconv.FormatFloat(p.Sum, 'g', -1, 64), name, labels, p.Count)
		series[i] = one.String()
	}
	slices.Sort(series) // the same order in each scrape
	for _, one := range series {
		b.WriteString(one)
	}
}

// prometheusLabels returns the labels of a series, each with a comma after it.
func prometheusLabels(set attribute.Set) string {
	var b strings.Builder
	for _, kv := range set.ToSlice() {
		fmt.Fprintf(&b, `%s="%s",`, prometheusName(string(kv.Key)), escapeLabel(kv.Value.String()))
	}
	return b.String()
}

func escapeLabel(value string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(value)
}

func prometheusName(name string) string { return strings.ReplaceAll(name, ".", "_") }
