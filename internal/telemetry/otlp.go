package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolreg/toolreg/internal/secret"
)

// The messages of OTLP 1.11 in its JSON encoding, as far as they are used.
type (
	keyValue struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	about struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId,omitempty"`
		TraceState string     `json:"traceState,omitempty"`
		Flags      uint32     `json:"flags,omitempty"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Status     *status    `json:"status,omitempty"`
	}
	status struct {
		Code int `json:"code"`
	}
	point struct {
		Attributes []keyValue `json:"attributes,omitempty"`
		Start      string     `json:"startTimeUnixNano"`
		Time       string     `json:"timeUnixNano"`
		Count      string     `json:"count"`
		Sum        float64    `json:"sum"`
		Buckets    []string   `json:"bucketCounts"`
		Bounds     []float64  `json:"explicitBounds"`
		Min        *float64   `json:"min,omitempty"`
		Max        *float64   `json:"max,omitempty"`
	}
	histogram struct {
		Points      []point `json:"dataPoints"`
		Temporality int     `json:"aggregationTemporality"`
	}
	measured struct {
		Name      string    `json:"name"`
		Unit      string    `json:"unit,omitempty"`
		Histogram histogram `json:"histogram"`
	}
)

const (
	statusError = 2
	cumulative  = 2
)

// sender posts requests.
type sender struct {
	client  *http.Client
	headers *secret.Current[map[string]string]
	own     map[string]string // of the environment, which have precedence
}

// maxAnswer is how much of an answer is read, so that the connection can be used again.
const maxAnswer = 64 << 10

func (s *sender) send(ctx context.Context, address string, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.headers.Send(r, func(r *http.Request, headers map[string]string) (*http.Response, error) {
		for _, all := range []map[string]string{headers, s.own} {
			for name, value := range all {
				r.Header.Set(name, value)
			}
		}
		return s.client.Do(r)
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", resp.Status)
	}
	return nil
}

// spans is a [trace.SpanExporter].
type spans struct {
	sender
	address string
}

func (*spans) Shutdown(context.Context) error { return nil }

func (x *spans) ExportSpans(ctx context.Context, ended []trace.ReadOnlySpan) error {
	if len(ended) == 0 {
		return nil
	}
	out := make([]span, len(ended))
	for i, s := range ended {
		c, parent := s.SpanContext(), s.Parent()
		out[i] = span{
			TraceID: c.TraceID().String(), SpanID: c.SpanID().String(), TraceState: c.TraceState().String(),
			Flags: uint32(c.TraceFlags()), Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()),
			End: nanos(s.EndTime()), Attributes: keyValues(s.Attributes()),
		}
		if parent.SpanID().IsValid() {
			out[i].ParentID = parent.SpanID().String()
		}
		if s.Status().Code == codes.Error {
			out[i].Status = &status{statusError}
		}
	}
	type scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	type resourceSpans struct {
		Resource about        `json:"resource"`
		Scopes   []scopeSpans `json:"scopeSpans"`
	}
	return x.send(ctx, x.address, struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}{[]resourceSpans{{aboutOf(ended[0].Resource()), []scopeSpans{{scopeOf(ended[0].InstrumentationScope()), out}}}}})
}

// histograms is a [metric.Exporter] of histograms; there are no other metrics.
type histograms struct {
	sender
	address string
}

func (*histograms) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}

func (*histograms) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}

func (*histograms) ForceFlush(context.Context) error { return nil }

func (*histograms) Shutdown(context.Context) error { return nil }

func (x *histograms) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	type scopeMetrics struct {
		Scope   scope      `json:"scope"`
		Metrics []measured `json:"metrics"`
	}
	var scopes []scopeMetrics
	for _, s := range rm.ScopeMetrics {
		out := scopeMetrics{Scope: scopeOf(s.Scope)}
		for _, m := range s.Metrics {
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
				out.Metrics = append(out.Metrics, measured{m.Name, m.Unit, histogram{points(data), cumulative}})
			}
		}
		if len(out.Metrics) > 0 {
			scopes = append(scopes, out)
		}
	}
	if len(scopes) == 0 {
		return nil
	}
	type resourceMetrics struct {
		Resource about          `json:"resource"`
		Scopes   []scopeMetrics `json:"scopeMetrics"`
	}
	return x.send(ctx, x.address, struct {
		Resources []resourceMetrics `json:"resourceMetrics"`
	}{[]resourceMetrics{{aboutOf(rm.Resource), scopes}}})
}

func points(h metricdata.Histogram[float64]) []point {
	out := make([]point, len(h.DataPoints))
	for i, p := range h.DataPoints {
		out[i] = point{
			Attributes: keyValues(p.Attributes.ToSlice()), Start: nanos(p.StartTime), Time: nanos(p.Time),
			Count: strconv.FormatUint(p.Count, 10), Sum: p.Sum, Bounds: p.Bounds,
		}
		for _, n := range p.BucketCounts {
			out[i].Buckets = append(out[i].Buckets, strconv.FormatUint(n, 10))
		}
		if least, ok := p.Min.Value(); ok {
			out[i].Min = &least
		}
		if most, ok := p.Max.Value(); ok {
			out[i].Max = &most
		}
	}
	return out
}

func aboutOf(r *resource.Resource) about { return about{keyValues(r.Attributes())} }

func scopeOf(s instrumentation.Scope) scope { return scope{s.Name, s.Version} }

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// keyValues converts attributes; it drops those whose types tracing.Span does not have.
func keyValues(list []attribute.KeyValue) []keyValue {
	var out []keyValue
	for _, kv := range list {
		var value any
		switch kv.Value.Type() {
		case attribute.STRING:
			value = map[string]string{"stringValue": kv.Value.AsString()}
		case attribute.BOOL:
			value = map[string]bool{"boolValue": kv.Value.AsBool()}
		case attribute.INT64:
			value = map[string]string{"intValue": strconv.FormatInt(kv.Value.AsInt64(), 10)}
		case attribute.FLOAT64:
			value = map[string]float64{"doubleValue": kv.Value.AsFloat64()}
		default:
			continue
		}
		out = append(out, keyValue{string(kv.Key), value})
	}
	return out
}
