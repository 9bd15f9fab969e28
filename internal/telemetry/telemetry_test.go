package telemetry

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/tracing"
)

// collector is a server that keeps what it gets, by path.
type collector struct {
	*httptest.Server
	mu      sync.Mutex // until the exporter is closed
	got     map[string]string
	headers http.Header
}

func newCollector(t *testing.T) *collector {
	c := &collector{got: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got[r.URL.Path], c.headers = string(body), r.Header
	}))
	t.Cleanup(c.Close)
	return c
}

func options(vars map[string]string) Options {
	return Options{Headers: secret.NewCurrent(map[string]string{}), Getenv: func(name string) string { return vars[name] }, Version: "1", Log: slog.New(slog.DiscardHandler), Warn: func(string) {}}
}

// What is exported is what the collector's own types read.
func TestExport(t *testing.T) {
	c := newCollector(t)
	o := options(map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, y=2"})
	o.Endpoint, o.Headers = c.URL+"/base/", secret.NewCurrent(map[string]string{"X-Key": "of the settings", "Z": "3"})
	x := Start(t.Context(), o)
	ctx := tracing.Extract(t.Context(), func(name string) string {
		return map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "v=1"}[name]
	})
	ctx, outer := tracing.Start(ctx, tracing.Call, "execute_tool t")
	outer.Label("gen_ai.tool.name", "t")
	outer.Set("n", 1<<40)
	outer.Set("f", 0.5)
	outer.Set("b", true)
	outer.Set("none", "")
	_, inner := tracing.Start(ctx, tracing.Client, "tools/call")
	inner.Target("gen_ai.tool.name", "u")
	inner.Fail("tool_error")
	inner.End()
	outer.End()
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(c.got["/base/v1/traces"]))
	if err != nil {
		t.Fatal(err)
	}
	about := traces.ResourceSpans().At(0)
	if v, _ := about.Resource().Attributes().Get("service.name"); v.Str() != "toolreg" {
		t.Errorf("service.name is %q", v.Str())
	}
	spans := about.ScopeSpans().At(0).Spans()
	if spans.Len() != 2 {
		t.Fatalf("%d spans", spans.Len())
	}
	in, out := spans.At(0), spans.At(1)
	if in.Name() != "tools/call u" || in.Kind() != ptrace.SpanKindClient || in.Status().Code() != ptrace.StatusCodeError || in.ParentSpanID() != out.SpanID() {
		t.Errorf("the inner span: %s, %s, %s, parent %s", in.Name(), in.Kind(), in.Status().Code(), in.ParentSpanID())
	}
	if out.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || out.ParentSpanID().String() != "b7ad6b7169203331" || out.TraceState().AsRaw() != "v=1" || out.Kind() != ptrace.SpanKindInternal || out.Status().Code() != ptrace.StatusCodeUnset {
		t.Errorf("the outer span: %s, parent %s, state %q", out.TraceID(), out.ParentSpanID(), out.TraceState().AsRaw())
	}
	if took := out.EndTimestamp().AsTime().Sub(out.StartTimestamp().AsTime()); took < 0 || took > time.Minute {
		t.Errorf("it took %s", took)
	}
	want := map[string]any{"gen_ai.tool.name": "t", "n": int64(1 << 40), "f": 0.5, "b": true}
	if got := out.Attributes().AsRaw(); len(got) != len(want) {
		t.Errorf("attributes: %v", got)
	} else {
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s is %v, want %v", k, got[k], v)
			}
		}
	}

	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics([]byte(c.got["/base/v1/metrics"]))
	if err != nil {
		t.Fatal(err)
	}
	list := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	found := map[string]map[string]any{}
	for i := range list.Len() {
		m := list.At(i)
		p := m.Histogram().DataPoints().At(0)
		if m.Unit() != "s" || p.Count() != 1 || p.ExplicitBounds().Len() != 14 || p.BucketCounts().Len() != 15 || m.Histogram().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			t.Errorf("%s: unit %q, count %d, %d bounds, %d buckets", m.Name(), m.Unit(), p.Count(), p.ExplicitBounds().Len(), p.BucketCounts().Len())
		}
		found[m.Name()] = p.Attributes().AsRaw()
	}
	if a := found["gen_ai.execute_tool.duration"]; len(a) != 1 || a["gen_ai.tool.name"] != "t" {
		t.Errorf("labels of calls: %v", a)
	}
	if a := found["mcp.client.operation.duration"]; len(a) != 2 || a["error.type"] != "tool_error" {
		t.Errorf("labels of requests: %v", a)
	}
	if c.headers.Get("X-Key") != "a b" || c.headers.Get("Y") != "2" || c.headers.Get("Z") != "3" || c.headers.Get("Content-Type") != "application/json" {
		t.Errorf("headers: %v", c.headers)
	}
}

func TestNothingIsExported(t *testing.T) {
	c := newCollector(t)
	for name, vars := range map[string]map[string]string{
		"no endpoint": {},
		"disabled":    {"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_SDK_DISABLED": "true"},
		"no signal":   {"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
	} {
		x := Start(t.Context(), options(vars))
		if len(x.providers) != 0 {
			t.Errorf("%s: %v", name, x)
		}
		if err := x.Close(t.Context()); err != nil {
			t.Errorf("%s: closing: %v", name, err)
		}
	}
	x := Start(t.Context(), options(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/own", "OTEL_METRICS_EXPORTER": "none"}))
	_, span := tracing.Start(t.Context(), tracing.Server, "s")
	span.End()
	if err := x.Close(t.Context()); err != nil || !strings.Contains(c.got["/own"], `"name":"s"`) {
		t.Errorf("an address of its own: %v, %v", c.got, err)
	}
	for _, bad := range []string{"localhost:4318", "ftp://a", "http://", "%"} {
		o, warned := options(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": bad}), ""
		o.Warn = func(message string) { warned = message }
		if x := Start(t.Context(), o); len(x.providers) > 0 || !strings.HasPrefix(warned, "OTEL_EXPORTER_OTLP_ENDPOINT: expected") {
			t.Errorf("%q: %d providers, warned %q", bad, len(x.providers), warned)
		}
	}
}

// No call waits for a collector, and the end of a run only a little.
func TestBadCollectors(t *testing.T) {
	release := make(chan struct{})
	var elsewhere atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Store(true) }))
	defer other.Close()
	for name, h := range map[string]http.HandlerFunc{
		"hangs":   func(http.ResponseWriter, *http.Request) { <-release },
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
	} {
		server := httptest.NewServer(h)
		x := Start(t.Context(), options(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}))
		for range 3 * maxSpans { // more than wait
			_, span := tracing.Start(t.Context(), tracing.Call, "execute_tool t")
			span.End()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := x.Close(ctx); err == nil {
			t.Errorf("%s: nothing is reported", name)
		}
		cancel()
		if name == "hangs" {
			close(release)
		}
		server.Close()
	}
	if elsewhere.Load() {
		t.Error("a redirect was followed")
	}
}

// BenchmarkCall is what a call with a request costs if it is exported.
func BenchmarkCall(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	x := Start(b.Context(), options(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}))
	b.ReportAllocs()
	for b.Loop() {
		ctx, outer := tracing.Start(b.Context(), tracing.Call, "execute_tool t")
		for i, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			outer.Set(name, i)
		}
		outer.Label("gen_ai.tool.name", "t")
		_, inner := tracing.Start(ctx, tracing.Client, "tools/call t")
		inner.Label("mcp.method.name", "tools/call")
		inner.Label("gen_ai.tool.name", "t")
		inner.End()
		outer.End()
	}
	if err := x.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// What is scraped is what Prometheus's own parser reads.
func TestPrometheus(t *testing.T) {
	o := options(nil)
	o.Scrape = true
	x := Start(t.Context(), o)
	for _, name := range []string{"b", `a"\` + "\n", "b"} {
		_, span := tracing.Start(t.Context(), tracing.Call, "execute_tool")
		span.Label("gen_ai.tool.name", name)
		span.End()
	}
	var numbers Numbers
	numbers.Begin("n", "gauge", "Some number.")
	numbers.Add("n", 3, "source", `a"\`+"\n", "state", "up")
	numbers.Add("n", 4)
	var first, second strings.Builder
	if err := cmp.Or(x.WritePrometheus(t.Context(), &first, &numbers), x.WritePrometheus(t.Context(), &second, &numbers)); err != nil || first.String() != second.String() {
		t.Errorf("two scrapes differ, or %v:\n%s\n%s", err, first.String(), second.String())
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(first.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, first.String())
	}
	found := families["gen_ai_execute_tool_duration_seconds"]
	if n := families["n"].GetMetric(); len(n) != 2 || n[0].GetLabel()[0].GetValue() != `a"\`+"\n" || n[0].GetGauge().GetValue() != 3 || n[1].GetGauge().GetValue() != 4 {
		t.Errorf("the numbers are %v", n)
	}
	if len(families) != 2 || found == nil || len(found.GetMetric()) != 2 {
		t.Fatalf("found %v", families)
	}
	for i, want := range []struct {
		name  string
		count uint64
	}{{`a"\` + "\n", 1}, {"b", 2}} {
		m := found.GetMetric()[i]
		h := m.GetHistogram()
		if label := m.GetLabel()[0]; label.GetName() != "gen_ai_tool_name" || label.GetValue() != want.name {
			t.Errorf("the label is %s", label)
		}
		if last := h.GetBucket()[len(h.GetBucket())-1]; h.GetSampleCount() != want.count || len(h.GetBucket()) != 15 || last.GetCumulativeCount() != want.count {
			t.Errorf("%q: %s", want.name, h)
		}
	}
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A header from a file or a command is read again when the collector refuses it, as an access token
// that has expired.
func TestHeadersThatExpire(t *testing.T) {
	taken := make(chan string, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer new":
			w.WriteHeader(http.StatusUnauthorized)
		case err != nil || len(body) == 0:
			t.Error("the request that was sent again is empty", err)
		default:
			taken <- r.URL.Path
		}
	}))
	defer s.Close()
	o := options(map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "60000"})
	o.Endpoint, o.Headers = s.URL, secret.NewCurrent(map[string]string{"Authorization": "Bearer old"})
	o.Headers.Reread(func(context.Context) (map[string]string, error) {
		return map[string]string{"Authorization": "Bearer new"}, nil
	})
	x := Start(t.Context(), o)
	_, span := tracing.Start(t.Context(), tracing.Call, "execute_tool t")
	span.End()
	if err := x.Close(t.Context()); err != nil || len(taken) != 2 {
		t.Errorf("%d requests were taken, want the spans and the metrics; %v", len(taken), err)
	}
}
