// Package tracing passes the trace of a request on to the other participants, as in W3C Trace
// Context and Baggage, and creates spans for an OpenTelemetry provider. Without a provider there
// are no spans, and the trace is passed on unchanged.
package tracing

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// names returns the names of the values that are passed on, as in HTTP headers and in MCP's _meta.
func names() []string { return []string{"traceparent", "tracestate", "baggage"} }

// Extract returns a context with the trace whose values get returns for these names. It drops
// values that are malformed or too long. Without a trace it returns ctx.
func Extract(ctx context.Context, get func(name string) string) context.Context {
	carrier := propagation.MapCarrier{}
	for _, name := range names() {
		if value := get(name); value != "" {
			carrier[name] = value
		}
	}
	if len(carrier) == 0 {
		return ctx
	}
	return propagation.Baggage{}.Extract(propagation.TraceContext{}.Extract(ctx, carrier), carrier)
}

// Inject calls set with the values of the context's trace.
func Inject(ctx context.Context, set func(name, value string)) {
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	propagation.Baggage{}.Inject(ctx, carrier)
	for _, name := range names() {
		if value := carrier[name]; value != "" {
			set(name, value)
		}
	}
}

// FromEnviron is Extract for the variables of a process, "K=V".
func FromEnviron(ctx context.Context, environ []string) context.Context {
	return Extract(ctx, func(name string) string {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, strings.ToUpper(name)+"="); ok {
				return value
			}
		}
		return ""
	})
}

// Environ returns the variables of a child, including those of the trace.
func Environ(ctx context.Context, environ []string) []string {
	added := false
	Inject(ctx, func(name, value string) {
		if !added {
			environ, added = slices.Clip(environ), true
		}
		environ = append(environ, strings.ToUpper(name)+"="+value)
	})
	return environ
}

// Scope is the name of the instrumentation scope of spans and metrics.
const Scope = "github.com/toolreg/toolreg"

// Kind says what a span describes.
type Kind int

// The kinds of spans.
const (
	Call   Kind = iota // a call of a tool
	Client             // a request to a server
	Server             // a request of a client
)

// Span is a piece of work that is exported, with its duration, to OpenTelemetry's global
// providers. Its attributes are those of the semantic conventions for GenAI and MCP of
// OpenTelemetry (semantic-conventions-genai, commit 9cebdaa9e67c). A nil Span does nothing. It is
// not safe for concurrent use.
type Span struct {
	ctx      context.Context
	span     trace.Span
	name     string
	duration metric.Float64Histogram // nil means it is not measured
	start    time.Time
	labels   []attribute.KeyValue
	failed   string
}

type spanKey struct{}

// Start begins a span within the context's span. If nothing is exported, it returns ctx and nil.
func Start(ctx context.Context, kind Kind, name string) (context.Context, *Span) {
	of := [...]struct {
		span                  trace.SpanKind
		duration, description string
	}{
		Call:   {trace.SpanKindInternal, "gen_ai.execute_tool.duration", "Duration of calls of tools."},
		Client: {trace.SpanKindClient, "mcp.client.operation.duration", "Duration of requests to MCP servers."},
		Server: {trace.SpanKindServer, "mcp.server.operation.duration", "Duration of requests of MCP clients."},
	}[kind]
	histogram, err := otel.Meter(Scope).Float64Histogram(of.duration,
		metric.WithDescription(of.description), metric.WithUnit("s"),
		// The conventions recommend these buckets for MCP.
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300))
	measured := err == nil && histogram.Enabled(ctx)
	inner, span := otel.Tracer(Scope).Start(ctx, name, trace.WithSpanKind(of.span))
	if c := span.SpanContext(); !c.IsValid() || c.SpanID() == trace.SpanContextFromContext(ctx).SpanID() {
		// The span comes from a tracer that creates no spans.
		if !measured {
			return ctx, nil
		}
		inner, span = ctx, noop.Span{}
	}
	s := &Span{ctx: inner, span: span, name: name, start: time.Now()}
	if measured {
		s.duration = histogram
	}
	return context.WithValue(inner, spanKey{}, s), s
}

// Current returns the innermost span of the context; nil if there is none.
func Current(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Set sets an attribute; an empty text sets none.
func (s *Span) Set(name string, value any) {
	if kv, ok := attributeOf(name, value); s != nil && ok {
		s.span.SetAttributes(kv)
	}
}

// Label sets an attribute that the histogram gets too. It must have few values, and none that
// callers choose.
func (s *Span) Label(name string, value any) {
	if kv, ok := attributeOf(name, value); s != nil && ok {
		s.span.SetAttributes(kv)
		s.labels = append(s.labels, kv)
	}
}

// Target sets an attribute like Label, and appends the value to the name of the span.
func (s *Span) Target(attribute, value string) {
	if s != nil {
		s.name += " " + value
		s.span.SetName(s.name)
		s.Label(attribute, value)
	}
}

// Fail marks the work as failed; word is one of a few categories.
func (s *Span) Fail(word string) {
	if s != nil {
		s.failed = word
	}
}

// End ends the span.
func (s *Span) End() {
	if s == nil {
		return
	}
	if s.failed != "" {
		s.Label("error.type", s.failed)
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
	if s.duration != nil {
		s.duration.Record(s.ctx, time.Since(s.start).Seconds(), metric.WithAttributes(s.labels...))
	}
}

func attributeOf(name string, value any) (attribute.KeyValue, bool) {
	switch v := value.(type) {
	case string:
		return attribute.String(name, v), v != ""
	case bool:
		return attribute.Bool(name, v), true
	case int:
		return attribute.Int(name, v), true
	case int64:
		return attribute.Int64(name, v), true
	case float64:
		return attribute.Float64(name, v), true
	}
	return attribute.KeyValue{}, false
}
