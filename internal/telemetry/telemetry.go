// Package telemetry exports spans and metrics to an OpenTelemetry collector, by OTLP over HTTP in
// JSON. Nothing waits for the collector: data that it does not accept in time is lost, with no
// other effect.
package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolreg/toolreg/internal/secret"
)

const (
	defaultTimeout = 10 * time.Second
	// lastExport is how long the end of a run waits for the collector, unless the variable sets
	// another limit.
	lastExport = 200 * time.Millisecond
	// maxSpans is the maximum number of spans that wait to be exported; others are dropped.
	maxSpans = 2048
)

// Options say where to export to. Environ has precedence over the other fields.
type Options struct {
	Endpoint string                             // base address, as in OTEL_EXPORTER_OTLP_ENDPOINT
	Headers  *secret.Current[map[string]string] // sent with each request
	Getenv   func(string) string                // OTEL_*
	Version  string                             // of this program
	Scrape   bool                               // WritePrometheus will be called
	Log      *slog.Logger
	Warn     func(message string) // of variables that are not followed
}

// Exporter exports what the run does. The zero value exports nothing.
type Exporter struct {
	// The SDK's types are behind interfaces: each package that can reach the type of a field
	// compiles all of its generic methods, which takes two seconds.
	providers []provider
	scraped   reader        // nil unless metrics are scraped
	last      time.Duration // how long Close waits
}

type provider interface{ Shutdown(context.Context) error }

type reader interface {
	Collect(context.Context, *metricdata.ResourceMetrics) error
}

// Start sets OpenTelemetry's global providers to ones that export. Without an endpoint it
// exports nothing.
func Start(ctx context.Context, o Options) *Exporter {
	x := &Exporter{}
	if on, _ := strconv.ParseBool(o.Getenv("OTEL_SDK_DISABLED")); on && !o.Scrape {
		return x
	} else if on {
		o.Getenv, o.Endpoint = func(string) string { return "" }, ""
	}
	traces, metrics := o.address("TRACES"), o.address("METRICS")
	if traces == "" && metrics == "" && !o.Scrape {
		return x
	}
	if protocol := o.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol == "grpc" {
		o.Warn("OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported; OTLP is sent over HTTP in JSON")
	}
	own := map[string]string{}
	for pair := range strings.SplitSeq(o.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if plain, err := url.PathUnescape(strings.TrimSpace(value)); err == nil {
				own[strings.TrimSpace(name)] = plain
			}
		}
	}
	timeout := defaultTimeout
	x.last = lastExport
	if ms, err := strconv.Atoi(o.Getenv("OTEL_EXPORTER_OTLP_TIMEOUT")); err == nil && ms > 0 {
		timeout = time.Duration(ms) * time.Millisecond
		x.last = timeout
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Debug("exporting telemetry", "err", err) }))
	// A resource may be partial: a malformed variable loses only its own attributes.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "toolreg"),
			attribute.String("service.version", o.Version)),
		resource.WithFromEnv())
	if err != nil {
		o.Log.Debug("OTEL_RESOURCE_ATTRIBUTES", "err", err)
	}
	to := sender{
		headers: o.Headers, own: own,
		client: &http.Client{Timeout: timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	if traces != "" {
		p := trace.NewTracerProvider(trace.WithResource(about),
			trace.WithBatcher(&spans{to, traces}, trace.WithMaxQueueSize(maxSpans), trace.WithExportTimeout(timeout)))
		otel.SetTracerProvider(p)
		x.providers = append(x.providers, p)
	}
	with := []metric.Option{metric.WithResource(about)}
	if metrics != "" {
		with = append(with, metric.WithReader(metric.NewPeriodicReader(&histograms{to, metrics},
			metric.WithTimeout(timeout))))
	}
	if o.Scrape {
		manual := metric.NewManualReader()
		with = append(with, metric.WithReader(manual))
		x.scraped = manual
	}
	if len(with) > 1 {
		p := metric.NewMeterProvider(with...)
		otel.SetMeterProvider(p)
		x.providers = append(x.providers, p)
	}
	return x
}

// address returns where a signal is sent; "" if it is not sent. A mistake in the address disables
// the signal and not the run.
func (o *Options) address(signal string) string {
	if o.Getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return ""
	}
	name, path := "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT", ""
	address := o.Getenv(name)
	if address == "" {
		name, path = "OTEL_EXPORTER_OTLP_ENDPOINT", "/v1/"+strings.ToLower(signal)
		address = o.Getenv(name)
	}
	if address == "" {
		name, address = "telemetry.endpoint", o.Endpoint
	}
	if address == "" {
		return ""
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		o.Warn(name + ": expected an http or https address, such as http://localhost:4318; nothing is sent")
		return ""
	}
	if path != "" {
		address = strings.TrimSuffix(address, "/") + path
	}
	return address
}

// Close sends the remaining data, for a moment, or for as long as OTEL_EXPORTER_OTLP_TIMEOUT
// allows.
func (x *Exporter) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.last)
	defer cancel()
	done := make(chan error, len(x.providers))
	for _, p := range x.providers {
		go func() { done <- p.Shutdown(ctx) }()
	}
	var errs []error
	for range x.providers {
		select {
		case err := <-done:
			errs = append(errs, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errors.Join(errs...)
}

// PrometheusType is the media type of what [Exporter.WritePrometheus] writes.
const PrometheusType = "text/plain; version=0.0.4; charset=utf-8"

// Numbers is a list of metrics with one number for each combination of labels, in the text format
// of Prometheus. The zero value is empty.
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
